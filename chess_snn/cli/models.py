"""The networks that commands take: from a text to weights, and how those are searched with."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chess_snn.campaign import CampaignConfig, CampaignFolder, read_receipts
from chess_snn.campaign.configuration.loading import config_digest
from chess_snn.campaign.configuration.settings import NetworkSettings
from chess_snn.campaign.models.exporting import MODEL_FILE, read_exported
from chess_snn.campaign.store.folder import CONFIG_FILE
from chess_snn.campaign.store.naming import campaigns_home
from chess_snn.campaign.store.removals import refuse_removed
from chess_snn.campaign.strength.champions import champion_of
from chess_snn.cli.console import print_message
from chess_snn.data import is_committed, verify_folder
from chess_snn.errors import CampaignError, ChessSnnError, UsageError
from chess_snn.games.base import Game
from chess_snn.nets import Network, Precision, build_network, load_network
from chess_snn.search import SearchSettings
from chess_snn.training import WEIGHTS

KNOWN_MODELS: Final = (
    "a campaign's folder (its newest generation), CAMPAIGN@GENERATION, CAMPAIGN@champion, an "
    f"exported model's or a checkpoint's folder, or a {WEIGHTS}"
)
"""How a network is written."""

AT_CHAMPION: Final = "champion"
"""Stands for a generation: the campaign's champion."""

_AT_GENERATION = re.compile(rf"(?P<folder>.+)@(?P<generation>[0-9]{{1,12}}|{AT_CHAMPION})")
_GENERATION_FOLDER = re.compile(r"gen-([0-9]{1,12})")


@dataclass(frozen=True, slots=True)
class Model:
    """A network and what it is played with."""

    label: str
    """For people: what was asked for, with its generation."""
    weights: Path | None
    """None: untrained."""
    precision: Precision
    search: SearchSettings
    generation: int | None = None
    """Of a campaign's network."""
    config_digest: str | None = None
    """Of the campaign's settings."""
    campaign: CampaignFolder | None = None
    """That it lies in."""

    def load(self, game: Game) -> Network:
        """The network, after the digests of its checkpoint were checked.

        Raises:
            CorruptDataError: the file is damaged.
            UsageError: it plays another game.
        """
        if self.weights is None:
            return build_network(game.spec, NetworkSettings().network(), seed=0)
        if is_committed(self.weights.parent):
            verify_folder(self.weights.parent)
        network = load_network(self.weights)
        if network.spec.name != game.spec.name:
            raise UsageError(
                f"{self.weights} plays {network.spec.name}; give a network of {game.spec.name}"
            )
        return network


def find_model(text: str) -> Model:
    """The model that ``text`` names; see ``KNOWN_MODELS``.

    Its campaign's frozen settings, where it has a campaign, say how it is searched with.

    Raises:
        UsageError: nothing of that name is there, or no network is in it.
    """
    with looking_for(text):
        return _find_model(text)


@contextmanager
def looking_for(text: str) -> Iterator[None]:
    """Say in one line that a path cannot be looked at: too long, or in a folder that is closed.

    Raises:
        UsageError: the system says so in the block.
    """
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot look for {text!r}: {error.strerror}; give another") from error


def _find_model(text: str) -> Model:
    path, generation = split_generation(text)
    if (path / CONFIG_FILE).is_file():
        return _of_campaign(path, generation)
    if generation is not None:
        raise UsageError(f"{path} holds no campaign, so it has no generation {generation}")
    weights = path / WEIGHTS if path.is_dir() else path
    if not weights.is_file():
        fault = "holds no network" if path.exists() else "does not exist"
        raise UsageError(f"{text!r} {fault}; a network is {KNOWN_MODELS}")
    if (weights.parent / MODEL_FILE).is_file():
        exported = read_exported(weights.parent)
        return _model(str(path), weights, exported.config, exported.generation)
    campaign = weights.absolute().parent.parent.parent
    if (campaign / CONFIG_FILE).is_file():
        return _of_checkpoint(str(path), weights, CampaignFolder.open(campaign))
    return Model(str(path), weights, NetworkSettings().precision, SearchSettings())


def split_generation(text: str) -> tuple[Path, int | str | None]:
    """``runs/a@12`` as (``runs/a``, 12), and with ``AT_CHAMPION`` in its place that.

    A name that exists as it stands is left whole.
    """
    parts = _AT_GENERATION.fullmatch(text)
    if parts is None or Path(text).exists():
        return Path(text), None
    generation = parts["generation"]
    return Path(parts["folder"]), generation if generation == AT_CHAMPION else int(generation)


def newest_or_untrained() -> Model:
    """The newest generation in ``./campaigns`` and in the user's campaigns; else an untrained one.

    The user's campaigns are those of :func:`chess_snn.campaign.store.naming.campaigns_home`.
    """
    checkpoints = [
        (folder.checkpoint(generation).stat().st_mtime, path, generation)
        for path, folder in _campaigns()
        for generation in _generations(folder)[-1:]
    ]
    if checkpoints:
        _, path, generation = max(checkpoints)
        return _of_campaign(path, generation)
    return Model("untrained", None, NetworkSettings().precision, SearchSettings())


def _campaigns() -> Iterator[tuple[Path, CampaignFolder]]:
    for parent in dict.fromkeys((Path("campaigns"), campaigns_home())):
        for config in sorted(parent.glob(f"*/{CONFIG_FILE}")):
            try:
                folder = CampaignFolder.open(config.parent)
            except ChessSnnError as error:
                print_message(f"left out: {error}")
                continue
            yield config.parent, folder


def _of_campaign(path: Path, wanted: int | str | None) -> Model:
    folder = CampaignFolder.open(path)
    generations = _generations(folder)
    if not generations:
        raise CampaignError(
            f"{path} has no network yet; go on with it: chess-snn campaign resume {path}"
        )
    generation = _generation_of(folder, wanted, generations)
    if generation not in generations:
        refuse_removed(folder, generation)
        raise CampaignError(
            f"{path} has no generation {generation}; it has {len(generations)}, from "
            f"{generations[0]} to {generations[-1]}"
        )
    return _of_checkpoint(
        f"{path}@{generation}", folder.checkpoint(generation) / WEIGHTS, folder
    )


def _generation_of(
    folder: CampaignFolder, wanted: int | str | None, generations: Sequence[int]
) -> int:
    """The generation wanted, which may not be there."""
    if isinstance(wanted, int):
        return wanted
    if wanted is None:
        return generations[-1]
    champion = champion_of(folder, read_receipts(folder))
    if champion is None:
        raise CampaignError(
            f"{folder.path} has no champion before its first iteration is finished; go on with "
            f"it: chess-snn campaign resume {folder.path}"
        )
    return champion


def _of_checkpoint(label: str, weights: Path, campaign: CampaignFolder) -> Model:
    name = _GENERATION_FOLDER.fullmatch(weights.parent.name)
    generation = None if name is None else int(name[1])
    return _model(label, weights, campaign.config, generation, campaign)


def _model(
    label: str, weights: Path, config: CampaignConfig, generation: int | None,
    campaign: CampaignFolder | None = None,
) -> Model:
    return Model(
        label, weights, config.net.precision, config.search, generation,
        config_digest(config), campaign,
    )


def _generations(folder: CampaignFolder) -> list[int]:
    """Numbers of the committed generations, rising."""
    names = (
        (_GENERATION_FOLDER.fullmatch(path.name), path)
        for path in folder.checkpoint(0).parent.glob("gen-*")
    )
    return sorted(int(name[1]) for name, path in names if name and is_committed(path))
