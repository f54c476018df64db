"""Labelling recorded games: a teacher says what to play in each position, and how it stands.

A teacher is an engine, or a network with its search. Its labels take the place of the policy
targets and root values of the games; moves and results stay as they were. So the labelled games are
ordinary shards in a folder like that of an import, and whatever learns from games learns from them.

Each shard is labelled by one process as a whole. A second run finds what the first one committed,
and labels what is missing.
"""

import functools
import hashlib
import time
from collections.abc import Iterator
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from chess_snn import nets
from chess_snn.campaign.models.model import Model
from chess_snn.campaign.store.collection import CollectedShard, GameCollection
from chess_snn.data import (
    is_committed,
    json_digest,
    read_manifest,
    write_shard,
)
from chess_snn.errors import ConfigError, UsageError
from chess_snn.evaluation.engines.teacher import DEFAULT_LINES, EngineTeacher, Lines
from chess_snn.games import Game, get_game
from chess_snn.games.base import GameBatch
from chess_snn.nets import Evaluator
from chess_snn.pgn.folder import ID_LENGTH, ImportFolder, ImportSource
from chess_snn.pgn.report import ImportReport
from chess_snn.process_pool import process_pool
from chess_snn.search import MAX_SIMULATIONS, SearchResult, make_search
from chess_snn.self_play.labels import POSITIONS_AT_ONCE, Teacher, label_records
from chess_snn.settings import check_range
from chess_snn.types import Progress

GAMES_PER_SHARD: Final = 64
"""A minute of work at most for an engine that takes some milliseconds a position."""
_LABELLED: Final = "labelled"
"""Digest of the shard that was labelled, in the manifest of the labels."""


@dataclass(frozen=True, slots=True)
class Teaching:
    """Teacher to label with, and how. Every process makes its own teacher of this."""

    text: str
    """Name that the user wrote: an engine with its budget, or a network."""
    model: Model | None = None
    """The network, with its simulations a position; None: ``text`` is an engine."""
    lines: Lines = DEFAULT_LINES
    """Lines that an engine searches."""
    device: str = "cpu"
    """Device of a network."""

    def __post_init__(self) -> None:
        if self.model is not None:
            check_range(
                f"simulations of {self.text}", self.model.simulations, ge=1, le=MAX_SIMULATIONS
            )

    def describe(self, game: Game) -> str:
        """Everything that the labels depend on, in a line.

        Raises:
            ConfigError, EngineError: as :class:`EngineTeacher`.
        """
        if self.model is None:
            identity = EngineTeacher(game, self.text, self.lines).identity
            return (
                f"{self.text} ({identity}), {self.lines.number} lines, temperature "
                f"{self.lines.temperature_cp:g} centipawns"
            )
        return f"{self.model.name} ({self.model.file_digest[:ID_LENGTH]})"

    def start(self, game: Game) -> Teacher:
        """The teacher, for this process."""
        if self.model is None:
            return EngineTeacher(game, self.text, self.lines).label
        evaluator = nets.make_evaluator(
            self.model.load(game), device=self.device, precision=self.model.precision,
            num_threads=1,
        )
        return _network_teacher(game, evaluator, self.model)


@dataclass(frozen=True, slots=True)
class Part:
    """Some games of a shard, which become one shard of labels."""

    index: int
    """Number of the new shard."""
    first_game: int
    """Number of its first game in the collection, from 1."""
    shard: CollectedShard
    games: slice
    """Games of the shard."""
    digest: str
    """Digest of the shard's content."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """Games that were labelled."""

    report: ImportReport
    """Over all of them, whichever run labelled them."""
    new_positions: int
    """Labelled by this run."""
    seconds: float

    @property
    def positions_per_s(self) -> float:
        """Labelled a second; 0 where all were there before."""
        return self.new_positions / self.seconds if self.new_positions else 0.0


def label_games(
    collection: GameCollection, out: Path, teaching: Teaching, *, workers: int = 1,
    limit: int | None = None, on_progress: Progress | None = None,
) -> Labelled:
    """Label the games of ``collection`` into ``out``, or continue where a run was interrupted.

    A script that calls this needs ``if __name__ == "__main__":``, see
    :func:`chess_snn.process_pool.process_pool`.

    Args:
        collection: games of a campaign or of an import.
        out: missing, empty, or where the same games began to be labelled by the same teacher.
        teaching: who labels them.
        workers: processes, each with a teacher of its own.
        limit: about how many games; whole shards of labels are made. None: all.
        on_progress: called with the games done and in all.

    Raises:
        ConfigError: the teacher does not play the game.
        EngineError: the engine does not start, or died again and again at one position. Labels
            that were committed stay.
        UsageError: ``out`` holds something else, or nothing can be written.
        CorruptDataError: a shard is damaged.
    """
    check_range("--workers", workers, ge=1, le=1024)
    game = get_game(collection.spec.name)
    teacher = teaching.describe(game)
    parts = list(_parts(collection, limit))
    content = hashlib.sha256(f"{teacher}\n{parts[0].digest}".encode()).hexdigest()
    folder = ImportFolder.create(out, ImportSource(
        collection.name, content[:ID_LENGTH], GAMES_PER_SHARD, teacher
    ))
    folder.sweep()
    report = ImportReport()
    missing = []
    for part in parts:
        if is_committed(folder.shard(part.index)):
            report.add(_committed(folder.shard(part.index), part))
        else:
            missing.append(part)
    num_games = sum(part.games.stop - part.games.start for part in parts)
    before, start = report.positions, time.perf_counter()
    if missing:
        with process_pool(min(workers, len(missing))) as pool:
            for done in as_completed([
                pool.submit(label_part, folder, teaching, part) for part in missing
            ]):
                report.add(done.result())
                if on_progress is not None:
                    on_progress(report.games, num_games)
    folder.finish(report)
    return Labelled(report, report.positions - before, time.perf_counter() - start)


def label_part(folder: ImportFolder, teaching: Teaching, part: Part) -> ImportReport:
    """Commit the labels of ``part``, in a worker."""
    game = get_game(part.shard.spec.name)
    records, _ = part.shard.read()
    labelled = label_records(game, records, part.games, [_teacher(teaching, game.spec.name)])
    report = ImportReport(
        games_read=labelled.num_games, games=labelled.num_games, positions=labelled.num_positions
    )
    write_shard(folder.shard(part.index), labelled, {
        "game": game.spec.name, "source": folder.source.file, "first_game": part.first_game,
        _LABELLED: part.digest, "report": report.to_json(),
    })
    return report


def _network_teacher(game: Game, evaluator: Evaluator, model: Model) -> Teacher:
    settings = replace(model.search, root_value="search")
    if settings.kind == "policy":  # labels are what a search found
        settings = replace(settings, kind="gumbel")
    search = make_search(
        game, evaluator, settings, simulations=model.simulations, num_games=POSITIONS_AT_ONCE
    )

    def label(batch: GameBatch) -> SearchResult:
        n = len(batch)
        return search.run(
            batch, np.zeros(n, np.uint64), np.zeros(n, np.int32), np.zeros(n, np.float32)
        )

    return label


@functools.cache
def _teacher(teaching: Teaching, game: str) -> Teacher:
    """The teacher of this process."""
    return teaching.start(get_game(game))


def _parts(collection: GameCollection, limit: int | None) -> Iterator[Part]:
    index, before = 0, 0
    for shard in collection.shards:
        digest = json_digest(read_manifest(shard.path).sha256s)
        for start in range(0, shard.num_games, GAMES_PER_SHARD):
            if limit is not None and before + start >= limit:
                return
            games = slice(start, min(start + GAMES_PER_SHARD, shard.num_games))
            yield Part(index, before + start + 1, shard, games, digest)
            index += 1
        before += shard.num_games


def _committed(shard: Path, part: Part) -> ImportReport:
    meta = read_manifest(shard).meta
    if meta.get(_LABELLED) != part.digest:
        raise UsageError(
            f"{shard} has labels of other games than {part.shard.path}, which changed since; label "
            "the games into a new folder with --out"
        )
    try:
        return ImportReport.from_json(meta["report"])
    except (ConfigError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{shard} is not a shard of labels ({error!r}); delete it") from error
