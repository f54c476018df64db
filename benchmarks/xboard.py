"""Play matches under XBoard: it keeps the clocks, and Polyglot speaks UCI with either engine.

Xvfb is its screen: ``apt install xboard polyglot xvfb xauth``.
"""

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import chess.pgn

from chess_snn.errors import UsageError

_GAMES_FOLDER: Final = "/usr/games"
"""Where Debian installs all but Xvfb."""
_NEEDED: Final = ("xboard", "polyglot", "xvfb-run")
_OURS: Final = "chess-snn"
_FAULTS: Final = (
    "illegal", "invalid", "forfeit", "time", "exited", "died", "crash", "false", "stalls", "abort",
    "resign",
)
"""Words in XBoard's comment on a game that did not end on the board."""
_SECONDS_TO_END: Final = 2
_MOST_MOVES: Final = 300
"""Of one side in a game; with the clocks it bounds the time of a match."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """How the games are played."""

    ours: list[str]
    """Command of our engine."""
    opponent: str
    """Command of the other engine."""
    nodes: int
    """Of the other engine, a move."""
    games: int
    clock_s: float
    increment_s: float


def play_under_xboard(
    conditions: Conditions, openings: list[chess.Board], pgn: Path | None
) -> Iterator[tuple[chess.Color, str]]:
    """Our colour and the ending of each game, from each second one of ``openings``.

    Raises:
        UsageError: XBoard, Polyglot or Xvfb is missing.
    """
    path = os.pathsep.join([os.environ.get("PATH", ""), _GAMES_FOLDER])
    if missing := [name for name in _NEEDED if shutil.which(name, path=path) is None]:
        raise UsageError(f"{', '.join(missing)} missing; apt install xboard polyglot xvfb xauth")
    with tempfile.TemporaryDirectory(prefix="chess-snn-xboard-") as scratch:
        played = Path(scratch, "games.pgn")
        fens = Path(scratch, "openings.fen")
        fens.write_text("".join(f"{board.fen()}\n" for board in openings[::2]))
        played.touch()
        _play(conditions, Path(scratch), fens, played, path)
        if pgn is not None:
            shutil.copyfile(played, pgn)
        with played.open(encoding="latin-1") as file:
            while (game := chess.pgn.read_game(file)) is not None:
                yield game.headers["White"] == _OURS, _ending(game)


def _ending(game: chess.pgn.Game) -> str:
    comment = game.end().comment or game.headers.get("Result", "*")
    if game.errors or any(word in comment.lower() for word in _FAULTS):
        return comment
    winner = {"1-0": "White", "0-1": "Black"}.get(game.headers["Result"])
    if winner is None:
        return "drawn"
    return "won" if game.headers[winner] == _OURS else "lost"


def _play(conditions: Conditions, scratch: Path, fens: Path, pgn: Path, path: str) -> None:
    first = _script(scratch / "ours.sh", f"exec {shlex.join(conditions.ours)}")
    # Polyglot has no limit of nodes, so its every request becomes one.
    second = _script(
        scratch / "other.sh",
        f"sed -u 's/^go .*/go nodes {conditions.nodes}/' | {conditions.opponent}",
    )
    # Compiles our engine's search before a clock runs.
    subprocess.run([first], input=b"isready\nquit\n", stdout=subprocess.DEVNULL, check=True)
    clock_s = round(conditions.clock_s)
    command = [
        "xvfb-run", "-a", "xboard", "-noGUI", "-ini", str(scratch / "xboard.ini"),
        "-fcp", f'polyglot -noini -log false -ec "{first}"', "-fn", _OURS,
        "-scp", f'polyglot -noini -log false -ec "{second}"', "-sn", "opponent",
        "-mg", str(conditions.games), "-matchPause", "100", "-popupExitMessage", "false",
        "-tc", f"{clock_s // 60}:{clock_s % 60:02d}",
        "-inc", str(conditions.increment_s), "-xponder",
        "-lpf", str(fens), "-lpi", "-2", "-sgf", str(pgn),
    ]
    with subprocess.Popen(
        command, env=os.environ | {"PATH": path}, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    ) as process:
        # Without a window, XBoard waits for ever after it has lost an engine.
        most_s = clock_s + _MOST_MOVES * conditions.increment_s + 30
        try:
            process.wait(2 * conditions.games * most_s)
        except subprocess.TimeoutExpired:
            pass  # the games that are missing are reported
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End XBoard, its screen and the engines, if they still run."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sent)
        except ProcessLookupError:
            return
        time.sleep(_SECONDS_TO_END)


def _script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)
