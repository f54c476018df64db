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
from mlflow.pyfunc import PythonModel, PythonModelContext

from chess_snn.errors import PositionError
from chess_snn.games import ONGOING, get_game
from chess_snn.nets import load_network, make_evaluator
from chess_snn.types import Float32Array, UInt64Array

GAME = get_game("chess")

Answer = dict[str, Any]
"""JSON-able: ``fen``, ``best_move`` (UCI), ``wdl_stm`` (win, draw, loss for the side to move),
``policy`` (probability of every legal move by UCI), ``error``; what does not apply is None."""


class SpikingChessPlayer(PythonModel):  # type: ignore[misc]  # MLflow's base is untyped
    """What a network says of positions at one look, without search."""

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
        """
        fens = list(_fens(model_input))
        answers: list[Answer] = [_answer(fen) for fen in fens]
        playable = {}
        for row, fen in enumerate(fens):
            try:
                playable[row] = GAME.parse_state(fen)
            except PositionError as error:
                answers[row]["error"] = str(error)
        for row, answer in zip(playable, self._look(list(playable.values())), strict=True):
            answers[row] |= answer
        return answers

    def _look(self, states: list[UInt64Array]) -> Iterable[Answer]:
        """What to add to the answer of each state."""
        if not states:
            return []
        batch = GAME.allocate(len(states))
        GAME.reset(batch, np.arange(len(states)), np.stack(states))
        evaluation = self._evaluator.evaluate(
            GAME.planes(batch.state), batch.legal_actions, batch.num_legal
        )
        return [
            _ended(int(batch.termination[row])) if batch.termination[row] != ONGOING
            else _ongoing(
                state,
                batch.legal_actions[row, : batch.num_legal[row]],
                evaluation.legal_logits[row, : batch.num_legal[row]],
                evaluation.wdl_stm[row],
            )
            for row, state in enumerate(states)
        ]


def _fens(model_input: pd.DataFrame) -> Iterable[str]:
    """The column ``fen``; a mapping ``{"fen": [...]}`` arrives as one cell that holds the list."""
    for cell in model_input["fen"]:
        yield from map(str, cell) if isinstance(cell, list | np.ndarray) else [str(cell)]


def _answer(fen: str) -> Answer:
    return {"fen": fen, "best_move": None, "wdl_stm": None, "policy": None, "error": None}


def _ended(termination: int) -> Answer:
    return {"error": f"the game is over: {GAME.spec.terminations[termination]}"}


def _ongoing(
    state: UInt64Array, actions: np.ndarray, logits: Float32Array, wdl_stm: Float32Array
) -> Answer:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    moves = [GAME.format_action(state, int(action)) for action in actions]
    policy = dict(zip(moves, (weights / weights.sum()).tolist(), strict=True))
    return {
        "best_move": max(policy, key=policy.__getitem__),
        "wdl_stm": wdl_stm.astype(np.float64).tolist(),
        "policy": policy,
    }


mlflow.models.set_model(SpikingChessPlayer())
