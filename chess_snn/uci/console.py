"""Commands for people at a terminal, which most engines know: ``d``, ``eval``, ``bench``, perft."""

import time
from collections.abc import Iterator
from typing import Final

import chess

from chess_snn.errors import UsageError
from chess_snn.games.base import Game
from chess_snn.games.chess import from_board, perft
from chess_snn.types import LogFn
from chess_snn.uci.engine import Engine
from chess_snn.uci.limits import Limits
from chess_snn.uci.options import Options
from chess_snn.uci.position import Position
from chess_snn.uci.report import centipawns, wdl_per_mille
from chess_snn.uci.searching import Orders, Search

_PLIES_AT_ONCE: Final = 4
"""Depth of one count, which takes a second or so: orders are looked at between counts."""
_BENCH_NODES: Final = 200
_BENCH_FENS: Final = (
    chess.STARTING_FEN,
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "r1bq1rk1/pp2bppp/2n1pn2/2pp4/3P1B2/2PBPN2/PP1N1PPP/R2QK2R w KQ - 4 8",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
)


def board_lines(board: chess.Board) -> list[str]:
    """The answer to ``d``: the board as White sees it, and its FEN."""
    checkers = " ".join(chess.square_name(square) for square in board.checkers())
    return [*str(board).splitlines(), "", f"Fen: {board.fen()}", f"Checkers: {checkers}"]


def count_moves(board: chess.Board, depth: int, tell: LogFn, orders: Orders) -> list[str]:
    """The answer to ``go perft``: leaves below each move as they are counted, then their sum."""
    total = 1 if depth == 0 else 0
    for move in board.legal_moves if depth > 0 else ():
        board.push(move)
        leaves = sum(_counts(board, depth - 1, orders))
        board.pop()
        if orders.is_stopped:
            return ["info string perft stopped"]
        tell(f"{move.uci()}: {leaves}")
        total += leaves
    return ["", f"Nodes searched: {total}"]


def evaluate(engine: Engine, position: Position, options: Options, _orders: Orders) -> list[str]:
    """The answer to ``eval``: the network's value of the position, without a search.

    Raises:
        UsageError: there is no network, or the position has ended.
    """
    _prepare(engine, options)
    if not position.is_searchable:
        raise UsageError("eval: the game has ended here")
    engine.stand_at(position, None)
    win, draw, loss = (float(share) for share in engine.tree.root_wdl_stm)
    shares = " ".join(map(str, wdl_per_mille(win - loss, draw)))
    return [
        f"Final evaluation: {win - loss:+.3f} cp {centipawns(win - loss)} wdl {shares} "
        "(side to move, the network alone)"
    ]


def bench(
    engine: Engine, game: Game, options: Options, tell: LogFn, orders: Orders
) -> list[str]:
    """The answer to ``bench``: nodes and nodes a second of a few short searches.

    Raises:
        UsageError: there is no network.
    """
    _prepare(engine, options)
    engine.forget()
    nodes, seconds = 0, 0.0
    for number, fen in enumerate(_BENCH_FENS, start=1):
        tell(f"info string position {number} of {len(_BENCH_FENS)}: {fen}")
        start_s = time.monotonic()
        limits = Limits(nodes=_BENCH_NODES)
        search = Search(engine, Position(game, fen), limits, options, start_s, tell)
        search.run(orders)
        seconds += time.monotonic() - start_s
        nodes += search.simulations
        if orders.is_stopped:
            return ["info string bench stopped"]
    return [
        f"Total time (ms): {1000 * seconds:.0f}", f"Nodes searched: {nodes}",
        f"Nodes/second: {nodes / seconds:.0f}",
    ]


def _prepare(engine: Engine, options: Options) -> None:
    engine.prepare(options)
    if not engine.has_network:
        raise UsageError(engine.refusal or "no network: setoption name Model value PATH")


def _counts(board: chess.Board, depth: int, orders: Orders) -> Iterator[int]:
    if orders.is_stopped:
        return
    if depth <= _PLIES_AT_ONCE:
        yield perft(from_board(board), depth)
        return
    for move in board.legal_moves:
        board.push(move)
        yield from _counts(board, depth - 1, orders)
        board.pop()
