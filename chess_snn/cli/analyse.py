"""``chess-snn analyse``: what a network and its search think of one position."""

import time
from typing import Annotated

import chess
import numpy as np
import torch
import typer

from chess_snn.campaign.models.references import KNOWN_MODELS
from chess_snn.cli.console import console, make_table, print_message, work_bar
from chess_snn.cli.drawing import draw_position
from chess_snn.cli.options import JsonFile, NetworkDeviceOption, check_writable
from chess_snn.cli.players import (
    ADVISER,
    DEFAULT_GAME,
    GameOption,
    find_model,
    newest_or_untrained,
    read_position,
)
from chess_snn.config import check_range
from chess_snn.data import write_json
from chess_snn.devices import find_device
from chess_snn.errors import PositionError
from chess_snn.evaluation import Analysis, analyse, make_player
from chess_snn.games import get_game
from chess_snn.games.base import Game, GameBatch, ValueKind
from chess_snn.games.chess import move_of_action, moves_of, to_board
from chess_snn.nets import (
    Network,
    count_spikes,
    expand_planes,
    make_evaluator,
)
from chess_snn.search import MAX_SIMULATIONS, make_tree_search
from chess_snn.types import Json


def analyse_command(
    position: Annotated[
        str,
        typer.Argument(help='FEN, of 2048 rows such as "2 . . 4/. . . ./. . . ./. . . 2"; or '
                       '"startpos".'),
    ],
    simulations: Annotated[int, typer.Option(help="Descents of the search.")] = 200,
    model: Annotated[str | None, typer.Option(help=f"A network: {KNOWN_MODELS}.")] = None,
    game_name: GameOption = "",
    top: Annotated[int, typer.Option(help="Moves to show.")] = 8,
    device: NetworkDeviceOption = "cpu",
    json_file: JsonFile = None,
) -> None:
    """Search a position and show its candidate moves, best first.

    Without --model the newest network in campaigns/ or $CHESS_SNN_HOME/campaigns is asked.

    chess-snn analyse startpos --simulations 800 --model campaigns/cpu-001

    chess-snn analyse startpos --game 2048 --simulations 64
    """
    check_range("--simulations", simulations, ge=1, le=MAX_SIMULATIONS)
    check_range("--top", top, ge=1)
    check_writable(json_file)
    find_device(device)
    if model is None:
        chosen = newest_or_untrained(game_name or DEFAULT_GAME)
    else:
        chosen = find_model(model, game_name or None)
    game = get_game(game_name or chosen.game or DEFAULT_GAME)
    root = _set_up(game, position)
    if chosen.weights is None:
        print_message(
            "NO TRAINED NETWORK was found: these are the opinions of an untrained one, which knows "
            f"the rules alone. Give one with --model: {KNOWN_MODELS}."
        )
    network = chosen.load(game)
    with make_evaluator(network, device=device, precision=chosen.precision) as evaluator:
        search = make_tree_search(
            game, evaluator, chosen.search, simulations=simulations, num_games=1
        )
        start = time.perf_counter()
        with work_bar(f"{simulations:,} simulations"):
            analysis = analyse(game, search, root)
        seconds = time.perf_counter() - start
    has_points = game.spec.value_kind is ValueKind.RETURN
    facts = (
        points_json(game, root, analysis) if has_points
        else _to_json(analysis, to_board(root.state[0]))
    )
    body: Json = {
        "model": chosen.label, "search": chosen.search.kind, "simulations": simulations,
    } | facts | {"spikes": _spikes(game, network, root), "seconds": round(seconds, 3)}
    if has_points:
        console.print(draw_position(game, root.state[0]))
        print_points(body, top)
    else:
        _print(body, top)
    _print_spikes(body["spikes"])
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


def _to_json(analysis: Analysis, board: chess.Board) -> Json:
    report = analysis.report
    line = moves_of(board, report.principal_variation)
    candidates = []
    for i in analysis.ranking():
        move = move_of_action(board, int(report.actions[i]))
        candidates.append({
            "san": board.san(move),
            "uci": move.uci(),
            "visits": int(report.visits[i]),
            "prior": float(report.priors[i]),
            "policy": float(report.target[i]),
            "q_stm": float(report.q_stm[i]) if report.visits[i] else None,
            "wdl_stm": analysis.actions_wdl_stm[i].tolist(),
        })
    return {
        "fen": board.fen(),
        "value_stm": report.value_stm,
        "network_value_stm": report.network_value_stm,
        "wdl_stm": analysis.wdl_stm.tolist(),
        "principal_variation": {
            "san": board.variation_san(line), "uci": [move.uci() for move in line],
        },
        "candidates": candidates,
    }


def _spikes(game: Game, network: Network, position: GameBatch) -> Json | None:
    """Spikes of one evaluation of the position in float32; None for an ordinary twin."""
    if not network.config.is_spiking:
        return None
    words_BP = torch.from_numpy(game.planes(position.state).view(np.int64))
    planes_BPHW = expand_planes(words_BP, game.spec.board_shape, torch.float32)
    counts = count_spikes(network, planes_BPHW)
    return {
        "total": counts.per_evaluation,
        "share": counts.rate,
        "ticks": network.config.ticks,
        "layers": {name: layer.rate for name, layer in counts.layers.items()},
    }


def _print(body: Json, top: int) -> None:
    mover = "White" if " w " in body["fen"] else "Black"
    print_message(
        f"{mover} to move. {body['model']}, {body['simulations']:,} simulations in "
        f"{body['seconds']:.1f} s."
    )
    print_message(
        f"Value {body['value_stm']:+.3f} for {mover} after the search, "
        f"{body['network_value_stm']:+.3f} before; the network expects "
        f"{_percent(body['wdl_stm'])} (win/draw/loss)."
    )
    table = make_table(
        None, "move", "UCI", "visits", "prior", "policy", "Q", "win/draw/loss",
        left=("move", "UCI"),
    )
    for move in body["candidates"][:top]:
        q_stm = "" if move["q_stm"] is None else f"{move['q_stm']:+.3f}"
        table.add_row(
            move["san"], move["uci"], f"{move['visits']:,}", f"{move['prior']:.1%}",
            f"{move['policy']:.1%}", q_stm, _percent(move["wdl_stm"]),
        )
    console.print(table)
    left_out = len(body["candidates"]) - top
    if left_out > 0:
        print_message(f"{left_out} more legal moves; show them with --top")
    print_message(f"Principal variation: {body['principal_variation']['san']}")


def _print_spikes(spikes: Json | None) -> None:
    if spikes is None:
        print_message("An ordinary network: it has no spikes.")
    else:
        print_message(
            f"One evaluation costs {spikes['total']:,.0f} spikes: {spikes['share']:.1%} of "
            f"neurons x ticks, in {spikes['ticks']} ticks."
        )


def _percent(wdl: list[float]) -> str:
    return "/".join(f"{100 * share:.0f}" for share in wdl) + " %"


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
    table = make_table(
        None, "move", "visits", "prior", "policy", "Q (points)", "network alone", ADVISER,
        left=("move",),
    )
    for move in body["candidates"][:top]:
        q_points = "" if move["q_points"] is None else f"{move['q_points']:,.0f}"
        table.add_row(
            move["move"], f"{move['visits']:,}", f"{move['prior']:.1%}", f"{move['policy']:.1%}",
            q_points, f"{move['network_points']:,.0f}", "plays it" if move["is_advised"] else "",
        )
    console.print(table)
    print_message(f"Principal variation: {' '.join(body['principal_variation'])}")
