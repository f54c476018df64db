"""The searches of one connection: chess by a growing tree, 2048 by one of a fixed size.

What a search finds goes to the browser as ``info`` and ``result`` messages; chances and values are
White's, so that bars do not jump with the side to move.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import chess
import numpy as np

from chess_snn.api.network import Net
from chess_snn.errors import UsageError
from chess_snn.games.base import GameBatch
from chess_snn.games.chess import moves_of
from chess_snn.search import Line
from chess_snn.types import Json
from chess_snn.uci.engine import Engine
from chess_snn.uci.options import Options
from chess_snn.uci.position import Position
from chess_snn.uci.report import moves_to_mate, wdl_per_mille
from chess_snn.web.networks import Networks, spikes_frame
from chess_snn.web.positions import CHESS, TILES, chess_position, ending, legal_of, tiles_row
from chess_snn.web.protocol import ChessGame, SearchRequest, TilesGame

TREE_MIB: Final = 64
"""Memory of a connection's tree."""
_INFO_PERIOD_S: Final = 0.15
_SPIKES_PERIOD_S: Final = 0.6
"""Between two frames of spikes, which take longer than a wave."""
_PLIES_OF_A_TURN: Final = 2
_MOST_CANDIDATES: Final = 8
_LONGEST_LINE: Final = 16
"""Plies of a line that the page shows."""

Send = Callable[[Json | bytes], None]
"""Takes a message to the browser; never raises or waits."""


@dataclass(frozen=True, slots=True)
class Place:
    """Place where the networks of a connection run."""

    device: str = "cpu"
    threads: int = 1


class Searcher:
    """The trees of one connection. For one thread at a time; close it."""

    def __init__(self, networks: Networks, place: Place) -> None:
        self._networks, self._place = networks, place
        self._engine: Engine | None = None
        self._tiles: Net | None = None
        self._net: Net | None = None
        """The network that either was made for."""

    def close(self) -> None:
        """End the networks' threads."""
        if self._engine is not None:
            self._engine.close()
        if self._tiles is not None:
            self._tiles.close()
        self._engine = self._tiles = self._net = None

    def search(self, request: SearchRequest, stop: threading.Event, send: Send) -> None:
        """Search until the budget is spent or ``stop`` is set; ``send`` gets all that is found.

        Raises:
            ChessSnnError: the game or the network cannot be used, and why.
        """
        model = self._networks.find(request.model)
        if model.game != request.game.kind:
            raise UsageError(f"{request.model} plays {model.game}, not {request.game.kind}")
        net = self._networks.load(model)
        if net is not self._net:
            self.close()
            self._net = net
        if isinstance(request.game, ChessGame):
            self._search_chess(request, request.game, net, stop, send)
        else:
            self._search_tiles(request, request.game, net, stop, send)

    def _search_chess(
        self, request: SearchRequest, game: ChessGame, net: Net,
        stop: threading.Event, send: Send,
    ) -> None:
        start_s, position = time.monotonic(), chess_position(game)
        if (over := ending(position.board)) is not None or not position.is_searchable:
            reason = over[0] if over else "neither side can mate"
            raise UsageError(f"the game is over ({reason}); there is nothing to search")
        if self._engine is None:
            self._engine = self._prepared_engine(net)
        before = None
        if len(game.moves) >= _PLIES_OF_A_TURN:
            before = Position.after(CHESS, game.start, game.moves[:-_PLIES_OF_A_TURN]).root
        _ChessSearch(self._engine, position, before, request, net, start_s, send).run(stop)

    def _prepared_engine(self, net: Net) -> Engine:
        engine = Engine(CHESS, lambda _text: net, lambda _line: None)
        engine.prepare(Options(
            model=net.name, device=self._place.device, threads=self._place.threads,
            hash_mib=TREE_MIB,
        ))
        if engine.refusal:
            raise UsageError(engine.refusal)
        return engine

    def _search_tiles(
        self, request: SearchRequest, game: TilesGame, net: Net, stop: threading.Event, send: Send,
    ) -> None:
        start_s, (row, _) = time.monotonic(), tiles_row(game)
        if not len(legal_of(row)):
            raise UsageError("the game is over; there is nothing to search")
        if self._tiles is None:
            self._tiles = net.copy(device=self._place.device, threads=self._place.threads)
        send(_spikes_of(request, net, row, "position", ""))
        found = self._tiles.search(
            TILES.format_state(row.state[0]), request.simulations, is_stopped=stop.is_set
        )
        send({
            "type": "result", "id": request.id, "model": net.name,
            "seconds": time.monotonic() - start_s, "score_to_go": found.value_stm,
            "candidates": [
                {
                    "move": candidate.move, "visits": candidate.visits,
                    "policy": candidate.prior, "points": candidate.value_stm,
                }
                for candidate in found.candidates
            ],
        })


class _ChessSearch:
    """One search of a chess position."""

    def __init__(
        self, engine: Engine, position: Position, before: GameBatch | None,
        request: SearchRequest, net: Net, start_s: float, send: Send,
    ) -> None:
        """``before`` is where the same player moved last, if that was in this game."""
        self._before = before
        self._engine, self._request, self._net = engine, request, net
        self._root, self._board = position.root, position.board.copy(stack=False)
        self._start_s, self._send = start_s, send
        self._shown_line: tuple[int, ...] = ()
        engine.stand_at(position, None)

    def run(self, stop: threading.Event) -> None:
        """Search, with a message now and then, and the result at the end."""
        tree, pace, budget = self._engine.tree, self._engine.pace, self._request.simulations
        pace.begin_search()
        self._send(_spikes_of(self._request, self._net, self._root, "position", ""))
        lines = self._lines()
        self._report("info", lines)
        if self._before is not None:
            self._send(
                _spikes_of(self._request, self._net, self._root, "changes", "", self._before)
            )
        next_info_s = next_spikes_s = 0.0
        while tree.visits < budget and not tree.is_full and not stop.is_set():
            if self._is_late() or (lines and lines[0].win_plies):
                break
            wave_s = time.monotonic()
            leaves = pace.leaves(tree.visits, budget - tree.visits)
            tree.grow(leaves)
            now_s = time.monotonic()
            pace.record(leaves, now_s - wave_s)
            if now_s >= next_info_s:
                lines = self._lines()
                self._report("info", lines)
                next_info_s = time.monotonic() + _INFO_PERIOD_S
            if now_s >= next_spikes_s:
                self._show_spikes(lines[0])
                next_spikes_s = time.monotonic() + _SPIKES_PERIOD_S
        lines = self._lines()
        if not stop.is_set():
            self._show_spikes(lines[0])
        self._report("result", lines)

    def _is_late(self) -> bool:
        most_s = self._request.seconds
        return most_s is not None and time.monotonic() - self._start_s >= most_s

    def _show_spikes(self, line: Line) -> None:
        """Send the spikes at the end of the best line, which the search has just read."""
        if line.actions == self._shown_line:
            return
        self._shown_line = line.actions
        row, played = self._root.take(np.zeros(1, np.int64)), []
        for action in line.actions:
            before = row.take(np.zeros(1, np.int64))
            CHESS.step(row, np.array([action], np.int16))
            if not row.num_legal[0]:
                row = before  # the network is not asked about a game that is over
                break
            played.append(action)
        text = self._board.variation_san(moves_of(self._board, played)) if played else ""
        self._send(_spikes_of(self._request, self._net, row, "line", text))

    def _lines(self) -> list[Line]:
        """Return as many lines as the page shows, best first."""
        return self._engine.tree.lines(_MOST_CANDIDATES)

    def _report(self, kind: str, lines: Sequence[Line]) -> None:
        tree, seconds = self._engine.tree, time.monotonic() - self._start_s
        best = lines[0]
        value_stm = float(np.sign(best.win_plies)) if best.win_plies else best.value_stm
        wdl_stm = wdl_per_mille(value_stm, float(tree.root_wdl_stm[1]))
        network_wdl = [float(share) for share in tree.root_wdl_stm]
        is_white = self._board.turn == chess.WHITE
        self._send({
            "type": kind, "id": self._request.id, "model": self._net.name,
            "visits": tree.visits, "seconds": seconds,
            "wdl_white": _white(wdl_stm, is_white),
            "network_wdl_white": _white(network_wdl, is_white),
            "value_white": value_stm if is_white else -value_stm,
            "candidates": [self._candidate(line) for line in lines],
            "others": int(self._root.num_legal[0]) - len(lines),
        })

    def _candidate(self, line: Line) -> Json:
        moves = moves_of(self._board, line.actions[:_LONGEST_LINE])
        return {
            "uci": moves[0].uci(), "san": self._board.san(moves[0]), "visits": line.visits,
            "policy": line.prior, "value_stm": line.value_stm if line.visits else None,
            "mate": moves_to_mate(line.win_plies) if line.win_plies else None,
            "line": self._board.variation_san(moves), "line_uci": [move.uci() for move in moves],
        }


def _white(shares: Sequence[float], is_white: bool) -> list[float]:
    """Win, draw, loss of the side to move as shares of 1 in White's view."""
    total = sum(shares)
    seen = [share / total for share in shares]
    return seen if is_white else seen[::-1]


def _spikes_of(
    request: SearchRequest, net: Net, row: GameBatch, of: str, line: str,
    before: GameBatch | None = None,
) -> bytes:
    flips = bool(net.rules.side_to_move(row.state)[0])
    (spikes,) = net.spikes_of(row, before)
    return spikes_frame(spikes, {"id": request.id, "of": of, "line": line, "flips": flips})
