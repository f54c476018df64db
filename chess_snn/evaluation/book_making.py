"""Makes a book of openings: random lines after which Stockfish finds neither side better.

Needed to make the book, not to use it::

    python -m chess_snn.evaluation.book_making --out chess_snn/evaluation/data/openings.txt

The same arguments and engine version make the same lines, whatever the number of workers: every
candidate has its own random numbers, and the engine forgets the last one before it looks at the
next.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import chess
import chess.engine

from chess_snn.config import check_range
from chess_snn.data import write_text
from chess_snn.errors import EngineError, UsageError
from chess_snn.evaluation.engines import EnginePool, EngineSettings, find_engine
from chess_snn.evaluation.engines.process import HASH_MIB
from chess_snn.evaluation.openings import COMMENT, BookLine
from chess_snn.rng import derive_seed

_ENGINE_S: Final = 60.0
"""An engine that has not answered by then is replaced."""
_MATE_CENTIPAWNS: Final = 10_000
_MOST_CANDIDATES: Final = 500
"""For one line, on average, before giving up."""
_CHUNK: Final = 256
"""Candidates drawn at a time; the book does not depend on it."""
_FULL_ARMY: Final = {chess.KNIGHT: 2, chess.BISHOP: 2, chess.ROOK: 2, chess.QUEEN: 1, chess.KING: 1}
_FEWEST_PAWNS: Final = 7


@dataclass(frozen=True, slots=True)
class BookSettings:
    """What a book is made by."""

    seed: int = 1
    lines_each: int = 200
    """Openings of every length."""
    min_plies: int = 4
    max_plies: int = 8
    nodes: int = 20_000
    """That the engine looks at, a candidate."""
    max_centipawns: int = 50
    """Largest evaluation, either side's."""

    def __post_init__(self) -> None:
        check_range("--lines-each", self.lines_each, ge=1)
        check_range("the shortest of --plies", self.min_plies, ge=1)
        check_range("the longest of --plies", self.max_plies, ge=self.min_plies)
        check_range("--nodes", self.nodes, ge=1)
        check_range("--max-centipawns", self.max_centipawns, ge=0)


def random_line(settings: BookSettings, number: int) -> chess.Board | None:
    """Candidate ``number``: uniformly random moves, or None where the line is unfit at sight."""
    lengths = settings.max_plies - settings.min_plies + 1
    board, seen = chess.Board(), {chess.Board().epd()}
    for ply in range(settings.min_plies + number % lengths):
        # Sorted: python-chess does not promise an order of moves.
        moves = sorted(move.uci() for move in board.legal_moves)
        if not moves:
            return None
        word = derive_seed(settings.seed, "book", number, ply)
        board.push_uci(moves[word % len(moves)])
        seen.add(board.epd())
    is_fit = (
        len(seen) == board.ply() + 1  # no position came twice
        and not board.is_check() and not board.is_game_over() and has_full_army(board)
    )
    return board if is_fit else None


def position_key(board: chess.Board) -> str:
    """The same text for positions that transpose into each other, and for swapped colours."""
    return min(board.epd(), board.mirror().epd())


def has_full_army(board: chess.Board) -> bool:
    """Whether both sides have all their pieces, and no more than one pawn less."""
    return all(
        len(board.pieces(chess.PAWN, color)) >= _FEWEST_PAWNS
        and all(len(board.pieces(kind, color)) == num for kind, num in _FULL_ARMY.items())
        for color in chess.COLORS
    )


def open_pool(program: Path, settings: BookSettings, num_processes: int) -> EnginePool:
    """Processes of the engine that looks at the candidates; the caller closes them."""
    limits = EngineSettings(num_processes, answer_s=_ENGINE_S, start_s=_ENGINE_S)
    return EnginePool(program, chess.engine.Limit(nodes=settings.nodes), limits)


def evaluate(pool: EnginePool, boards: list[chess.Board]) -> list[int]:
    """Centipawns of each position, white's view, by an engine that remembers nothing.

    Raises:
        EngineError: the engine fails at a position, again and again.
    """
    centipawns = []
    for board, score in zip(boards, pool.evaluations(boards), strict=True):
        if score is None:
            raise EngineError(
                f"the engine {pool.last_failure}, and again after a restart; it cannot evaluate "
                f"{board.fen()!r}"
            )
        centipawns.append(score.white().score(mate_score=_MATE_CENTIPAWNS))
    return centipawns


def make_book(settings: BookSettings, pool: EnginePool) -> Iterator[tuple[int, BookLine]]:
    """Yield each accepted line with the number of its candidate, until every length has enough.

    Raises:
        UsageError: hardly any candidate is fit.
        EngineError: the engine does not start, or fails.
    """
    found: Counter[int] = Counter()
    taken: set[str] = set()
    lengths = range(settings.min_plies, settings.max_plies + 1)
    for first in range(0, _MOST_CANDIDATES * settings.lines_each * len(lengths), _CHUNK):
        numbered = ((n, random_line(settings, n)) for n in range(first, first + _CHUNK))
        candidates = [
            (number, board) for number, board in numbered
            if board is not None and found[board.ply()] < settings.lines_each
        ]
        scores = evaluate(pool, [board for _, board in candidates])
        for (number, board), centipawns in zip(candidates, scores, strict=True):
            key, length = position_key(board), board.ply()
            if (abs(centipawns) > settings.max_centipawns or key in taken
                    or found[length] == settings.lines_each):
                continue
            moves = tuple(move.uci() for move in board.move_stack)
            yield number, BookLine(len(taken), centipawns, moves)
            taken.add(key)
            found[length] += 1
        if all(found[length] == settings.lines_each for length in lengths):
            return
    raise UsageError(
        f"found {len(taken)} of {settings.lines_each * len(lengths)} openings; ask for fewer, or "
        "allow more centipawns"
    )


def book_head(settings: BookSettings, engine_name: str, num_candidates: int) -> str:
    """The comment at the head of a book: what it holds, and how to make it again."""
    lines = [
        "Openings of chess-snn: <number> <centipawns, white's view> <moves in UCI>.",
        "Stored matches name them by number: never change or reorder a line.",
        f"Made {datetime.now(UTC):%Y-%m-%d} by: python -m chess_snn.evaluation.book_making "
        f"--seed {settings.seed} --lines-each {settings.lines_each}",
        f"  --plies {settings.min_plies} {settings.max_plies} --nodes {settings.nodes} "
        f"--max-centipawns {settings.max_centipawns}",
        f"Engine: {engine_name}, 1 thread, {HASH_MIB} MiB hash, a new game for each candidate.",
        f"Uniformly random moves, {settings.lines_each} lines of each length; kept where the "
        f"engine's evaluation is within {settings.max_centipawns}",
        "centipawns of 0, nobody is in check or misses more than one pawn, no position comes "
        "twice in a line,",
        "and no earlier line ends in the same position, by transposition or with the colours "
        "swapped.",
        f"{num_candidates} candidates were drawn.",
    ]
    return "".join(f"{COMMENT} {line}\n" for line in lines)


def main() -> None:
    """Make a book with the arguments of the command line."""
    parser = argparse.ArgumentParser(prog="book_making", description="Make a book of openings.")
    default = BookSettings()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument("--lines-each", type=int, default=default.lines_each)
    parser.add_argument("--plies", type=int, nargs=2, metavar=("SHORTEST", "LONGEST"),
                        default=(default.min_plies, default.max_plies))
    parser.add_argument("--nodes", type=int, default=default.nodes)
    parser.add_argument("--max-centipawns", type=int, default=default.max_centipawns)
    parser.add_argument("--engine", default="stockfish", help="its name, or a path")
    parser.add_argument("--workers", type=int, default=1, choices=range(1, 1025), metavar="N")
    args = parser.parse_args()
    try:
        program = find_engine(args.engine)
    except EngineError as error:
        parser.error(str(error))
    settings = BookSettings(
        args.seed, args.lines_each, args.plies[0], args.plies[1], args.nodes, args.max_centipawns
    )
    pool = open_pool(program, settings, args.workers)
    lines, last = [], 0
    try:
        for number, line in make_book(settings, pool):
            lines.append(line)
            last = number
            sys.stderr.write(f"\r{len(lines)} openings of {number + 1} candidates")
        name = pool.identity
    finally:
        pool.close()
    sys.stderr.write("\n")
    write_text(args.out, book_head(settings, name, last + 1) + "".join(f"{k}\n" for k in lines))


if __name__ == "__main__":
    main()
