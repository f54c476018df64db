"""One position looked at closely: what the network says of it, and what its search found.

Dimensions: n legal actions of the position.
"""

from dataclasses import dataclass

import numpy as np

from chess_snn.games.base import Game, GameBatch
from chess_snn.nets.evaluator import Evaluator
from chess_snn.search import RootReport, TreeSearch
from chess_snn.types import Float32Array

_DRAW = np.array([0.0, 1.0, 0.0], dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Analysis:
    """A position before and after its search; all of it is seen by the side to move there."""

    wdl_stm: Float32Array
    """float32[3]: the network's win, draw and loss, without search."""
    actions_wdl_stm: Float32Array
    """float32[n, 3]: the network's win, draw and loss once each action is played, without search;
    exact where the action ends the game. Rows in the order of ``report.actions``."""
    report: RootReport
    """What the search found."""

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


def analyse(game: Game, search: TreeSearch, position: GameBatch) -> Analysis:
    """Search the one row of ``position``, which has not ended, at temperature 0.

    The same position, network and settings give the same answer every time.
    """
    search.run(
        position, np.zeros(1, np.uint64), np.zeros(1, np.int32), np.zeros(1, np.float32)
    )
    report = search.inspect(0)
    return Analysis(
        wdl_stm=_wdl_stm(game, search.evaluator, position)[0],
        actions_wdl_stm=_wdl_after_actions(game, search.evaluator, position, report),
        report=report,
    )


def _wdl_after_actions(
    game: Game, evaluator: Evaluator, position: GameBatch, report: RootReport
) -> Float32Array:
    """float32[n, 3], in the view of the player who acts."""
    children = position.take(np.zeros(len(report.actions), np.int64))
    game.step(children, report.actions)
    wdl = np.tile(_DRAW, (len(children), 1))
    wdl[children.reward > 0] = (1.0, 0.0, 0.0)
    live = np.flatnonzero(children.num_legal)
    after = _wdl_stm(game, evaluator, children.take(live))
    wdl[live] = after[:, ::-1] if game.spec.value_sign < 0 else after
    return wdl


def _wdl_stm(game: Game, evaluator: Evaluator, batch: GameBatch) -> Float32Array:
    return evaluator.evaluate(
        game.planes(batch.state), batch.legal_actions, batch.num_legal
    ).wdl_stm
