"""``chess-snn analyse``: what a network and its search see in positions."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from chess_snn.cli.console import console, print_message, table_of, work_bar
from chess_snn.cli.options import (
    ADVISER,
    NETWORK,
    DescentsOption,
    GameOption,
    JsonFile,
    NetworkDeviceOption,
    output_option,
)
from chess_snn.errors import PositionError, UsageError
from chess_snn.known import SHIPPED
from chess_snn.later import to_run
from chess_snn.wording import counted

if TYPE_CHECKING or to_run(__name__):
    import numpy as np

    from chess_snn import nets
    from chess_snn.cli.drawing import draw_position
    from chess_snn.cli.players import DEFAULT_GAME, find_model, read_position
    from chess_snn.data import write_json, write_text
    from chess_snn.evaluation.analysis import Analysis, analyse
    from chess_snn.evaluation.named_players import make_player
    from chess_snn.games import get_game
    from chess_snn.games.base import Game, GameBatch, ValueKind
    from chess_snn.games.chess import move_of_action, moves_of, to_board
    from chess_snn.report.rasters import raster_svg
    from chess_snn.search import make_tree_search
    from chess_snn.types import Json


def analyse_command(
    position: Annotated[
        str,
        typer.Argument(help='FEN, of 2048 rows such as "2 . . 4/. . . ./. . . ./. . . 2"; or '
                       '"startpos".'),
    ],
    simulations: DescentsOption = 200,
    model: Annotated[str | None, typer.Option(**NETWORK)] = None,
    game_name: GameOption = "",
    top: Annotated[int, typer.Option(min=1, help="Moves to show.")] = 8,
    device: NetworkDeviceOption = "cpu",
    spikes_file: Annotated[
        Path | None,
        output_option("Draw the spikes and membranes of one evaluation to this file, as SVG.",
                      "--spikes"),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Search a position and show its candidate moves, best first.

    Without --model the network that comes with this program is asked.

    chess-snn analyse startpos --simulations 800 --model campaigns/cpu-001

    chess-snn analyse startpos --game 2048 --simulations 64

    chess-snn analyse startpos --spikes spikes.svg
    """
    chosen = find_model(model or SHIPPED + (game_name or DEFAULT_GAME), game_name or None)
    game = get_game(chosen.game)
    root = _set_up(game, position)
    network = chosen.load(game)
    if spikes_file is not None and not network.config.is_spiking:
        raise UsageError(
            f"{chosen.label} is an ordinary network and has no spikes; leave --spikes out"
        )
    with nets.make_evaluator(network, device=device, precision=chosen.precision) as evaluator:
        search = make_tree_search(
            game, evaluator, chosen.search, simulations=simulations, num_games=1, in_play=True
        )
        start = time.perf_counter()
        with work_bar(f"{simulations:,} simulations"):
            analysis = analyse(game, search, root)
        seconds = time.perf_counter() - start
    has_points = game.spec.value_kind is ValueKind.RETURN
    facts = _points(game, root, analysis) if has_points else _chances(game, root, analysis)
    spikes = _spikes(game, network, root)
    done = sum(candidate["visits"] for candidate in facts["candidates"])
    body: Json = {
        "model": chosen.label, "search": chosen.search.kind, "simulations": done,
    } | facts | {"spikes": spikes, "seconds": round(seconds, 3)}
    if has_points:
        console.print(draw_position(game, root.state[0]))
        print_message(
            f"Expected score to go: {body['score_to_go']:,.0f} after the search, "
            f"{body['network_score_to_go']:,.0f} before."
        )
    else:
        mover = "White" if " w " in body["fen"] else "Black"
        print_message(
            f"{mover} to move. Value {body['value_stm']:+.3f} for {mover} after the search, "
            f"{body['network_value_stm']:+.3f} before; the network expects "
            f"{_percent(body['wdl_stm'])} (win/draw/loss)."
        )
    print_message(f"{body['model']}, {done:,} simulations in {seconds:.1f} s.")
    columns = _POINTS_COLUMNS if has_points else _CHANCES_COLUMNS
    console.print(table_of(None, body["candidates"][:top], columns, left=("move", "UCI")))
    left_out = len(body["candidates"]) - top
    if left_out > 0:
        print_message(f"{left_out} more legal moves; show them with --top")
    line = body["principal_variation"]
    print_message(f"Principal variation: {' '.join(line) if has_points else line['san']}")
    print_message(
        "An ordinary network: it has no spikes." if spikes is None else
        f"One evaluation costs {spikes['total']:,.0f} spikes: {spikes['share']:.1%} of "
        f"neurons x ticks, in {counted(spikes['ticks'], 'tick')}."
    )
    if spikes_file is not None:
        (activity,) = nets.record_activity(
            network, nets.network_input(game.planes(root.state), game.spec.board_shape)
        )
        write_text(spikes_file, raster_svg(
            activity, levels=network.config.most_spikes,
            title=f"{chosen.label}: {game.format_state(root.state[0])}",
        ))
    if json_file is not None:
        write_json(json_file, body)


def _set_up(game: Game, text: str) -> GameBatch:
    """The position as a batch of one.

    Raises:
        PositionError: the text is malformed or impossible, or it is an afterstate.
    """
    position = game.allocate(1)
    game.reset(position, np.zeros(1, np.int64), read_position(game, text)[None])
    if position.num_legal[0] == 0:
        ending = game.spec.terminations[position.termination[0]].replace("_", " ")
        raise PositionError(
            f"nothing to analyse: the game is over in {text!r} ({ending}); give an earlier position"
        )
    return position


def _chances(game: Game, position: GameBatch, analysis: Analysis) -> Json:
    """The one row of ``position``, a chess position, and its moves, best first."""
    report, board = analysis.report, to_board(position.state[0])
    line = moves_of(board, report.principal_variation)
    moves = [move_of_action(board, int(action)) for action in report.actions]
    return {
        "fen": board.fen(),
        "value_stm": report.value_stm,
        "network_value_stm": report.network_value_stm,
        "wdl_stm": analysis.wdl_stm.tolist(),
        "principal_variation": {
            "san": board.variation_san(line), "uci": [move.uci() for move in line],
        },
        "candidates": [
            {
                "san": board.san(moves[i]), "uci": moves[i].uci(), **_searched(analysis, i),
                "q_stm": float(report.q_stm[i]) if report.visits[i] else None,
                "wdl_stm": analysis.actions_wdl_stm[i].tolist(),
            }
            for i in analysis.ranking()
        ],
    }


def _points(game: Game, position: GameBatch, analysis: Analysis) -> Json:
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
                **_searched(analysis, i),
                "q_points": unit * float(report.q_stm[i]) if report.visits[i] else None,
                "network_points": unit * float(analysis.actions_value_stm[i]),
                "is_advised": bool(report.actions[i] == advised),
            }
            for i in analysis.ranking()
        ],
    }


def _searched(analysis: Analysis, i: int) -> Json:
    report = analysis.report
    return {
        "visits": int(report.visits[i]), "prior": float(report.priors[i]),
        "policy": float(report.target[i]),
    }


def _percent(wdl: list[float]) -> str:
    return "/".join(f"{100 * share:.0f}" for share in wdl) + " %"


def _value(value: float | None, form: str) -> str:
    """``value`` formatted; empty if no visit measured it."""
    return "" if value is None else format(value, form)


Columns: TypeAlias = "dict[str, Callable[[Json], str]]"
_SEARCHED: Final[Columns] = {
    "visits": lambda move: f"{move['visits']:,}",
    "prior": lambda move: f"{move['prior']:.1%}",
    "policy": lambda move: f"{move['policy']:.1%}",
}
_CHANCES_COLUMNS: Final[Columns] = {
    "move": lambda move: move["san"],
    "UCI": lambda move: move["uci"],
    **_SEARCHED,
    "Q": lambda move: _value(move["q_stm"], "+.3f"),
    "win/draw/loss": lambda move: _percent(move["wdl_stm"]),
}
_POINTS_COLUMNS: Final[Columns] = {
    "move": lambda move: move["move"],
    **_SEARCHED,
    "Q (points)": lambda move: _value(move["q_points"], ",.0f"),
    "network alone": lambda move: f"{move['network_points']:,.0f}",
    ADVISER: lambda move: "plays it" if move["is_advised"] else "",
}


def _spikes(game: Game, network: nets.Network, position: GameBatch) -> Json | None:
    """Spikes of one evaluation of the position in float32; None for a ReLU baseline."""
    if not network.config.is_spiking:
        return None
    counts = nets.count_spikes(
        network, nets.network_input(game.planes(position.state), game.spec.board_shape)
    )
    return {
        "total": counts.per_evaluation,
        "share": counts.rate,
        "ticks": network.config.ticks,
        "layers": {name: layer.rate for name, layer in counts.layers.items()},
    }
