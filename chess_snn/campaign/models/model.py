"""A network that can be played: where it lies, and how it is searched.

Changes stand behind its name, after ``#``: play it otherwise than it was trained. So in
``runs/a@12#ticks=4,search.kind=puct``, in any order. As with ``--set``, of two values of one name
the later counts.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from chess_snn import nets
from chess_snn.campaign.configuration.loading import (
    build_config,
    changed_config,
    config_digest,
    read_toml,
)
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.generations import read_generation
from chess_snn.data import is_committed, verify_folder
from chess_snn.data.manifest import describe_file
from chess_snn.errors import ConfigError, CorruptDataError, UsageError
from chess_snn.games.base import Game
from chess_snn.nets import MOST_TICKS, Precision
from chess_snn.search import SearchSettings
from chess_snn.settings import check_range
from chess_snn.types import Json

MODEL_FILE: Final = "model.toml"
MODEL_FACTS: Final = "model"
"""The table of :data:`MODEL_FILE` that is not a group of settings."""
_SEARCH: Final = "search."


@dataclass(frozen=True, slots=True)
class InPlay:
    """Changes to how a network is played; none by default."""

    ticks: int = 0
    """Ticks of an evaluation; 0 takes those of its training."""
    search: tuple[str, ...] = ()
    """Settings of the search, as ``--set`` takes them: ``search.kind=puct``."""

    def __bool__(self) -> bool:
        """Return whether anything is changed."""
        return self != AS_TRAINED

    def search_settings(self, config: CampaignConfig) -> SearchSettings:
        """Return the search settings of ``config`` with the changes.

        Raises:
            ConfigError: a setting is unknown, or its value out of range.
        """
        return changed_config(config, self.search).search


AS_TRAINED: Final = InPlay()


def split_play(text: str) -> tuple[str, InPlay]:
    """``runs/a@12#ticks=4`` as ``runs/a@12`` and how it is played.

    A name that exists as it stands is left whole.

    Raises:
        ConfigError: a number is out of range.
        UsageError: something else stands there.
    """
    name, found, play = text.rpartition("#")
    if not found or "/" in play or Path(text).exists():
        return text, AS_TRAINED
    ticks, search = 0, []
    for part in play.split(","):
        key, _, value = part.partition("=")
        if key == "ticks" and value.isdecimal():
            ticks = int(value)
            check_range(f"ticks of {text!r}", ticks, ge=1, le=MOST_TICKS)
        elif key.startswith(_SEARCH) and value:
            search.append(part)
        else:
            raise UsageError(
                f"{part!r} in {text!r} does not say how to play a network; behind # may stand "
                "ticks=N and settings of the search such as search.kind=puct, with "
                "commas between them"
            )
    changes = InPlay(ticks, tuple(search))
    changes.search_settings(CampaignConfig())
    return name, changes


_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Model:
    """A network: where it lies, and how it is played."""

    label: str
    """Name for people: the one asked for, with its generation."""
    weights: Path
    game: str
    """Name of the game that it plays."""
    generation: int | None = None
    """Generation of a campaign's network."""
    config: CampaignConfig | None = None
    """Settings of the campaign that trained it; None if that is not known."""
    campaign: CampaignFolder | None = None
    """Campaign that it lies in."""
    facts: Json = field(default_factory=dict, hash=False)
    """Content of the description of an exported network."""
    simulations: int = 0
    """Simulations of a move in play; 0 plays its policy without search."""
    random_percent: float | None = None
    """Share of its moves in play that are made at random."""
    in_play: InPlay = AS_TRAINED
    """Changes of play against training."""

    @property
    def name(self) -> str:
        """Its name as a player: ``runs/a@12:64``, or ``runs/a@12:64~25`` with random moves."""
        percent = "" if self.random_percent is None else f"~{self.random_percent:g}"
        return f"{self.label}:{self.simulations}{percent}"

    @property
    def precision(self) -> Precision:
        """Precision in play."""
        return (self.config or CampaignConfig()).net.precision

    @property
    def search(self) -> SearchSettings:
        """Settings of its search in play."""
        return self.in_play.search_settings(self.config or CampaignConfig())

    @property
    def config_digest(self) -> str | None:
        """Digest of the campaign's settings."""
        return None if self.config is None else config_digest(self.config)

    @property
    def file_digest(self) -> str:
        """SHA-256 of the file of weights."""
        return describe_file(self.weights).sha256

    @property
    def game_facts(self) -> Json:
        """Tags of its games."""
        known = {
            "generation": self.generation, "simulations": self.simulations,
            "config_digest": self.config_digest,
        }
        return {name: value for name, value in known.items() if value is not None}

    def load(self, game: Game) -> nets.Network:
        """The network, after digests were checked.

        Raises:
            CorruptDataError: the file is damaged.
            UsageError: it plays another game.
        """
        network = self.load_stored()
        if network.spec.name != game.spec.name:
            raise UsageError(
                f"{self.weights} plays {network.spec.name}; give a network of {game.spec.name}"
            )
        return network

    def _check(self) -> None:
        """Compare the weights with the manifest beside them, and that with the receipt."""
        place, campaign, generation = self.weights.parent, self.campaign, self.generation
        if campaign is None and not self.facts and not is_committed(place):
            _LOG.warning(
                "%s is loaded unchecked: there is no manifest beside it to compare it with",
                self.weights,
            )
            return
        if campaign is not None and generation is not None:
            read_generation(campaign, generation)
        verify_folder(place)

    def load_stored(self) -> nets.Network:
        """The network in :attr:`weights`, of whatever game, after digests were checked.

        Raises:
            CorruptDataError: the file is damaged.
            UsageError: it cannot have that number of ticks.
        """
        self._check()
        network = nets.load_network(self.weights)
        if not self.in_play.ticks:
            return network
        try:
            return network.with_ticks(self.in_play.ticks)
        except ConfigError as error:
            raise UsageError(
                f"{self.label} is not possible: {error}; or leave ticks={self.in_play.ticks} out"
            ) from error


def read_exported(folder: Path) -> tuple[Json, CampaignConfig]:
    """Read the facts of the exported model in ``folder``, unverified, and its settings.

    Raises:
        CorruptDataError: its description is damaged.
    """
    path = folder / MODEL_FILE
    try:
        values = read_toml(path)
        facts = values.pop(MODEL_FACTS)
        return facts | {"generation": int(facts["generation"])}, build_config(values)
    except (ConfigError, KeyError, TypeError, ValueError) as error:
        raise CorruptDataError(
            f"{path} does not describe a model ({error}); export it again"
        ) from error
