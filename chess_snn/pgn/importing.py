"""Importing a PGN file into a folder of shards, on several processes, repeatable at any point.

This process reads, unpacks and cuts the file between games; workers do all else. A chunk of the
file is a shard, and which games it has depends on the file alone. So a second run finds what the
first one committed, compares it with the file, and does what is missing.
"""

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from chess_snn.data import is_committed, read_manifest, write_shard
from chess_snn.errors import ConfigError, CorruptDataError, UsageError
from chess_snn.pgn.folder import ID_LENGTH, ImportFolder, ImportSource, shard_meta
from chess_snn.pgn.reading import read_games
from chess_snn.pgn.report import BadGame, ImportReport
from chess_snn.pgn.selection import EVERYTHING, Selection
from chess_snn.pgn.source import GAMES_PER_CHUNK, Chunk, read_chunks
from chess_snn.process_pool import process_pool
from chess_snn.settings import check_range
from chess_snn.types import Progress

FEW_CHUNKS: Final = 4
"""They are imported in this process, because others take longer to start."""
_WARM_UP: Final = b"1. e4 e5 2. Nf3 1-0\n"


@dataclass(frozen=True, slots=True)
class Imported:
    """An import that went through."""

    folder: ImportFolder
    report: ImportReport
    """Over the whole file, whichever run imported it."""
    new_games: int
    """Games read by this run, the refused ones too; others were there before."""
    seconds: float
    """Without the start of workers."""

    @property
    def games_per_s(self) -> float:
        """Games read a second after start-up; 0 where all were there before."""
        return self.new_games / self.seconds if self.new_games else 0.0


def import_pgn(
    file: Path, out: Path, selection: Selection = EVERYTHING, *, workers: int = 1,
    strict: bool = False, on_progress: Progress | None = None,
) -> Imported:
    """Import the games of ``file`` into ``out``, or continue an import that was interrupted.

    A script that calls this needs ``if __name__ == "__main__":``, see
    :func:`chess_snn.process_pool.process_pool`.

    Args:
        file: PGN, plain or packed by gzip or zstd.
        out: missing, empty, or where the import of the same file began.
        selection: the games that are wanted.
        workers: processes that read moves and write shards.
        strict: whether the first bad game ends the import.
        on_progress: see ``Progress``.

    Raises:
        UsageError: the file cannot be read or holds no game, ``out`` holds something else, nothing
            can be written, or a game is bad and ``strict``; whole shards before that stay.
        CorruptDataError: the file or a shard is damaged.
    """
    check_range("--workers", workers, ge=1, le=1024)
    chunks = read_chunks(file, selection, on_progress)
    first = next(chunks, None)
    if first is None:
        raise UsageError(f"{file} holds no game; is it PGN?")
    folder = ImportFolder.create(out, ImportSource(
        file.name, first.sha256[:ID_LENGTH], GAMES_PER_CHUNK, selection=str(selection)
    ))
    folder.sweep()
    run = _Run(folder, file, strict, selection.limit)
    missing = run.skip_committed(chain([first], chunks))
    few = list(islice(missing, FEW_CHUNKS))  # read before any is committed: they may be damaged
    run.import_all(iter(few), _ThisProcess(), 1)
    run.import_all(missing, process_pool(workers), workers)
    run.finish()
    return Imported(folder, run.report, run.new_games, run.seconds)


class _ThisProcess(Executor):
    """Does the work at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


class _Run:
    """One run of an import."""

    def __init__(
        self, folder: ImportFolder, file: Path, strict: bool, limit: int | None
    ) -> None:
        self.report = ImportReport()
        self.new_games = 0
        self.seconds = 0.0
        self._folder = folder
        self._file = file
        self._strict = strict
        self._limit = sys.maxsize if limit is None else limit
        self._num_chunks = 0
        self._last_committed = -1

    def skip_committed(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """The chunks without a shard; the others are compared with theirs, and counted."""
        for chunk in chunks:
            self._num_chunks = chunk.index + 1
            shard = self._folder.shard(chunk.index)
            if is_committed(shard):
                self.report.add(self._committed(shard, chunk))
                self._last_committed = chunk.index
            else:
                yield chunk
            if self._num_left == 0:
                return

    @property
    def _num_left(self) -> int:
        """Games that may come beside those of pending chunks."""
        return self._limit - self.report.games

    def import_all(
        self, chunks: Iterator[Chunk], workers: AbstractContextManager[Executor], num_workers: int
    ) -> None:
        """Import ``chunks``; few are read ahead, and no worker is started if there is none."""
        if (first := next(chunks, None)) is not None:
            with workers as pool:
                self._import_on(pool, chain([first], chunks), num_workers)

    def _import_on(self, pool: Executor, chunks: Iterator[Chunk], num_workers: int) -> None:
        ready = [pool.submit(warm_up) for _ in range(num_workers)]
        for done in wait(ready, return_when=FIRST_COMPLETED).done:
            done.result()
        start = time.perf_counter()
        pending: dict[Future[ImportReport], int] = {}
        for chunk in chunks:
            # Near the limit, how many games a chunk may add depends on those before it.
            while pending and sum(pending.values()) + len(chunk.numbers) > self._num_left:
                self._take_done(pending)
            if self._num_left == 0 and chunk.index > self._last_committed:
                break
            future = pool.submit(import_chunk, self._folder, chunk, self._num_left, self._strict)
            pending[future] = len(chunk.numbers)
            if len(pending) > num_workers:
                self._take_done(pending)
            if self._strict and self.report.games_refused:
                break
        while pending:
            self._take_done(pending)
        self._stop_if_strict()
        self.seconds += time.perf_counter() - start

    def finish(self) -> None:
        """Commit the report."""
        self._stop_if_strict()
        past_the_end = self._folder.shard(self._num_chunks)
        extra = [shard for shard in self._folder.shards() if shard >= past_the_end]
        if extra:
            raise self._mixed(extra[0], "games behind the end of")
        self._folder.finish(self.report)

    def _take_done(self, pending: dict[Future[ImportReport], int]) -> None:
        """Wait for one and count all that are done."""
        for future in wait(pending, return_when=FIRST_COMPLETED).done:
            del pending[future]
            part = future.result()
            self.new_games += part.games_read
            self.report.add(part)

    def _stop_if_strict(self) -> None:
        bad = self.report.first_refused
        if self._strict and bad is not None:
            raise UsageError(describe_bad_game(self._file, bad))

    def _committed(self, shard: Path, chunk: Chunk) -> ImportReport:
        meta = read_manifest(shard).meta
        try:
            if meta["text_sha256"] == chunk.sha256:
                return ImportReport.from_json(meta["report"])
        except (ConfigError, KeyError, TypeError, ValueError) as error:
            raise CorruptDataError(
                f"{shard} is not a shard of an import ({error!r}); delete it, and import again"
            ) from error
        raise self._mixed(shard, "other games than")

    def _mixed(self, shard: Path, what: str) -> UsageError:
        return UsageError(
            f"{shard} holds {what} {self._file}, which was another file when the import began; "
            "import it into a new folder with --out"
        )


def warm_up() -> None:
    """Load the kernels, or compile them where that was never done."""
    read_games(_WARM_UP)


def import_chunk(folder: ImportFolder, chunk: Chunk, most: int, strict: bool) -> ImportReport:
    """Commit the first ``most`` good games of ``chunk`` as its shard, in a worker.

    With ``strict``, nothing is committed where a game is bad.
    """
    records, report = read_games(chunk.text, chunk.numbers, most)
    report.leave_out(chunk.left_out)
    if records is not None and not (strict and report.games_refused):
        meta = shard_meta(folder.source, chunk.numbers[0], chunk.sha256, report)
        write_shard(folder.shard(chunk.index), records, meta)
    return report


def describe_bad_game(file: Path, bad: BadGame) -> str:
    """Why ``--strict`` ended an import, in one line."""
    return (
        f"{file}, {bad}: {bad.kind.replace('_', ' ')}; correct the game, or leave out --strict to "
        "import the others"
    )
