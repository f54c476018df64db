"""``bench env``: the chess kernels against python-chess, one core each, in the same run.

Both sides play uniformly random games to their end and start again. "Rules" is what a game needs:
legal moves, the move made, and whether and why it ended. "Rules and planes" is what a network
needs on top: bitplanes and the action number of every legal move.
"""

import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Final

import chess
import numpy as np

from chess_snn.bench.report import BenchReport
from chess_snn.games import Game, get_game
from chess_snn.games.chess import PLANE_NAMES, action_of_move
from chess_snn.games.chess.planes import CLOCK_THRESHOLDS, REPETITION_THRESHOLDS
from chess_snn.games.sampling import random_legal_actions
from chess_snn.rng import random_words

RULES_BAR: Final = 100.0
PLANES_BAR: Final = 120.0

_NUM_GAMES: Final = 512
_SEED: Final = 1
_ALL: Final = chess.BB_ALL

_Contender = Callable[[float], float]
"""Plays on for about so many seconds; gives positions per second."""


def run(quick: bool = False) -> BenchReport:
    """Measure both sides in turns and report the median rates and their ratios.

    Args:
        quick: three seconds instead of twenty; the ratios are noisier.
    """
    seconds, num_rounds = (0.3, 2) if quick else (1.0, 5)
    contenders = {
        "python-chess, rules": _python_chess(_play_rules),
        "kernels, rules": make_stepper("chess", with_planes=False),
        "python-chess, rules and planes": _python_chess(_play_rules_and_planes),
        "kernels, rules and planes": make_stepper("chess", with_planes=True),
    }
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(num_rounds):
        for name, play in contenders.items():
            rates[name].append(play(seconds))
    median = {name: statistics.median(values) for name, values in rates.items()}

    report = BenchReport("env")
    for name, rate in median.items():
        report.add(name, rate, "positions/s")
    for what, bar in (("rules", RULES_BAR), ("rules and planes", PLANES_BAR)):
        ratio = median[f"kernels, {what}"] / median[f"python-chess, {what}"]
        report.add(f"ratio, {what}", ratio, "x", at_least=bar)
    report.notes.append(
        f"random play, one core, median of {num_rounds} rounds of {seconds:g} s, "
        f"{_NUM_GAMES} games a batch"
    )
    return report


def make_stepper(game: str, with_planes: bool) -> _Contender:
    """Random games of ``game`` on one core, a batch of 512 a step."""
    plies = _play_batch(get_game(game), with_planes)
    next(plies)  # compiles

    def play(seconds: float) -> float:
        num_plies, elapsed = _repeat(lambda: next(plies), seconds)
        return num_plies * _NUM_GAMES / elapsed

    return play


def _play_batch(game: Game, with_planes: bool) -> Iterator[None]:
    """Endless random games, one ply of the whole batch a turn."""
    batch = game.allocate(_NUM_GAMES)
    keys = np.arange(_SEED, _SEED + _NUM_GAMES, dtype=np.uint64)
    starts = game.initial_states(keys)
    for ply in itertools.count():
        actions = random_legal_actions(batch, keys, np.full(_NUM_GAMES, ply, dtype=np.int32))
        chance = None
        if game.spec.is_stochastic:
            chance = random_words(keys, np.full(_NUM_GAMES, ply, dtype=np.uint64))
        game.step(batch, actions, chance)
        ended = np.flatnonzero(batch.termination)
        if len(ended):
            game.reset(batch, ended, starts[: len(ended)])
        if with_planes:
            game.planes(batch.state)
        yield


def _python_chess(play_ply: Callable[[chess.Board, random.Random], bool]) -> _Contender:
    generator = random.Random(_SEED)
    board = chess.Board()

    def one_ply() -> None:
        if not play_ply(board, generator):
            board.reset()

    def play(seconds: float) -> float:
        num_plies, elapsed = _repeat(one_ply, seconds)
        return num_plies / elapsed

    return play


def _repeat(action: Callable[[], None], seconds: float) -> tuple[int, float]:
    """(how often ``action`` ran, in how many seconds)."""
    count, elapsed = 0, 0.0
    start = time.perf_counter()
    while elapsed < seconds:
        action()
        count += 1
        elapsed = time.perf_counter() - start
    return count, elapsed


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
    """What ``Board.outcome`` says, with the cheap questions first and no claims in advance."""
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
    assert len(words) == len(PLANE_NAMES)
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
"""What a Python program would look actions up in; off-board pairs are in it and never asked for."""
