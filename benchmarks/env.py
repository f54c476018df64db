"""The chess kernels beside python-chess, one core each, in the same run.

Both sides play uniformly random games to their end and start again. "Rules" covers what a game
needs: legal moves, the move made, and whether and why it ended. "Rules and planes" adds what a
network needs: bitplanes and the action number of every legal move.
"""

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Annotated, Final

import chess
import numpy as np
import typer

from benchmarks import env_2048
from benchmarks.harness import Pace, Quick, Report, Work, benchmark, rates_in_turn
from benchmarks.random_data import STEPPED_GAMES, stepping
from chess_snn.errors import UsageError
from chess_snn.games import get_game
from chess_snn.games.chess import action_of_move
from chess_snn.games.chess.planes import CLOCK_THRESHOLDS, REPETITION_THRESHOLDS

RULES_BAR: Final = 100.0
PLANES_BAR: Final = 120.0

_SEED: Final = 1
_NUM_PLANES: Final = get_game("chess").spec.num_planes
"""Without those that follow from the rules."""
_ALL: Final = chess.BB_ALL

def run(
    report: Report, quick: Quick = False,
    game: Annotated[str, typer.Option(help="chess or 2048.")] = "chess",
) -> None:
    """Rules and bitplanes on one core: chess beside python-chess, 2048 with its planning player.

    python -m benchmarks env --game 2048
    """
    pace = Pace(rounds=2, turn_s=0.3) if quick else Pace(rounds=5, turn_s=1.0)
    if game == "2048":
        env_2048.measure(report, pace, quick=quick)
    elif game == "chess":
        _measure_chess(report, pace)
    else:
        raise UsageError(f"--game must be one of chess, 2048, got {game!r}")


command = benchmark("env", run)


def _measure_chess(report: Report, pace: Pace) -> None:
    rates = rates_in_turn({
        "python-chess, rules": _python_chess(_play_rules),
        "kernels, rules": stepping("chess", with_planes=False),
        "python-chess, rules and planes": _python_chess(_play_rules_and_planes),
        "kernels, rules and planes": stepping("chess", with_planes=True),
    }, pace)
    for name, rate in rates.items():
        report.add(name, rate, "positions/s")
    for what, bar in (("rules", RULES_BAR), ("rules and planes", PLANES_BAR)):
        ratio = rates[f"kernels, {what}"] / rates[f"python-chess, {what}"]
        report.add(f"ratio, {what}", ratio, "x", at_least=bar)
    report.note(
        f"random play, one core, median of {pace.rounds} rounds of {pace.turn_s:g} s, "
        f"{STEPPED_GAMES} games a batch"
    )


def _python_chess(play_ply: Callable[[chess.Board, random.Random], bool]) -> Work:
    generator = random.Random(_SEED)
    board = chess.Board()

    def one_ply() -> None:
        if not play_ply(board, generator):
            board.reset()

    return Work(one_ply)


def _play_rules(board: chess.Board, generator: random.Random) -> bool:
    """One random ply; False where the game is over instead."""
    moves = list(board.legal_moves)
    if _is_over(board, moves):
        return False
    board.push(generator.choice(moves))
    return True


def _play_rules_and_planes(board: chess.Board, generator: random.Random) -> bool:
    moves = list(board.legal_moves)
    _planes(board)
    np.array([_ACTION_OF[board.turn, m.from_square, m.to_square, m.promotion] for m in moves])
    if _is_over(board, moves):
        return False
    board.push(generator.choice(moves))
    return True


def _is_over(board: chess.Board, moves: list[chess.Move]) -> bool:
    """Same as ``Board.outcome``, with the cheap questions first and no claims in advance."""
    return (
        not moves
        or board.halfmove_clock >= 100
        or board.is_insufficient_material()
        or board.is_repetition(3)
    )


def _planes(board: chess.Board) -> np.ndarray:
    """The planes of :mod:`chess_snn.games.chess.planes`, from python-chess's own bitboards."""
    white = board.turn == chess.WHITE
    kinds = (board.pawns, board.knights, board.bishops, board.rooks, board.queens, board.kings)
    words = [kind & board.occupied_co[side] for side in (white, not white) for kind in kinds]
    words += [
        _ALL * has_right(side)
        for side in (white, not white)
        for has_right in (board.has_kingside_castling_rights, board.has_queenside_castling_rights)
    ]
    ep = board.ep_square if board.has_legal_en_passant() else None
    words.append(0 if ep is None else chess.BB_SQUARES[ep])
    if not white:
        words = [chess.flip_vertical(word) for word in words]
    words += [_ALL * (board.halfmove_clock >= threshold) for threshold in CLOCK_THRESHOLDS]
    words += [_ALL * board.is_repetition(count + 1) for count in REPETITION_THRESHOLDS]
    words.append(_ALL)
    assert len(words) == _NUM_PLANES
    return np.array(words, dtype=np.uint64)


def _all_moves() -> Iterator[tuple[chess.Color, chess.Move]]:
    for turn in chess.COLORS:
        for origin, target in itertools.permutations(chess.SQUARES, 2):
            yield turn, chess.Move(origin, target)
        last, before_last = (7, 6) if turn == chess.WHITE else (0, 1)
        for file, step in itertools.product(range(8), (-1, 0, 1)):
            if 0 <= file + step < 8:
                ends = chess.square(file, before_last), chess.square(file + step, last)
                for piece in (chess.KNIGHT, chess.BISHOP, chess.ROOK, chess.QUEEN):
                    yield turn, chess.Move(*ends, piece)


_ACTION_OF: Final = {
    (turn, move.from_square, move.to_square, move.promotion): action_of_move(move, turn)
    for turn, move in _all_moves()
}
"""The lookup table of a Python program; it contains pairs that no move has."""
