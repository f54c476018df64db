"""Plan of a study: its networks and how much work it does, fixed when it first starts.

::

    <out>/plan.json            variants, budgets and games; another request is refused
    <out>/games/               the games that every network learns from, links to their shards
    <out>/networks/NAME/       a trained network
    <out>/costs/NAME-at-64.json        what it does with 64 simulations a move, and how long
    <out>/ratings/             its games on the ladder, in batches
    <out>/matches/             its match against the first variant
    <out>/study.json, *.svg    the results

All networks learn from the same positions equally often. The budget is a number of passes over all
games, or the minutes that the slowest network needs: then fewer games are taken, the newest ones,
or more passes.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from chess_snn import __version__, training
from chess_snn.campaign.configuration.loading import config_values, first_difference
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.stages.dataset import fix_dataset
from chess_snn.campaign.stages.first_generation import new_network
from chess_snn.campaign.stages.networks import device_of
from chess_snn.campaign.stages.training_alone import settings_of_the_result
from chess_snn.campaign.store.collection import CollectedShard, joined, open_collection
from chess_snn.cores import num_cores
from chess_snn.data import (
    ReplayWindow,
    json_digest,
    link_folder,
    read_json,
    read_manifest,
    utc_now,
    write_json,
)
from chess_snn.data.formats import StoredFormat
from chess_snn.errors import UsageError
from chess_snn.games import get_game
from chess_snn.known import BATCH_PAIRS, MOST_GAMES
from chess_snn.later import torch
from chess_snn.pgn.folder import ID_LENGTH, ImportFolder, ImportSource
from chess_snn.pgn.report import ImportReport
from chess_snn.search import MAX_SIMULATIONS
from chess_snn.settings import check_range
from chess_snn.study.variants import Variant
from chess_snn.training import IterationPlan
from chess_snn.types import Json, LogFn

PLAN: Final = "plan.json"
FORMAT: Final = StoredFormat("study plan", version=1)
_FACTS: Final = ("id", "created", "version", "threads", "games", "training")
_GAME: Final = "chess"
"""The only game with a ladder."""
_FIRST_STEPS: Final = 3
"""Not timed: they compile and allocate."""
_TIMED_STEPS: Final = 12
_S_PER_MINUTE: Final = 60.0
_NOT_COMPARED: Final = ("games", "digest", "checkpoint_minutes")
"""Settings of ``[supervised]`` that the study sets itself, or that change no result."""


@dataclass(frozen=True, slots=True)
class StudyRequest:
    """A study as the user asks for it."""

    games: tuple[Path, ...]
    """Folders of campaigns or datasets."""
    variants: tuple[Variant, ...]
    """The first one is what the others are compared with."""
    simulations: tuple[int, ...]
    """Budgets of a move in which every network is rated."""
    equal_time: bool = True
    """Whether every network is also rated with as many simulations as fit into the time that the
    first one takes for the largest budget."""
    rating_games: int = 100
    match_games: int = 0
    """Games of each network against the first one, at each budget; 0 plays none."""
    minutes: float = 0.0
    """Training time of the slowest network; 0 takes all games, ``supervised.epochs`` times."""
    seed: int = 0
    """Seed of openings, games and random players."""
    threads: int = 0
    device: str = "cpu"
    """Device on which networks play."""

    def __post_init__(self) -> None:
        for simulations in self.simulations:
            check_range("--simulations", simulations, ge=0, le=MAX_SIMULATIONS)
        check_range("--rating-games", self.rating_games, ge=2 * BATCH_PAIRS, le=MOST_GAMES)
        check_range("--match-games", self.match_games, ge=0, le=MOST_GAMES)
        if self.match_games % 2:
            raise UsageError(
                f"--match-games must be even, got {self.match_games}: each opening is played with "
                f"both colours; use {self.match_games + 1}"
            )
        check_range("--minutes-per-network", self.minutes, ge=0)
        if len(set(self.simulations)) < len(self.simulations) or not self.simulations:
            raise UsageError("--simulations must name at least one budget, and none twice")

    def to_json(self) -> Json:
        """Everything that results depend on."""
        return {
            "games": [str(path.absolute()) for path in self.games],
            "variants": {each.name: _decisive(each.config) for each in self.variants},
            "simulations": list(self.simulations), "equal_time": self.equal_time,
            "rating_games": self.rating_games, "match_games": self.match_games,
            "minutes_per_network": self.minutes, "seed": self.seed, "threads": self.threads,
            "device": self.device,
        }


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """A study that has begun."""

    path: Path
    request: StudyRequest
    variants: tuple[Variant, ...]
    """Variants with the games, and the passes over them, that all learn from."""
    facts: Json
    """Entries of plan.json that :data:`_FACTS` names."""

    @property
    def threads(self) -> int:
        """Threads of training and play, fixed at the first start: times depend on them."""
        threads: int = self.facts["threads"]
        return threads

    def network(self, variant: Variant) -> Path:
        """The checkpoint of ``variant``; those that differ in play alone have the same one."""
        wanted = settings_of_the_result(variant.training_config)
        first = next(
            each for each in self.variants
            if settings_of_the_result(each.training_config) == wanted
        )
        return self.path / "networks" / first.name


def begin_study(out: Path, request: StudyRequest, say: LogFn) -> StudyPlan:
    """Begin a study in ``out``, or go on with the one that is there.

    Raises:
        UsageError: there are no games, they are not of chess, ``out`` holds something else or the
            study of another request, or nothing can be written.
        CorruptDataError: a shard or the plan is damaged.
    """
    wanted, path = request.to_json(), out / PLAN
    if path.exists():
        body = read_json(path)
        FORMAT.check(body.get("schema"), path)
        _check_same(path, body.get("request", {}), wanted)
    else:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UsageError(f"{out} exists, and holds no study; choose another folder")
        body = _first_plan(request, say) | {"request": wanted}
        write_json(path, body)
    games, training = out / "games", body["training"]
    if not _is_whole(games):
        _link_games(games, request, training["shards"])
    fixed = [
        replace(each, config=replace(each.config, supervised=replace(
            each.config.supervised, games=str(games), epochs=training["epochs"][each.name],
        )))
        for each in request.variants
    ]
    dataset = fix_dataset(fixed[0].config.supervised, _GAME)
    variants = tuple(
        replace(each, config=replace(each.config, supervised=replace(
            each.config.supervised, games=dataset.games, digest=dataset.digest,
        )))
        for each in fixed
    )
    facts = {name: body[name] for name in _FACTS}
    return StudyPlan(out, request, variants, facts)


def _first_plan(request: StudyRequest, say: LogFn) -> Json:
    collection = joined([open_collection(path) for path in request.games])
    if collection.spec.name != _GAME:
        raise UsageError(
            f"{collection.name} holds games of {collection.spec.name}, and the ladder is of "
            f"{_GAME}; give games of {_GAME}"
        )
    chosen, factor, paces = list(collection.shards), 1, {}
    if request.minutes:
        paces = _paces(request, chosen[-1], say)
        chosen, factor = _affordable(chosen, _S_PER_MINUTE * request.minutes * min(paces.values()))
    epochs = {
        each.name: factor if request.minutes and not each.sets("supervised.epochs")
        else each.config.supervised.epochs
        for each in request.variants
    }
    positions = sum(shard.num_positions for shard in chosen)
    passes = sorted(set(epochs.values()))
    say(
        f"{collection.name}: each network learns from {positions:,} of "
        f"{sum(shard.num_positions for shard in collection.shards):,} positions, the newest, "
        f"{' or '.join(map(str, passes))} time{'s' if passes != [1] else ''}"
    )
    return {
        "schema": FORMAT.version, "id": uuid.uuid4().hex, "created": utc_now(),
        "version": __version__, "threads": request.threads or num_cores(),
        "games": {
            "name": collection.name, "games": sum(shard.num_games for shard in chosen),
            "positions": positions,
        },
        "training": {
            "epochs": epochs, "samples_per_s": paces,
            "shards": [_digest(shard) for shard in chosen],
        },
    }


def _paces(request: StudyRequest, shard: CollectedShard, say: LogFn) -> dict[str, float]:
    """Training samples a second of each variant, from a few steps on ``shard``."""
    game, paces = get_game(_GAME), {}
    torch.set_num_threads(request.threads or num_cores())
    window = ReplayWindow.load(game, [shard.path], capacity=shard.num_positions, discount=1.0)
    schedule = IterationPlan(_FIRST_STEPS + _TIMED_STEPS, 0.0, 1.0)
    for each in request.variants:
        config = each.config
        settings = config.supervised.applied_to(config.training)
        trainer = training.Trainer(game, new_network(config), settings, 0, device_of(config))
        trainer.run(window, schedule, stop_at=_FIRST_STEPS)
        paces[each.name] = round(trainer.run(window, schedule).samples_per_s, 1)
        say(f"{each.name} trains on {paces[each.name]:,.0f} positions a second")
    return paces


def _affordable(
    shards: Sequence[CollectedShard], samples: float
) -> tuple[list[CollectedShard], int]:
    """The newest shards with at most so many positions, at least one, and how often."""
    positions = sum(shard.num_positions for shard in shards)
    if samples >= positions:
        return list(shards), int(samples // positions)
    first = len(shards) - 1
    taken = shards[first].num_positions
    while taken + shards[first - 1].num_positions <= samples:
        first -= 1
        taken += shards[first].num_positions
    return list(shards[first:]), 1


def _link_games(path: Path, request: StudyRequest, digests: Sequence[str]) -> None:
    """Put the shards with these digests under ``path``, as a dataset of their own."""
    collection = joined([open_collection(each) for each in request.games])
    found = {_digest(shard): shard for shard in collection.shards}
    if missing := sum(digest not in found for digest in digests):
        raise UsageError(
            f"{collection.name} has lost {missing} of the {len(digests)} shards of games that the "
            f"study began with; restore them, or delete {path.parent} to begin again"
        )
    folder = ImportFolder.create(path, ImportSource(
        collection.name, json_digest(list(digests))[:ID_LENGTH], 1
    ))
    report = ImportReport()
    for index, digest in enumerate(digests):
        shard = found[digest]
        link_folder(shard.path, folder.shard(index))
        report.add(ImportReport(
            games_read=shard.num_games, games=shard.num_games, positions=shard.num_positions
        ))
    folder.finish(report)


def _is_whole(games: Path) -> bool:
    return games.exists() and ImportFolder.open(games).report() is not None


def _digest(shard: CollectedShard) -> str:
    return json_digest(read_manifest(shard.path).sha256s)[:ID_LENGTH]


def _decisive(config: CampaignConfig) -> Json:
    """The settings that a network's weights and moves depend on."""
    values = config_values(config)
    return {
        "seed": values["campaign"]["seed"], "net": values["net"], "training": values["training"],
        "search": values["search"],
        "supervised": {
            name: value for name, value in values["supervised"].items()
            if name not in _NOT_COMPARED
        },
    }


def _check_same(path: Path, before: Json, now: Json) -> None:
    if (difference := first_difference(before, now)) is not None:
        raise UsageError(
            f"{path} is of a study with {difference}; repeat its command, or choose another folder"
        )
