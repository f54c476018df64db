"""A headless Chromium and a page's server as a process of its own, for tests of the page."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from chess_snn.ports import free_port

ROOT = Path(__file__).parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome")
READY_MS = 120_000
"""For what waits for the first search, which may compile kernels."""


def find_chromium() -> str | None:
    """The system's Chromium; None where only Playwright's own may be there."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextlib.contextmanager
def serving(*options: str, **variables: str) -> Iterator[str]:
    """The address of `chess-snn web` with these options and environment variables."""
    port = free_port()
    address = f"http://127.0.0.1:{port}/"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    process = subprocess.Popen(
        [sys.executable, "-m", "chess_snn", "web", "--port", str(port), *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"the page is at {address}\n"
        wait_for(address)
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=60)


def wait_for(address: str, timeout_s: float = 60.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while True:
        try:
            urllib.request.urlopen(address).close()
        except urllib.error.HTTPError:
            return  # it demands a password
        except OSError:
            assert time.monotonic() < deadline_s, "the server did not start"
            time.sleep(0.05)
        else:
            return


class Opened:
    """The page in a browser, as a person handles it."""

    def __init__(self, page, address: str) -> None:
        self.page = page
        self.faults: list[str] = []
        page.set_default_timeout(READY_MS)
        page.on("console", lambda message: self._hear(message.type, message.text))
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", lambda request: self._see(request.url, address))
        page.goto(address)
        page.wait_for_selector("body[data-ready]")

    def _hear(self, kind: str, text: str) -> None:
        if kind == "error" and "404" not in text:  # without a campaign there is none to show
            self.faults.append(text)

    def _see(self, url: str, address: str) -> None:
        if not url.startswith((address, "blob:", address.replace("http", "ws"))):
            self.faults.append(f"a request to {url}")

    def wait(self, script: str, argument: object = None) -> None:
        """Until the function ``script`` is true; the page's policy forbids Playwright's own way."""
        deadline_s = time.monotonic() + READY_MS / 1000
        while not self.page.evaluate(script, argument):
            assert time.monotonic() < deadline_s, f"never true: {script} of {argument!r}"
            time.sleep(0.01)

    def new_game(self, colour: str, visits: str = "0") -> None:
        self.page.select_option("#budget", visits)
        self.page.click("#new-game")
        self.page.check(f"[name=colour][value={colour}]")
        self.page.click("#new-dialog [value=start]")
        self.wait_for_board()

    def load(self, text: str) -> None:
        """Import a FEN or a PGN; then both sides are the person's."""
        self.page.click("#import")
        self.page.fill("#text", text)
        self.page.click("#text-load")
        self.page.wait_for_selector("#text-dialog", state="hidden")
        self.wait_for_board()

    def wait_for_board(self) -> None:
        """Until the server has described the position that was asked for last."""
        self.page.wait_for_selector("#board[aria-busy=false]")

    @property
    def moves(self) -> list[str]:
        return self.page.locator("#moves li button").all_inner_texts()

    @property
    def status(self) -> str:
        return self.page.inner_text("#status")

    def wait_for_moves(self, count: int) -> None:
        self.wait(
            "count => document.querySelectorAll('#moves li button').length === count", count
        )

    def wait_for_status(self, begins: str) -> None:
        self.wait(
            "begins => new RegExp(begins).test(document.getElementById('status').textContent)",
            begins,
        )

    def wait_for_spikes(self, total: float) -> None:
        self.wait(
            "text => document.querySelector('#chess-spikes .summary').textContent.startsWith(text)",
            f"{total:,.0f} spikes",
        )

    def choose_registered(self, address: str) -> None:
        self.page.once("dialog", lambda dialog: dialog.accept(address))
        self.page.select_option("#network", label="a registered network …")
        assert self.page.input_value("#network") == address

    def exported(self) -> tuple[str, str]:
        """FEN and PGN."""
        self.page.click("#export")
        self.page.wait_for_selector("#text-dialog[open]")
        fen, _, pgn = self.page.input_value("#text").partition("\n\n")
        self.page.keyboard.press("Escape")
        return fen, pgn

    def centre(self, square: str) -> tuple[float, float]:
        box = self.page.locator("#board svg").bounding_box()
        file, rank = "abcdefgh".index(square[0]), int(square[1]) - 1
        is_flipped = self.page.locator("#player-bottom").get_attribute("data-side") == "black"
        column, row = (7 - file, rank) if is_flipped else (file, 7 - rank)
        side = box["width"] / 8
        return box["x"] + (column + 0.5) * side, box["y"] + (row + 0.5) * side

    def drag(self, move: str) -> None:
        self.page.mouse.move(*self.centre(move[:2]))
        self.page.mouse.down()
        self.page.mouse.move(*self.centre(move[2:4]), steps=4)
        self.page.mouse.up()

    def click(self, move: str) -> None:
        for square in (move[:2], move[2:4]):
            self.page.mouse.click(*self.centre(square))
