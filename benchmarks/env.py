"""The chess kernels beside python-chess, one core each, in the same run; and those of 2048.

Both sides play uniformly random games to their end and start again. "Rules" covers what a game
needs: legal moves, the move made, and whether and why it ended. "Rules and planes" adds what a
network needs: bitplanes and the action number of every legal move. Of 2048, whole games run in one
kernel; "step by step" uses the game protocol, as self-play does.
"""

import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Final

import chess
import numpy as np
import typer

from benchmarks.harness import Pace, Quick, Report, Work, benchmark, rates_in_turn
from benchmarks.random_data import ENV_BAR, STEPPED_GAMES, stepping, stepping_env
from chess_snn.errors import UsageError
from chess_snn.games import get_game
from chess_snn.games.bits import ONE, ZERO, count_trailing_zeros, population_count
from chess_snn.games.chess import action_of_move
from chess_snn.games.chess.planes import CLOCK_THRESHOLDS, REPETITION_THRESHOLDS
from chess_snn.games.twenty48.boards import draw_event, legal_mask, slide, spawn
from chess_snn.games.twenty48.expectimax import line_values, plan_action
from chess_snn.games.twenty48.layout import slide_table
from chess_snn.games.twenty48.step import start_board
from chess_snn.jit import kernel
from chess_snn.rng import random_word
from chess_snn.types import Float32Array, Int64Array, UInt64Array

RULES_BAR: Final = 100.0
PLANES_BAR: Final = 120.0

RANDOM_BAR: Final = 1e7
PLANNED_BAR: Final = 1e5
SCORE_BAR: Final = 3e4
CHANCE_COUNTER: Final = np.uint64(1) << np.uint64(33)
_NUM_GAMES: Final = {0: 10_000, 1: 1_000, 2: 100, 3: 4}
"""Games a round, by depth; each round plays others."""

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
        _measure_2048(report, pace, quick=quick)
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
        "make_env, rules": stepping_env("chess", with_planes=False),
        "make_env, rules and planes": stepping_env("chess", with_planes=True),
    }, pace)
    for name, pace_of_it in rates.items():
        report.add(name, pace_of_it, "positions/s")
    for what, bar in (("rules", RULES_BAR), ("rules and planes", PLANES_BAR)):
        ratio = rates[f"kernels, {what}"] / rates[f"python-chess, {what}"]
        report.add(f"ratio, {what}", ratio, "x", at_least=bar)
        share = rates[f"make_env, {what}"] / rates[f"kernels, {what}"]
        report.add(f"make_env, share of the kernels' speed, {what}", share, "", at_least=ENV_BAR)
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


def _measure_2048(report: Report, pace: Pace, *, quick: bool) -> None:
    """Add random moves and expectimax; rates are medians of rounds."""
    moves_per_s, _ = _whole_games(0, pace.rounds)
    report.add("random moves, whole games", moves_per_s, "moves/s", at_least=RANDOM_BAR)
    for name, with_planes in (("", False), (" with planes", True)):
        rates = rates_in_turn({
            "step by step": stepping("2048", with_planes),
            "make_env": stepping_env("2048", with_planes),
        }, pace)
        for way, stepped in rates.items():
            report.add(f"random moves, {way}{name}", stepped, "moves/s")
        report.add(f"make_env, share of the kernels' speed{name}",
                   rates["make_env"] / rates["step by step"], "", at_least=ENV_BAR)
    for depth in (1, 2) if quick else (1, 2, 3):
        moves_per_s, scores = _whole_games(depth, pace.rounds)
        is_barred = depth == 2
        report.add(f"expectimax:{depth}", moves_per_s, "moves/s",
                   at_least=PLANNED_BAR if is_barred else None)
        report.add(f"expectimax:{depth}, mean score", scores.mean(), "points",
                   at_least=SCORE_BAR if is_barred else None)
        report.note(
            f"expectimax:{depth}: {len(scores)} games, 95 % interval of the mean score "
            f"± {1.96 * scores.std(ddof=1) / len(scores) ** 0.5:,.0f}"
        )
    report.note(f"one core, median of {pace.rounds} rounds")


def _whole_games(depth: int, num_rounds: int) -> tuple[float, Int64Array]:
    """(median moves/s, the scores of all games) by expectimax, at random for depth 0."""
    num_games = _NUM_GAMES[depth]
    keys = np.arange(_SEED, _SEED + num_games * num_rounds, dtype=np.uint64)
    scores, lengths = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)

    def play(games: slice) -> None:
        played = scores[games], lengths[games], slide_table()
        if depth:
            play_planned_games(keys[games], depth, *played, line_values())
        else:
            play_random_games(keys[games], *played)

    play(slice(1))  # compiles
    rates = []
    for first in range(0, len(keys), num_games):
        games = slice(first, first + num_games)
        start = time.perf_counter()
        play(games)
        rates.append(lengths[games].sum() / (time.perf_counter() - start))
    return float(statistics.median(rates)), scores


@kernel
def play_random_games(
    keys: UInt64Array, scores: Int64Array, lengths: Int64Array, slides: UInt64Array
) -> None:
    """Play a game of uniformly random moves for each of ``keys`` uint64[n].

    ``scores`` int64[n] are in points, ``lengths`` int64[n] in moves. A game of key k draws its tile
    at ply p from word ``CHANCE_COUNTER + p`` of the key's stream, and its random action from word
    p, so that ``random_legal_actions`` and ``step`` with those words play the same games.
    """
    for i in range(len(keys)):
        board, score, ply = start_board(keys[i]), ZERO, ZERO
        mask = legal_mask(board, slides)
        while mask != ZERO:
            for _ in range(random_word(keys[i], ply) % population_count(mask)):
                mask &= mask - ONE
            board, points = slide(board, int(count_trailing_zeros(mask)), slides)
            score += points
            board = spawn(board, draw_event(board, random_word(keys[i], CHANCE_COUNTER + ply)))
            ply += ONE
            mask = legal_mask(board, slides)
        scores[i], lengths[i] = score, ply


@kernel
def play_planned_games(
    keys: UInt64Array, depth: int, scores: Int64Array, lengths: Int64Array, slides: UInt64Array,
    lines: Float32Array,
) -> None:
    """Play as :func:`play_random_games` does, with the actions of ``expectimax:depth``."""
    for i in range(len(keys)):
        board, score, ply = start_board(keys[i]), ZERO, ZERO
        action = plan_action(board, depth, slides, lines)
        while action >= 0:
            board, points = slide(board, action, slides)
            score += points
            board = spawn(board, draw_event(board, random_word(keys[i], CHANCE_COUNTER + ply)))
            ply += ONE
            action = plan_action(board, depth, slides, lines)
        scores[i], lengths[i] = score, ply
