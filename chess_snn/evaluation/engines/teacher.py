"""A UCI engine that labels positions: a policy over its best moves, and a value.

The policy is the softmax of the moves' scores in centipawns. A mate in n moves counts
100 (100 - n) centipawns, so that a sooner mate is preferred. The value is the expected score that
lichess reads from a score s of the best move, 2 / (1 + exp(-k s)) - 1 with k = 0.00368208, fitted
to games of people: it still tells +3 from +6 pawns, which an engine's own forecast of its games
does not. It depends on the score alone, so any engine will do.
"""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import chess
import numpy as np

from chess_snn.errors import EngineError, IllegalMoveError
from chess_snn.evaluation.engines.player import find_engine, parse_engine
from chess_snn.evaluation.engines.pool import EnginePool, EngineSettings
from chess_snn.evaluation.engines.process import Candidate
from chess_snn.games.base import Game, GameBatch
from chess_snn.known import LINES, LINES_TEMPERATURE_CP
from chess_snn.search import SearchResult
from chess_snn.settings import check_range
from chess_snn.types import Float32Array, UInt64Array

_MOST_LINES: Final = 64
_LICHESS_SLOPE: Final = 0.00368208
"""Slope of the expected score, per centipawn; from lichess's page on accuracy."""
_MATE_CP: Final = 10_000
_CP_PER_MOVE: Final = 100
_MOST_CP: Final = 5_000
"""Without a mate; less than a mate that is 50 moves away."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Settings that make a policy of an engine's answer."""

    number: int = LINES
    """Moves that get a share of the policy."""
    temperature_cp: float = LINES_TEMPERATURE_CP
    """Centipawns by which a move must be worse to get 1/e of the better one's share."""

    def __post_init__(self) -> None:
        check_range("--lines", self.number, ge=1, le=_MOST_LINES)
        check_range("--temperature", self.temperature_cp, gt=0.0, le=_MATE_CP)


DEFAULT_LINES: Final = Lines()


class EngineTeacher:
    """Labels positions with one process of an engine, which ends with the teacher."""

    def __init__(self, game: Game, text: str, lines: Lines) -> None:
        """``text`` names an engine and its budget, such as ``stockfish@1000``; starts nothing.

        Raises:
            ConfigError: it names no engine or no budget, or engines do not play ``game``.
            EngineError: the engine is not installed.
        """
        engine, limit = parse_engine(game, text)
        self._game, self._lines = game, lines
        self._pool = EnginePool(find_engine(engine), limit, EngineSettings(processes=1))
        weakref.finalize(self, self._pool.close)

    @property
    def identity(self) -> str:
        """Return what the engine calls itself; starts it if need be.

        Raises:
            EngineError: it does not start.
        """
        return self._pool.identity

    def label(self, batch: GameBatch) -> SearchResult:
        """Label every row of ``batch``, none of which has ended.

        The labels depend on the rows and their order alone, if the budget is nodes or depth.

        Raises:
            EngineError: the engine has no answer to a position, or an illegal one.
        """
        answers = self._pool.candidates(
            [chess.Board(self._game.format_state(state)) for state in batch.state],
            self._lines.number,
        )
        targets = np.zeros(batch.legal_actions.shape, np.float32)
        actions = np.empty(len(batch), np.int16)
        values = np.empty(len(batch), np.float32)
        for row, candidates in enumerate(answers):
            scores = np.array([score_cp(each) for each in candidates])
            played = self._actions(batch.state[row], candidates)
            slots = [int(np.flatnonzero(batch.legal_actions[row] == each)[0]) for each in played]
            targets[row, slots] = softmax_of(scores, self._lines.temperature_cp)
            actions[row], values[row] = played[0], expected_score(scores[0])
        nothing = np.zeros(len(batch), np.float32)
        return SearchResult(actions, values, targets, nothing, nothing)

    def _actions(self, state: UInt64Array, candidates: Sequence[Candidate]) -> list[int]:
        try:
            return [self._game.parse_action(state, each.move) for each in candidates]
        except IllegalMoveError as error:
            raise EngineError(
                f"engine {self.identity} names an illegal move: {error}; use another engine"
            ) from error


def score_cp(candidate: Candidate) -> float:
    """The score in centipawns, side to move's view."""
    if candidate.unit == "cp":
        return float(np.clip(candidate.score, -_MOST_CP, _MOST_CP))
    moves = candidate.score
    worth = max(_MOST_CP, _MATE_CP - _CP_PER_MOVE * abs(moves))
    return float(worth if moves > 0 else -worth)


def softmax_of(scores: np.ndarray, temperature_cp: float) -> Float32Array:
    """float32[n]: softmax of ``scores`` float[n] over the temperature, both in centipawns."""
    weights = np.exp((scores - scores.max()) / temperature_cp)
    shares: Float32Array = (weights / weights.sum()).astype(np.float32)
    return shares


def expected_score(score: float) -> float:
    """Return the value in [-1, 1] of a score in centipawns; see the head of the module."""
    return float(2.0 / (1.0 + np.exp(-_LICHESS_SLOPE * np.clip(score, -_MATE_CP, _MATE_CP))) - 1.0)
