"""Games of ``chess-snn uci`` against another UCI engine under XBoard, which is nobody's library.

    apt install xboard polyglot xvfb xauth
    python benchmarks/uci_xboard.py --model campaigns/cpu-001 --opponent stockfish --nodes 100

XBoard keeps the clocks and judges moves and claims, Polyglot speaks UCI for it to either engine,
and Xvfb is its screen. Plays with both colours from random openings of four plies, counts how games
ended, and exits with 1 where one ended otherwise than by the rules of chess, or is missing.
"""

import argparse
import collections
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import chess
import chess.pgn

GAMES_FOLDER = "/usr/games"
"""Where Debian and its children keep all but Xvfb."""
NEEDED = ("xboard", "polyglot", "xvfb-run")
OURS = "chess-snn"
FAULTS = ("illegal", "invalid", "forfeit", "time", "exited", "died", "crash", "false", "stalls",
          "abort", "resign")
"""Words in the comment that XBoard puts behind a game which did not end on the board."""
SECONDS_TO_END = 2
MOST_MOVES = 300
"""Of one side in a game; with the clocks it bounds the time that a match may take."""


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--opponent", default="stockfish", help="command of the other engine")
    parser.add_argument("--nodes", type=int, default=100, help="of the other engine, a move")
    parser.add_argument("--games", type=int, default=20)
    parser.add_argument("--clock-s", type=int, default=60)
    parser.add_argument("--increment-s", type=float, default=0.5)
    parser.add_argument("--pgn", type=Path, help="keep the games in this file")
    arguments = parser.parse_args()
    search_path = os.pathsep.join([os.environ.get("PATH", ""), GAMES_FOLDER])
    if missing := [name for name in NEEDED if shutil.which(name, path=search_path) is None]:
        parser.error(f"{', '.join(missing)} missing; apt install xboard polyglot xvfb xauth")
    with tempfile.TemporaryDirectory(prefix="chess-snn-xboard-") as scratch:
        pgn = Path(scratch, "games.pgn")
        _play(arguments, Path(scratch), pgn, search_path)
        text = pgn.read_text(encoding="latin-1") if pgn.exists() else ""
    if arguments.pgn is not None:
        arguments.pgn.write_text(text, encoding="latin-1")
    sys.exit(_judge(text, arguments.games))


def _play(
    arguments: argparse.Namespace, scratch: Path, pgn: Path, search_path: str
) -> None:
    ours = [sys.executable, "-m", "chess_snn", "uci", "--model", str(arguments.model)]
    first = _script(scratch / "ours.sh", f"exec {shlex.join(ours)}")
    # Polyglot knows no limit of nodes: whatever it asks for, the other engine gets that.
    second = _script(
        scratch / "other.sh", f"sed -u 's/^go .*/go nodes {arguments.nodes}/' | "
        f"{arguments.opponent}"
    )
    openings = scratch / "openings.fen"
    openings.write_text("".join(map(_opening, range((arguments.games + 1) // 2))))
    print("compiling our engine's search: up to a minute the first time", flush=True)
    subprocess.run([first], input=b"isready\nquit\n", stdout=subprocess.DEVNULL, check=True)
    command = [
        "xvfb-run", "-a", "xboard", "-noGUI", "-ini", str(scratch / "xboard.ini"),
        "-fcp", f'polyglot -noini -log false -ec "{first}"', "-fn", OURS,
        "-scp", f'polyglot -noini -log false -ec "{second}"', "-sn", "opponent",
        "-mg", str(arguments.games), "-matchPause", "100", "-popupExitMessage", "false",
        "-tc", f"{arguments.clock_s // 60}:{arguments.clock_s % 60:02d}",
        "-inc", str(arguments.increment_s), "-xponder",
        "-lpf", str(openings), "-lpi", "-2", "-sgf", str(pgn),
    ]
    environment = os.environ | {"PATH": search_path}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        # Without its windows, XBoard that has lost an engine waits for ever.
        most_s = arguments.clock_s + MOST_MOVES * arguments.increment_s + 30
        try:
            process.wait(2 * arguments.games * most_s)
        except subprocess.TimeoutExpired:
            print("XBoard has not come to an end in the time that the clocks allow")
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End XBoard, its screen and the engines, if they are still there."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sent)
        except ProcessLookupError:  # all of them have ended
            return
        time.sleep(SECONDS_TO_END)


def _script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def _opening(number: int) -> str:
    board, stream = chess.Board(), random.Random(number)
    for _ in range(4):
        board.push(stream.choice(list(board.legal_moves)))
    return board.fen() + "\n"


def _judge(text: str, num_wanted: int) -> int:
    """Print how the games ended; 1 where anything was wrong, else 0."""
    counts: collections.Counter[str] = collections.Counter()
    num_faults = 0
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        file.write(text)
        file.seek(0)
        while (game := chess.pgn.read_game(file)) is not None:
            ending = game.end().comment or game.headers.get("Result", "*")
            is_fault = any(word in ending.lower() for word in FAULTS) or bool(game.errors)
            num_faults += is_fault
            color = "white" if game.headers["White"] == OURS else "black"
            counts[f"{game.headers['Result']} as {color}"] += 1
            mark = "FAULT " if is_fault else ""
            print(f"game {counts.total()}: {color}, {mark}{game.headers['Result']} {ending}")
    print(", ".join(f"{count} {ending}" for ending, count in counts.most_common()))
    missing = num_wanted - counts.total()
    print(f"{counts.total()} of {num_wanted} games, {num_faults} faults")
    return int(bool(missing or num_faults))


if __name__ == "__main__":
    main()
