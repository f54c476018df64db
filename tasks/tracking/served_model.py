"""The registered model: positions in FEN in, moves and probabilities out.

MLflow stores a copy of this file beside the weights and runs it to load the model ("models from
code"), so it needs nothing but ``chess_snn`` and MLflow, and nothing in the store is a pickle.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.pyfunc import PythonModel, PythonModelContext

from chess_snn.errors import ConfigError, PositionError
from chess_snn.games import ONGOING, get_game
from chess_snn.games.base import GameBatch
from chess_snn.nets import load_network, make_evaluator
from chess_snn.search import SearchSettings, make_match_search
from chess_snn.types import Float32Array, UInt64Array

GAME = get_game("chess")

MOST_TREES = 64
"""Positions that are searched together; their trees are in memory at the same time."""

Answer = dict[str, Any]
"""JSON-able: ``fen``, ``best_move`` (UCI), ``wdl_stm`` (win, draw, loss for the side to move, of
the network), ``value_stm`` (in [-1, 1], of the search), ``policy`` (weight of every legal move by
UCI), ``error``; what does not apply is None."""


class SpikingChessPlayer(PythonModel):  # type: ignore[misc]  # MLflow's base is untyped
    """Plays positions by the network alone, or by a search that asks it."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load the weights, for one CPU thread in fp32."""
        network = load_network(Path(context.artifacts["weights"]))
        self._evaluator = make_evaluator(network, precision="fp32")

    def predict(
        self, context: PythonModelContext, model_input: pd.DataFrame,
        params: dict[str, Any] | None = None,
    ) -> list[Answer]:
        """Answer each position of ``model_input``, a table with a column ``fen``.

        A malformed, impossible or finished position has its reason in ``error``; the other rows
        are answered.

        Args:
            context: of MLflow; :meth:`load_context` has read it.
            model_input: the positions.
            params: ``simulations`` of the tree search a position (0, the default, asks the network
                once and ``policy`` is the network's; else ``policy`` is the search's target),
                ``temperature`` of the move (0, the default, plays the best), ``seed`` of the
                random numbers of a temperature above 0.

        Raises:
            MlflowException: a parameter is out of its range.
        """
        given = params or {}
        simulations, temperature = given.get("simulations", 0), given.get("temperature", 0.0)
        seed = given.get("seed", 0)
        if simulations < 0 or seed < 0 or not 0 <= temperature < np.inf:
            raise MlflowException.invalid_parameter_value(
                "simulations, temperature and seed must be at least 0, got "
                f"{simulations}, {temperature} and {seed}"
            )
        fens = list(_fens(model_input))
        answers: list[Answer] = [_answer(fen) for fen in fens]
        playable = {}
        for row, fen in enumerate(fens):
            try:
                playable[row] = GAME.parse_state(fen)
            except PositionError as error:
                answers[row]["error"] = str(error)
        rows, states = list(playable), list(playable.values())
        for first in range(0, len(rows), MOST_TREES):
            part = slice(first, first + MOST_TREES)
            looked = self._look(states[part], simulations, temperature, seed)
            for row, answer in zip(rows[part], looked, strict=True):
                answers[row] |= answer
        return answers

    def _look(
        self, states: list[UInt64Array], simulations: int, temperature: float, seed: int
    ) -> list[Answer]:
        """What to add to the answer of each state."""
        batch = GAME.allocate(len(states))
        GAME.reset(batch, np.arange(len(states)), np.stack(states))
        found = [_ended(int(code)) if code != ONGOING else {} for code in batch.termination]
        ongoing = np.flatnonzero(batch.termination == ONGOING)
        if len(ongoing):
            played = self._play(batch.take(ongoing), simulations, temperature, seed)
            for row, answer in zip(ongoing, played, strict=True):
                found[row] = answer
        return found

    def _play(
        self, batch: GameBatch, simulations: int, temperature: float, seed: int
    ) -> list[Answer]:
        """The answers to the rows of ``batch``, none of which has ended."""
        num_rows = len(batch)
        evaluation = self._evaluator.evaluate(
            GAME.planes(batch.state), batch.legal_actions, batch.num_legal
        )
        try:
            search = make_match_search(
                GAME, self._evaluator, SearchSettings(), simulations=simulations,
                num_games=num_rows,
            )
        except ConfigError as error:
            raise MlflowException.invalid_parameter_value(str(error)) from error
        result = search.run(
            batch, np.arange(num_rows, dtype=np.uint64) + np.uint64(seed),
            np.zeros(num_rows, np.int32), np.full(num_rows, temperature, np.float32),
        )
        return [
            _ongoing(
                batch.state[row],
                batch.legal_actions[row, :count],
                result.policy_targets[row, :count] if simulations
                else _softmax(evaluation.legal_logits[row, :count]),
                int(result.actions[row]),
                evaluation.wdl_stm[row],
                float(result.values_stm[row]),
            )
            for row, count in enumerate(batch.num_legal)
        ]


def _fens(model_input: pd.DataFrame) -> Iterable[str]:
    """The column ``fen``; a mapping ``{"fen": [...]}`` arrives as one cell that holds the list."""
    for cell in model_input["fen"]:
        yield from map(str, cell) if isinstance(cell, list | np.ndarray) else [str(cell)]


def _answer(fen: str) -> Answer:
    absent = dict.fromkeys(("best_move", "wdl_stm", "value_stm", "policy", "error"))
    return {"fen": fen, **absent}


def _ended(termination: int) -> Answer:
    return {"error": f"the game is over: {GAME.spec.terminations[termination]}"}


def _softmax(logits: Float32Array) -> Float32Array:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    policy: Float32Array = weights / weights.sum()
    return policy


def _ongoing(
    state: UInt64Array, actions: np.ndarray, policy: Float32Array, action: int,
    wdl_stm: Float32Array, value_stm: float,
) -> Answer:
    moves = [GAME.format_action(state, int(legal)) for legal in actions]
    return {
        "best_move": GAME.format_action(state, action),
        "wdl_stm": wdl_stm.astype(np.float64).tolist(),
        "value_stm": value_stm,
        "policy": dict(zip(moves, policy.astype(np.float64).tolist(), strict=True)),
    }


mlflow.models.set_model(SpikingChessPlayer())
