"""Engines that misbehave on purpose: programs that speak UCI until they should not."""

import os
import sys
from pathlib import Path

_SOURCE = '''\
#!{python}
import os, signal, sys, time
import chess

FAULT, EVERYWHERE, HERE = {fault!r}, {everywhere!r}, {folder!r}
asked = 0

with open(os.path.join(HERE, "pids"), "a") as pids:
    pids.write(f"{{os.getpid()}}\\n")

def say(text):
    print(text, flush=True)

def is_due(board):
    return EVERYWHERE or (board.turn == chess.BLACK and board.fullmove_number >= 4)

def answer(board, move):
    if FAULT == "slow":
        time.sleep(0.05)
    elif FAULT == "dies now and then":
        if asked == 3:
            os._exit(3)
    elif FAULT == "talks on":
        say(f"bestmove {{move}}")
        move = "a1a1"
    elif FAULT in ("sound", "small") or not is_due(board):
        pass
    elif FAULT == "silent":
        return
    elif FAULT == "dies":
        os._exit(3)
    elif FAULT == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif FAULT == "garbage":
        while True:
            os.write(1, bytes(range(256)) + b"\\nbestmov e2e4\\n")
    elif FAULT == "flood":
        while True:
            os.write(1, b"x" * 4096)
    else:
        move = FAULT
    say(f"bestmove {{move}}")

for line in sys.stdin:
    words = line.split()
    if FAULT == "mute":
        continue
    if words == ["uci"]:
        say("id name Fake \\x07 1.0")
        default, most = (1, 8) if FAULT == "small" else (16, 64)
        say(f"option name Hash type spin default {{default}} min 1 max {{most}}")
        say("uciok")
    elif words == ["isready"]:
        say("readyok")
    elif words[:2] == ["position", "fen"]:
        board = chess.Board(" ".join(words[2:]))
    elif words[:2] == ["position", "startpos"]:
        board = chess.Board()
        for move in words[3:]:
            board.push_uci(move)
    elif words[:1] == ["go"]:
        asked += 1
        best = min(move.uci() for move in board.legal_moves)
        say(f"info depth 1 score cp 0 pv {{best}}")
        answer(board, best)
    elif words == ["setoption", "name", "Hash", "value", "8"] and FAULT == "small":
        pass
    elif words[:1] == ["setoption"]:
        sys.exit(f"unknown option: {{line}}")
'''


def write_engine(folder: Path, fault: str, *, everywhere: bool = False) -> Path:
    """A program that plays the alphabetically first legal move, until its fault is due.

    It is due as black from the fourth move on, or ``everywhere``. A fault that is none of those
    above is what the engine then says in place of a move.
    """
    path = folder / f"{fault}.py" if fault.isalpha() else folder / "engine.py"
    path.write_text(_SOURCE.format(
        python=sys.executable, fault=fault, everywhere=everywhere, folder=str(folder)
    ))
    path.chmod(0o755)
    return path


def running(folder: Path) -> list[int]:
    """Processes of engines from ``folder`` that have not ended."""
    pids = [int(line) for line in (folder / "pids").read_text().split()]
    return [pid for pid in pids if _is_running(pid)]


def num_started(folder: Path) -> int:
    """How many processes engines from ``folder`` have had."""
    return len((folder / "pids").read_text().split())


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
