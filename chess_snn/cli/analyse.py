"""``chess-snn analyse``: what a network and its search see in positions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
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
from chess_snn.errors import UsageError
from chess_snn.known import DEFAULT_GAME, SHIPPED
from chess_snn.later import to_run
from chess_snn.wording import counted

if TYPE_CHECKING or to_run(__name__):
    import chess

    from chess_snn.api.answers import Analysis, Candidate, Evaluation, Spikes
    from chess_snn.api.matches import player
    from chess_snn.api.network import Net, load
    from chess_snn.api.positions import Move, read_state
    from chess_snn.cli.drawing import draw_position
    from chess_snn.data import write_json, write_text
    from chess_snn.games.chess import to_board
    from chess_snn.report.rasters import raster_svg
    from chess_snn.types import Json, UInt64Array


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
    name = model or SHIPPED + (game_name or DEFAULT_GAME)
    with load(name, game=game_name or None, device=device) as net:
        if spikes_file is not None and not net.network.config.is_spiking:
            raise UsageError(
                f"{net.name} is an ordinary network and has no spikes; leave --spikes out"
            )
        start = time.perf_counter()
        with work_bar(f"{simulations:,} simulations"):
            found = net.search(position, simulations)
            outlooks = net.evaluate_moves(position)
        seconds, state = time.perf_counter() - start, read_state(net.rules, position)
        has_points, done, recorded = net.game != DEFAULT_GAME, found.visits, net.spikes(position)
        changes = _changes_ahead(net, state, found) if spikes_file and not has_points else None
    facts = (
        _points(position, found, outlooks, net.rules.format_state(state)) if has_points
        else _chances(to_board(state), found, outlooks)
    )
    spikes = _spikes(recorded, net.network.config.ticks) if recorded else None
    body: Json = {
        "model": net.name, "search": net.settings.kind, "simulations": done,
    } | facts | {"spikes": spikes, "seconds": round(seconds, 3)}
    if has_points:
        console.print(draw_position(net.rules, state))
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
    if spikes is not None and changes is not None:
        active, changed = recorded.work.sender_share, changes.work.sender_share
        spikes["changed_share"] = changed
        print_message(
            f"{active:.1%} of the neurons fire; {changed:.1%} change by the line's first two moves."
        )
    if spikes_file is not None:
        write_text(spikes_file, raster_svg(
            recorded.activity, levels=recorded.most,
            title=f"{net.name}: {net.rules.format_state(state)}",
        ))
    if json_file is not None:
        write_json(json_file, body)


def _changes_ahead(net: Net, state: UInt64Array, found: Analysis) -> Spikes | None:
    """The changes of spikes until the same player moves again; None where the line is shorter."""
    board, after = to_board(state), to_board(state)
    for move in found.line[:2]:
        if isinstance(move, chess.Move):
            after.push(move)
    is_over = after.is_game_over() or len(after.move_stack) < len(board.move_stack) + 2
    return None if is_over else net.spikes(after, before=board)


def _chances(board: chess.Board, found: Analysis, outlooks: Mapping[Move, Evaluation]) -> Json:
    """The position of chess and its moves, best first."""
    line = [move for move in found.line if isinstance(move, chess.Move)]
    return {
        "fen": board.fen(),
        "value_stm": found.value_stm,
        "network_value_stm": found.evaluation.value_stm,
        "wdl_stm": found.evaluation.wdl_stm,
        "principal_variation": {
            "san": board.variation_san(line), "uci": [move.uci() for move in line],
        },
        "candidates": [
            {
                "san": board.san(each.move), "uci": each.move.uci(), **_searched(each),
                "q_stm": each.value_stm, "wdl_stm": outlooks[each.move].wdl_stm,
            }
            for each in found.candidates if isinstance(each.move, chess.Move)
        ],
    }


def _points(
    position: str, found: Analysis, outlooks: Mapping[Move, Evaluation], board: str
) -> Json:
    """The position of 2048 and its moves, best first; all values in points of the score."""
    advised = player(ADVISER, game="2048").move(position)
    return {
        "game": "2048",
        "position": board,
        "score_to_go": found.value_stm,
        "network_score_to_go": found.evaluation.value_stm,
        "principal_variation": list(found.line),
        "candidates": [
            {
                "move": each.move, **_searched(each), "q_points": each.value_stm,
                "network_points": outlooks[each.move].value_stm,
                "is_advised": each.move == advised,
            }
            for each in found.candidates
        ],
    }


def _searched(candidate: Candidate) -> Json:
    return {
        "visits": candidate.visits, "prior": candidate.prior, "policy": candidate.policy,
    }


def _percent(wdl: Sequence[float]) -> str:
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


def _spikes(spikes: Spikes, ticks: int) -> Json:
    return {"total": spikes.total, "share": spikes.rate, "ticks": ticks, "layers": spikes.rates}
