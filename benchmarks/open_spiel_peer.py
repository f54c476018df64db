"""OpenSpiel's search of chess, for `bench search`; imported only if OpenSpiel is installed."""

from collections.abc import Callable
from typing import Any, TypeAlias

import chess
import numpy as np
import pyspiel
from open_spiel.python.algorithms import mcts

from benchmarks.harness import Work
from chess_snn.games import get_game
from chess_snn.games.chess import action_of_move, from_board
from chess_snn.nets.evaluator import Evaluator
from chess_snn.search import SearchSettings

Answer: TypeAlias = tuple[list[float], float]
"""Priors of a state's legal actions, in OpenSpiel's order, and its value for the side to move."""


def uniform(state: Any) -> Answer:
    """The same prior for every action; every position is even."""
    count = len(state.legal_actions())
    return [1 / count] * count, 0.0


def ask(evaluator: Evaluator) -> Callable[[Any], Answer]:
    """Ask ``evaluator`` about one state at a time."""
    game = get_game("chess")

    def answer(state: Any) -> Answer:
        board = chess.Board(str(state))
        sans = [state.action_to_string(action) for action in state.legal_actions()]
        actions = [action_of_move(board.parse_san(san), board.turn) for san in sans]
        evaluation = evaluator.evaluate(
            game.planes(from_board(board)[None]),
            np.array([actions], np.int16), np.array([len(actions)], np.int32),
        )
        logits = evaluation.legal_logits[0].astype(np.float64)
        policy = np.exp(logits - logits.max())
        return list(policy / policy.sum()), float(evaluation.value_stm[0])

    return answer


def playing(answer: Callable[[Any], Answer], num_simulations: int) -> Work:
    """Searching one position of a game and playing the best move, with OpenSpiel's own search."""
    game = pyspiel.load_game("chess")
    exploration = SearchSettings().exploration
    bot = mcts.MCTSBot(game, exploration, num_simulations, _Evaluator(answer), solve=False)
    state = game.new_initial_state()

    def move() -> None:
        nonlocal state
        if state.is_terminal():
            state = game.new_initial_state()
        state.apply_action(bot.mcts_search(state).best_child().action)

    return Work(move, items=num_simulations)


class _Evaluator(mcts.Evaluator):  # type: ignore[misc]
    """Caches one answer for each state, as OpenSpiel's AlphaZero example does.

    OpenSpiel asks for the value first and for the priors at a later visit, and caches neither.
    """

    def __init__(self, answer: Callable[[Any], Answer]) -> None:
        self._answer = answer
        self._answers: dict[str, Answer] = {}

    def evaluate(self, state: Any) -> list[float]:
        _, value = self._once(state)
        own = state.current_player()
        return [value if player == own else -value for player in range(2)]

    def prior(self, state: Any) -> list[tuple[int, float]]:
        policy, _ = self._once(state)
        return list(zip(state.legal_actions(), policy, strict=True))

    def _once(self, state: Any) -> Answer:
        position = str(state)
        if position not in self._answers:
            self._answers[position] = self._answer(state)
        return self._answers[position]
