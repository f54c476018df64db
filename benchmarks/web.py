"""How soon the page of ``chess-snn web`` answers, in a headless Chromium.

An answer takes from the move until the reply is drawn, less the time of the reply's search.
"""

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final

import chess
import typer

from benchmarks.harness import Report, benchmark
from chess_snn.errors import UsageError
from chess_snn.ports import free_port

_PLIES_A_GAME: Final = 40
_TIMEOUT_MS: Final = 120_000
"""Limit of anything on the page; the first search may compile kernels."""
_MOVE: Final = """async ([move, count]) => {
  const list = document.getElementById("moves");
  const start = performance.now();
  document.getElementById("move").value = move;
  document.getElementById("move-form").requestSubmit();
  await new Promise((resolve) => {
    const look = () => {
      if (list.querySelectorAll("button").length < count) return;
      observer.disconnect();
      requestAnimationFrame(resolve);
    };
    const observer = new MutationObserver(look);
    observer.observe(list, { childList: true });
  });
  return performance.now() - start;
}"""
"""Makes a move and returns the milliseconds until ``count`` moves are drawn."""


def run(
    report: Report,
    model: Annotated[str, typer.Option(help="Network to play against.")] = "shipped/chess",
    moves: Annotated[int, typer.Option(min=1, help="Answers to measure.")] = 100,
    visits: Annotated[int, typer.Option(help="Of a search: 0, 50, 200 or 800.")] = 200,
    limit_ms: Annotated[float, typer.Option(help="Bar of 95 % of the answers.")] = 300.0,
) -> None:
    """How soon the page of `chess-snn web` answers a move, on top of its search.

    A headless Chromium plays random moves against the network, which searches on both sides' turns.

    python -m benchmarks web --moves 200
    """
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 -- an extra
    except ModuleNotFoundError as error:
        raise UsageError("this needs Playwright: pip install playwright") from error
    with _serving(model) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(_TIMEOUT_MS)
        searches = _Searches(page)
        page.goto(address)
        page.wait_for_selector("body[data-ready]")
        page.select_option("#network", model)
        page.select_option("#budget", str(visits))
        waits_ms = _answers_ms(page, searches, moves)
        report.add_waits("an answer", waits_ms, limit_ms, limited_share=0.95)
        browser.close()


command = benchmark("web", run)


@contextmanager
def _serving(model: str) -> Iterator[str]:
    """The address of the page."""
    port = free_port()
    command = [sys.executable, "-m", "chess_snn", "web", "--port", str(port), "--model", model]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            if not server.stdout.readline():
                raise UsageError("chess-snn web does not start; it says why above")
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.terminate()


class _Searches:
    """The searches that a page asks for, as its WebSocket shows them."""

    def __init__(self, page: Any) -> None:
        self.seconds: dict[int, float] = {}
        """Time of each search that has ended, by the number of plies before it."""
        self._plies: dict[int, int] = {}
        page.on("websocket", self._follow)

    def _follow(self, socket: Any) -> None:
        socket.on("framesent", self._sent)
        socket.on("framereceived", self._received)

    def _sent(self, frame: str | bytes) -> None:
        request = json.loads(frame)
        if request["type"] == "search":
            self._plies[request["id"]] = len(request["game"]["moves"])

    def _received(self, frame: str | bytes) -> None:
        if isinstance(frame, str) and (answer := json.loads(frame))["type"] == "result":
            self.seconds[self._plies[answer["id"]]] = answer["seconds"]


def _answers_ms(page: Any, searches: _Searches, count: int) -> list[float]:
    stream, board, waits_ms = random.Random(0), chess.Board(), list[float]()
    while len(waits_ms) < count:
        quiet = _quiet_moves(board)
        if not quiet or board.ply() >= _PLIES_A_GAME:
            board.reset()
            page.click("#new-game")
            page.click("#new-dialog [value=start]")
            page.wait_for_selector("#board[aria-busy=false]")
            continue
        move = stream.choice(quiet)
        taken_ms = page.evaluate(_MOVE, [move.uci(), board.ply() + 2])
        board.push(move)
        waits_ms.append(taken_ms - 1000 * searches.seconds.pop(board.ply()))
        board.push_san(page.locator("#moves li button").last.inner_text())
    return waits_ms


def _quiet_moves(board: chess.Board) -> list[chess.Move]:
    """The legal moves that do not end the game; none if it has ended."""
    return [] if _is_over(board) else [
        move for move in board.legal_moves if not _is_over(_after(board, move))
    ]


def _after(board: chess.Board, move: chess.Move) -> chess.Board:
    after = board.copy()
    after.push(move)
    return after


def _is_over(board: chess.Board) -> bool:
    return board.is_game_over() or board.is_repetition(3) or board.halfmove_clock >= 100
