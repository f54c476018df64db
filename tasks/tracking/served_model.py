"""The registered model: positions as text (chess: FEN) in, moves and probabilities out.

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

from chess_snn.campaign.models.references import model_in
from chess_snn.errors import ConfigError, PositionError
from chess_snn.games import ONGOING, ValueKind, get_game
from chess_snn.games.base import GameBatch
from chess_snn.nets import make_evaluator
from chess_snn.search import make_match_search
from chess_snn.types import Float32Array, UInt64Array

MOST_TREES = 64
"""Positions that are searched together; their trees are in memory at the same time."""

Answer = dict[str, Any]
"""JSON-able: ``fen`` (the position as text), ``best_move`` (chess: UCI), ``wdl_stm`` (win, draw,
loss for the side to move, of the network, where a game has them), ``value_stm`` (of the search: in
[-1, 1], or the rewards to come), ``policy`` (weight of every legal move by its name), ``error``;
what does not apply is None."""


class SpikingChessPlayer(PythonModel):  # type: ignore[misc]  # MLflow's base is untyped
    """Plays positions by the network alone, or by a search that asks it."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load the network, for one CPU thread in fp32, and the settings of the search.

        Raises:
            CorruptDataError: a file is not what was registered.
        """
        model = model_in(Path(context.artifacts["network"]))
        network = model.load_stored()
        self._evaluator = make_evaluator(network, precision="fp32")
        self._game, self._search = get_game(model.game), model.search

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
        absent = dict.fromkeys(("best_move", "wdl_stm", "value_stm", "policy", "error"))
        answers: list[Answer] = [{"fen": fen, **absent} for fen in fens]
        playable = {}
        for row, fen in enumerate(fens):
            try:
                playable[row] = self._game.parse_state(fen)
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
        """Additions to the answer of each state."""
        batch = self._game.allocate(len(states))
        self._game.reset(batch, np.arange(len(states)), np.stack(states))
        names = self._game.spec.terminations
        found = [
            {"error": f"the game is over: {names[code]}"} if code != ONGOING else {}
            for code in batch.termination
        ]
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
            self._game.planes(batch.state), batch.legal_actions, batch.num_legal
        )
        try:
            search = make_match_search(
                self._game, self._evaluator, self._search, simulations=simulations,
                num_games=num_rows,
            )
        except ConfigError as error:
            raise MlflowException.invalid_parameter_value(str(error)) from error
        result = search.run(
            batch, np.arange(num_rows, dtype=np.uint64) + np.uint64(seed),
            np.zeros(num_rows, np.int32), np.full(num_rows, temperature, np.float32),
        )
        answers: list[Answer] = []
        for row, count in enumerate(batch.num_legal):
            state, legal = batch.state[row], batch.legal_actions[row, :count]
            policy = (
                result.policy_targets[row, :count] if simulations
                else _softmax(evaluation.legal_logits[row, :count])
            )
            moves = [self._game.format_action(state, int(action)) for action in legal]
            answers.append({
                "best_move": self._game.format_action(state, int(result.actions[row])),
                "wdl_stm": evaluation.wdl_stm[row].astype(np.float64).tolist()
                if self._game.spec.value_kind is ValueKind.WDL else None,
                "value_stm": float(result.values_stm[row]),
                "policy": dict(zip(moves, policy.astype(np.float64).tolist(), strict=True)),
            })
        return answers


def _fens(model_input: pd.DataFrame) -> Iterable[str]:
    """The column ``fen``; a mapping ``{"fen": [...]}`` arrives as one cell that holds the list."""
    for cell in model_input["fen"]:
        yield from map(str, cell) if isinstance(cell, list | np.ndarray) else [str(cell)]


def _softmax(logits: Float32Array) -> Float32Array:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    policy: Float32Array = weights / weights.sum()
    return policy


mlflow.models.set_model(SpikingChessPlayer())
