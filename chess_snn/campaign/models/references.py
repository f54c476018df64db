"""Networks by name: from a text to weights, and how those are played."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from chess_snn import nets
from chess_snn.campaign.models.model import MODEL_FILE, Model, read_exported, split_play
from chess_snn.campaign.store.folder import CONFIG_FILE, CampaignFolder
from chess_snn.campaign.store.notes import refuse_removed
from chess_snn.campaign.store.receipts import num_finished_iterations, read_receipts
from chess_snn.campaign.strength.champions import champion_of
from chess_snn.errors import CampaignError, UsageError
from chess_snn.evaluation.named_players import (
    is_player_name,
    nearest_player,
    split_dilution,
)
from chess_snn.extras import fetch_model
from chess_snn.games import check_game
from chess_snn.known import (
    KNOWN_MODELS,
    KNOWN_PLAYERS,
    SHIPPED,
    SHIPPED_FOLDER,
    SHIPPED_MODELS,
    WEIGHTS,
)
from chess_snn.search import MAX_SIMULATIONS
from chess_snn.settings import check_range
from chess_snn.wording import nearest

_SHORT_NAMES: Final = tuple(name.removeprefix(SHIPPED) for name in SHIPPED_MODELS)

AT_CHAMPION: Final = "champion"
"""Stands for a generation: the campaign's champion."""

REGISTERED: Final = "models:/"
"""Begins the address of a model in a registry."""

FetchModel = Callable[[str], Path]
"""Gets the model at an address of a registry; returns a folder as
:func:`chess_snn.campaign.models.exporting.export_model` makes it."""

_AT_GENERATION = re.compile(rf"(?P<folder>.+)@(?P<generation>[0-9]{{1,12}}|{AT_CHAMPION})")
_BUDGET = re.compile(r"(?P<model>.+):(?P<simulations>[0-9]{1,12})")
_GENERATION_FOLDER = re.compile(r"gen-([0-9]{1,12})")


def find_model(
    text: str, fetch: FetchModel = fetch_model, *, game: str | None = None,
    simulations: int | None = None,
) -> Model:
    """The model that ``text`` names; see ``KNOWN_MODELS``.

    What :func:`.split_play` takes off may stand behind it. Its campaign's frozen settings, where it
    has a campaign, say how it is searched with.

    Args:
        text: the name.
        fetch: gets a registered model.
        game: that it must play; None for any.
        simulations: of a move in play. Then ``:N`` behind the name is its own number, and ``~P``
            makes P % of its moves random. None where it does not play.

    Raises:
        UsageError: nothing of that name is there, no network is in it, or it plays another game.
        ChessSnnError: the registry is away.
    """
    with looking_for(text):
        asked, own, percent = text, 0, None
        if simulations is not None:
            asked, own, percent = _split_budget(text, simulations)
        name, play = split_play(asked)
        if name in _SHORT_NAMES and not Path(name).exists():
            asked, name = SHIPPED + asked, SHIPPED + name
        if is_registered(name):
            model = replace(_find_model(str(fetch(name))), label=name)
        else:
            model = _find_model(name, None if simulations is None else text)
    label = model.label + asked.removeprefix(name)
    if game is not None:
        check_game(label, model.game, game)
    return replace(model, label=label, in_play=play, simulations=own, random_percent=percent)


def model_in(folder: Path) -> Model:
    """The exported model in ``folder``."""
    return _find_model(str(folder))


def _split_budget(text: str, simulations: int) -> tuple[str, int, float | None]:
    """``runs/a:64~25`` as ``runs/a``, its simulations, and the percentage of random moves."""
    name, percent = (text, None) if Path(text).exists() else split_dilution(text)
    if percent is not None:
        check_range(f"percent of random moves in {text!r}", percent, gt=0.0, lt=100.0)
    budget = _BUDGET.fullmatch(name)
    if budget is not None and not Path(name).exists():
        name, simulations = budget["model"], int(budget["simulations"])
    check_range(f"simulations of {name}", simulations, ge=0, le=MAX_SIMULATIONS)
    return name, simulations, percent


def is_registered(text: str) -> bool:
    """Whether ``text`` is the address of a registered model."""
    return text.startswith(REGISTERED)


@contextmanager
def looking_for(text: str) -> Iterator[None]:
    """Turn an OSError about a path, too long or in a closed folder, into a UsageError."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot look for {text!r}: {error.strerror}; give another") from error


def _find_model(text: str, player: str | None = None) -> Model:
    """The model in a folder or file; ``player`` is the whole name of one that plays."""
    path, generation = split_generation(text)
    if (path / CONFIG_FILE).is_file():
        return model_of_campaign(path, generation)
    if generation is not None and path.exists():
        raise UsageError(f"{path} holds no campaign, so it has no generation {generation}")
    weights = path / WEIGHTS if path.is_dir() else path
    if generation is not None or not weights.is_file():
        if path.exists():
            raise UsageError(f"{text!r} holds no network; a network is {KNOWN_MODELS}")
        if is_player_name(player or text):
            raise UsageError(f"{player or text!r} is a player; give a network: {KNOWN_MODELS}")
        near = _nearest_model(text) or (player and nearest_player(player))
        players = f"a player is {', '.join(KNOWN_PLAYERS)}; " if player else ""
        hint = f"did you mean {near}?" if near else f"{players}a network is {KNOWN_MODELS}"
        raise UsageError(f"{player or text!r} does not exist; {hint}")
    if (weights.parent / MODEL_FILE).is_file():
        facts, config = read_exported(weights.parent)
        game, generation = config.campaign.game, facts["generation"]
        return Model(str(Path(text)), weights, game, generation, config, facts=facts)
    campaign = weights.absolute().parent.parent.parent
    if (campaign / CONFIG_FILE).is_file():
        return _of_checkpoint(str(path), weights, CampaignFolder.open(campaign))
    return Model(str(path), weights, nets.stored_game(weights))


def _nearest_model(text: str) -> str | None:
    """The name or path that ``text``, where nothing is, was probably meant to be."""
    path, generation = split_generation(text)
    beside = [
        str(entry) for entry in (path.parent.iterdir() if path.parent.is_dir() else ())
        if entry.is_dir() or entry.suffix == Path(WEIGHTS).suffix
    ]
    near = nearest(text.partition("@")[0], [*SHIPPED_MODELS, *_SHORT_NAMES, *beside])
    return near if near is None or generation is None else f"{near}@{generation}"


def split_generation(text: str) -> tuple[Path, int | str | None]:
    """``runs/a@12`` as (``runs/a``, 12), and with ``AT_CHAMPION`` in its place that.

    A name that exists as it stands is left whole. Of a shipped network the folder is returned.
    """
    if text.startswith(SHIPPED) and not Path(text).exists():
        return SHIPPED_FOLDER / text.removeprefix(SHIPPED), None
    parts = None if is_registered(text) else _AT_GENERATION.fullmatch(text)
    if parts is None or Path(text).exists():
        return Path(text), None
    generation = parts["generation"]
    return Path(parts["folder"]), generation if generation == AT_CHAMPION else int(generation)


def model_of_campaign(path: Path, wanted: int | str | None = None) -> Model:
    """A generation of the campaign in ``path``: by number, its champion, or its newest (None).

    Raises:
        CampaignError: there is no such generation.
    """
    folder = CampaignFolder.open(path)
    generations = folder.generations()
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
        return max(generations[-1], num_finished_iterations(folder))
    champion = champion_of(folder, read_receipts(folder))
    if champion is None:
        raise CampaignError(
            f"{folder.path} has no champion before its first iteration is finished; go on with "
            f"it: chess-snn campaign resume {folder.path}"
        )
    return champion


def _of_checkpoint(label: str, weights: Path, campaign: CampaignFolder) -> Model:
    name, config = _GENERATION_FOLDER.fullmatch(weights.parent.name), campaign.config
    generation = None if name is None else int(name[1])
    return Model(label, weights, config.campaign.game, generation, config, campaign)
