"""Analysis of one position: the network's evaluation, and the result of its search.

Dimensions: n legal actions of the position.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chess_snn.games.base import Game, GameBatch, ValueKind
from chess_snn.nets.evaluator import Evaluation, Evaluator
from chess_snn.search import RootReport, TreeSearch
from chess_snn.types import Float32Array

_DRAW = np.array([0.0, 1.0, 0.0], dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Analysis:
    """A position before and after its search; all of it is seen by the side to move there."""

    wdl_stm: Float32Array
    """float32[3]: the network's win, draw and loss, without search; float32[0] in a game without
    them."""
    actions_wdl_stm: Float32Array
    """float32[n, 3]: the network's win, draw and loss once each action is played, without search;
    exact where the action ends the game; float32[n, 0] in a game without them. Rows in the order
    of ``report.actions``."""
    actions_value_stm: Float32Array
    """float32[n]: the reward of each action and what the network expects after it, without search;
    in a game of chance before the event."""
    report: RootReport
    """Findings of the search."""

    def ranking(self) -> list[int]:
        """Indices of the actions: the search's choice first, then by visits, then by policy."""
        report = self.report
        choice = report.principal_variation[0]
        return sorted(
            range(len(report.actions)),
            key=lambda i: (
                report.actions[i] == choice, report.visits[i], report.target[i], report.priors[i]
            ),
            reverse=True,
        )


def analyse(
    game: Game, search: TreeSearch, position: GameBatch,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Analysis:
    """Search the one row of ``position``, which has not ended, at temperature 0.

    The same position, network and settings give the same answer every time, unless ``is_stopped``
    ends the search early.
    """
    search.run(
        position, np.zeros(1, np.uint64), np.zeros(1, np.int32), np.zeros(1, np.float32),
        is_stopped,
    )
    report = search.inspect(0)
    wdl, values = _after_actions(game, search.evaluator, position, report)
    return Analysis(
        wdl_stm=_evaluate(game, search.evaluator, position).wdl_stm[0],
        actions_wdl_stm=wdl,
        actions_value_stm=values,
        report=report,
    )


def _after_actions(
    game: Game, evaluator: Evaluator, position: GameBatch, report: RootReport
) -> tuple[Float32Array, Float32Array]:
    """Win, draw and loss float32[n, 3 or 0] and values float32[n], in the view of who acts."""
    children = position.take(np.zeros(len(report.actions), np.int64))
    game.step(children, report.actions)
    live = np.flatnonzero(children.num_legal)
    after = children.take(live)
    if game.spec.is_stochastic:
        after.num_legal[:] = 0  # of events, which have no logits
    answer = _evaluate(game, evaluator, after)
    values = children.reward.copy()
    values[live] += game.spec.value_sign * answer.value_stm
    if game.spec.value_kind is not ValueKind.WDL:
        return np.empty((len(children), 0), np.float32), values
    wdl = np.tile(_DRAW, (len(children), 1))
    wdl[children.reward > 0] = (1.0, 0.0, 0.0)
    wdl[live] = answer.wdl_stm[:, ::-1] if game.spec.value_sign < 0 else answer.wdl_stm
    return wdl, values


def _evaluate(game: Game, evaluator: Evaluator, batch: GameBatch) -> Evaluation:
    return evaluator.evaluate(game.planes(batch.state), batch.legal_actions, batch.num_legal)
