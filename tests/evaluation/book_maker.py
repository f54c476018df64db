"""Makes the book of openings: random lines after which Stockfish finds neither side better::

    python tests/evaluation/book_maker.py --out chess_snn/evaluation/data/openings.txt

The same arguments and engine version make the same lines: every candidate has its own random
numbers, and the engine forgets the last one before it looks at the next.
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

from chess_snn.data import write_text
from chess_snn.errors import UsageError
from chess_snn.evaluation.engines.player import find_engine
from chess_snn.evaluation.openings import COMMENT, BookLine
from chess_snn.rng import derive_seed

HASH_MIB: Final = 16
_MATE_CENTIPAWNS: Final = 10_000
_MOST_CANDIDATES: Final = 500
"""For one line, on average, before giving up."""
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


def open_engine(program: Path) -> chess.engine.SimpleEngine:
    """The engine that looks at the candidates, set up as in matches; the caller closes it."""
    engine = chess.engine.SimpleEngine.popen_uci(str(program))
    engine.configure({"Threads": 1, "Hash": HASH_MIB})
    return engine


def evaluate(
    engine: chess.engine.SimpleEngine, settings: BookSettings, board: chess.Board
) -> int:
    """Centipawns of a position, white's view, by an engine that remembers nothing."""
    limit = chess.engine.Limit(nodes=settings.nodes)
    info = engine.analyse(board, limit, game=object(), info=chess.engine.INFO_SCORE)
    return info["score"].white().score(mate_score=_MATE_CENTIPAWNS)


def make_book(
    settings: BookSettings, engine: chess.engine.SimpleEngine
) -> Iterator[tuple[int, BookLine]]:
    """Yield each accepted line with the number of its candidate, until every length has enough.

    Raises:
        UsageError: hardly any candidate is fit.
    """
    found: Counter[int] = Counter()
    taken: set[str] = set()
    lengths = range(settings.min_plies, settings.max_plies + 1)
    for number in range(_MOST_CANDIDATES * settings.lines_each * len(lengths)):
        board = random_line(settings, number)
        if board is None or found[board.ply()] == settings.lines_each:
            continue
        key = position_key(board)
        if key in taken:
            continue
        centipawns = evaluate(engine, settings, board)
        if abs(centipawns) > settings.max_centipawns:
            continue
        moves = tuple(move.uci() for move in board.move_stack)
        yield number, BookLine(len(taken), centipawns, moves)
        taken.add(key)
        found[board.ply()] += 1
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
        f"Made {datetime.now(UTC):%Y-%m-%d} by: python tests/evaluation/book_maker.py "
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
    args = parser.parse_args()
    program = find_engine(args.engine)
    settings = BookSettings(
        args.seed, args.lines_each, args.plies[0], args.plies[1], args.nodes, args.max_centipawns
    )
    lines, last = [], 0
    with open_engine(program) as engine:
        for number, line in make_book(settings, engine):
            lines.append(line)
            last = number
            sys.stderr.write(f"\r{len(lines)} openings of {number + 1} candidates")
        name = engine.id["name"]
    sys.stderr.write("\n")
    write_text(args.out, book_head(settings, name, last + 1) + "".join(f"{k}\n" for k in lines))


if __name__ == "__main__":
    main()
