"""An analysis in points: the moves of a game whose values are returns, such as 2048."""

import numpy as np
from rich.table import Table

from chess_snn.cli.console import console, print_message
from chess_snn.cli.one_game import ADVISER
from chess_snn.evaluation import Analysis, make_player
from chess_snn.games.base import Game, GameBatch
from chess_snn.types import Json


def points_json(game: Game, position: GameBatch, analysis: Analysis) -> Json:
    """The one row of ``position`` and its moves, best first; all values in points of the score."""
    report, state, unit = analysis.report, position.state[0], game.spec.score_unit
    advised = make_player(game, ADVISER).choose(
        position, np.zeros(1, np.uint64), np.zeros(1, np.int32)
    )[0]
    return {
        "game": game.spec.name,
        "position": game.format_state(state),
        "score_to_go": unit * report.value_stm,
        "network_score_to_go": unit * report.network_value_stm,
        # Events are left out of the line, so later actions are named as at the root.
        "principal_variation": [
            game.format_action(state, action) for action in report.principal_variation
        ],
        "candidates": [
            {
                "move": game.format_action(state, int(report.actions[i])),
                "visits": int(report.visits[i]),
                "prior": float(report.priors[i]),
                "policy": float(report.target[i]),
                "q_points": unit * float(report.q_stm[i]) if report.visits[i] else None,
                "network_points": unit * float(analysis.actions_value_stm[i]),
                "is_advised": bool(report.actions[i] == advised),
            }
            for i in analysis.ranking()
        ],
    }


def print_points(body: Json, top: int) -> None:
    """Print what :func:`points_json` found, with the model and the seconds of the search."""
    print_message(
        f"{body['model']}, {body['simulations']:,} simulations in {body['seconds']:.1f} s."
    )
    print_message(
        f"Expected score to go: {body['score_to_go']:,.0f} after the search, "
        f"{body['network_score_to_go']:,.0f} before."
    )
    table = Table()
    for heading in ("move", "visits", "prior", "policy", "Q (points)", "network alone", ADVISER):
        table.add_column(heading, justify="left" if heading == "move" else "right")
    for move in body["candidates"][:top]:
        q_points = "" if move["q_points"] is None else f"{move['q_points']:,.0f}"
        table.add_row(
            move["move"], f"{move['visits']:,}", f"{move['prior']:.1%}", f"{move['policy']:.1%}",
            q_points, f"{move['network_points']:,.0f}", "plays it" if move["is_advised"] else "",
        )
    console.print(table)
    print_message(f"Principal variation: {' '.join(body['principal_variation'])}")
