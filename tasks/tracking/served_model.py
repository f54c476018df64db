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

from chess_snn.api.network import Net
from chess_snn.api.positions import read_positions
from chess_snn.campaign.models.references import model_in
from chess_snn.errors import ConfigError, PositionError

Answer = dict[str, Any]
"""JSON-able: ``fen`` (the position as text), ``best_move`` (chess: UCI), ``wdl_stm`` (win, draw,
loss for the side to move, of the network, where a game has them), ``value_stm`` (of the search: in
[-1, 1], or the points to come), ``policy`` (weight of every legal move by its name), ``error``;
what does not apply is None."""


class SpikingChessPlayer(PythonModel):  # type: ignore[misc]  # MLflow's base is untyped
    """Plays positions by the network alone, or by a search that asks it."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load the network, for one CPU thread in fp32, and the settings of the search.

        Raises:
            CorruptDataError: a file is not what was registered.
        """
        model = model_in(Path(context.artifacts["network"]))
        self._net = Net(model, precision="fp32", threads=1)

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
        fens = list(_fens(model_input))
        absent = dict.fromkeys(("best_move", "wdl_stm", "value_stm", "policy", "error"))
        answers: list[Answer] = [{"fen": fen, **absent} for fen in fens]
        for answer in answers:
            try:
                read_positions(self._net.rules, [answer["fen"]])
            except PositionError as error:
                answer["error"] = str(error)
        asked = [answer for answer in answers if answer["error"] is None]
        try:
            found = self._net.search(
                [answer["fen"] for answer in asked], simulations, temperature=temperature, seed=seed
            )
        except ConfigError as error:
            raise MlflowException.invalid_parameter_value(str(error)) from error
        for answer, analysis in zip(asked, found, strict=True):
            wdl = analysis.evaluation.wdl_stm
            answer |= {
                "best_move": str(analysis.move),
                "wdl_stm": None if wdl is None else list(wdl),
                "value_stm": analysis.value_stm,
                "policy": {str(move): share for move, share in analysis.policy.items()},
            }
        return answers


def _fens(model_input: pd.DataFrame) -> Iterable[str]:
    """The column ``fen``; a mapping ``{"fen": [...]}`` arrives as one cell that holds the list."""
    for cell in model_input["fen"]:
        yield from map(str, cell) if isinstance(cell, list | np.ndarray) else [str(cell)]


mlflow.models.set_model(SpikingChessPlayer())
