"""One engine in a process of its own, asked over a pipe; every wait has an end.

Only what a match needs of the Universal Chess Interface (Huber & Meyer-Kahlen 2004): the
greeting, options, and ``go`` up to ``bestmove``. Whatever else an engine says is passed over.
"""

import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from chess_snn.errors import ChessSnnError
from chess_snn.evaluation.engines.guard import EngineGuard

HASH_MIB: Final = 16
"""Stockfish's own default. Not a setting: it is part of who plays."""

_LONGEST_LINE: Final = 1 << 16
_LONGEST_IDENTITY: Final = 80
_CHUNK: Final = 1 << 16
_DYING_S: Final = 1.0

_guard: Final = EngineGuard()
os.register_at_fork(after_in_child=_guard.forget)


class EngineFailureError(ChessSnnError):
    """The process died, hung or said nothing that could be used; it must be replaced."""


class EngineProcess:
    """A running engine. After an :class:`EngineFailureError` it can only be released."""

    def __init__(self, program: Path) -> None:
        """Start the program; it is not yet greeted. It ends with this process at the latest.

        Raises:
            EngineFailureError: the system cannot start it.
        """
        self.identity = program.name
        """What the engine calls itself, after the greeting: ``Stockfish 15.1``."""
        try:
            self._process = subprocess.Popen(
                [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, bufsize=0, start_new_session=True,
            )
        except OSError as error:
            raise EngineFailureError(f"could not be started: {error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        for pipe in (self._input, self._output):
            os.set_blocking(pipe.fileno(), False)
        self._readable = select.poll()
        self._readable.register(self._output, select.POLLIN)
        self._unread = bytearray()
        self._is_killed = False
        try:
            _guard.add(self._process.pid)
        except OSError as error:
            self.release()
            raise EngineFailureError(f"could not be guarded: {error}") from error

    def greet(self, within_s: float) -> None:
        """Exchange greetings, and set options that make its answers repeatable.

        Raises:
            EngineFailureError: it does not answer as an engine would.
        """
        deadline = time.monotonic() + within_s
        self._send("uci")
        options = set()
        while (words := self._words(deadline)) != ["uciok"]:
            if words[:2] == ["id", "name"]:
                self.identity = _printable(" ".join(words[2:])) or self.identity
            elif words[:2] == ["option", "name"] and "type" in words:
                options.add(" ".join(words[2 : words.index("type")]))
        for option, value in (("Threads", 1), ("Hash", HASH_MIB)):
            if option in options:
                self._send(f"setoption name {option} value {value}")
        self._await_ready(deadline)

    def best_move(self, fen: str, go: str, within_s: float) -> str:
        """What the engine answers, whatever it is; "" where it names no move.

        It forgets everything first, so its answer does not depend on what it was asked before.

        Raises:
            EngineFailureError: there is no answer within ``within_s`` seconds.
        """
        deadline = time.monotonic() + within_s
        self._send("ucinewgame")
        # Also passes over what a confused engine still had to say of the position before.
        self._await_ready(deadline)
        self._send(f"position fen {fen}", go)
        while (words := self._words(deadline))[:1] != ["bestmove"]:
            pass
        return words[1] if len(words) > 1 else ""

    def kill(self) -> None:
        """End the process at once; may be called while another thread waits for its answer.

        So do processes that it started: an engine is often behind a script, and one that hangs
        would not notice that its script has gone.
        """
        if not self._is_killed:
            self._is_killed = True
            # Of its own session, and so of a group that has its number.
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        _guard.remove(self._process.pid)
        self._process.wait()

    def release(self) -> None:
        """End the process and give its pipes back; nobody may be reading them."""
        self.kill()
        self._input.close()
        self._output.close()

    def _await_ready(self, deadline: float) -> None:
        self._send("isready")
        while self._words(deadline) != ["readyok"]:
            pass

    def _send(self, *lines: str) -> None:
        data = "".join(f"{line}\n" for line in lines).encode()
        try:
            written = os.write(self._input.fileno(), data)
        except BlockingIOError:
            written = 0
        except OSError as error:
            raise EngineFailureError(self._obituary()) from error
        if written < len(data):
            raise EngineFailureError("does not read what it is sent")

    def _words(self, deadline: float) -> list[str]:
        """The next line, cut at spaces."""
        while (end := self._unread.find(b"\n")) < 0:
            if len(self._unread) > _LONGEST_LINE:
                raise EngineFailureError(f"sent a line of over {_LONGEST_LINE} bytes")
            self._read(deadline)
        # An engine may say one useless line after another, each in time.
        _remaining_s(deadline)
        line = self._unread[:end].decode(errors="replace")
        del self._unread[: end + 1]
        return line.split()

    def _read(self, deadline: float) -> None:
        if not self._readable.poll(1000.0 * _remaining_s(deadline)):
            return
        chunk = os.read(self._output.fileno(), _CHUNK)
        if not chunk:
            raise EngineFailureError(self._obituary())
        self._unread += chunk

    def _obituary(self) -> str:
        try:
            status = self._process.wait(_DYING_S)
        except subprocess.TimeoutExpired:
            return "closed its pipes"
        return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"


def _remaining_s(deadline: float) -> float:
    remaining_s = deadline - time.monotonic()
    if remaining_s <= 0:
        raise EngineFailureError("did not answer in time")
    return remaining_s


def _printable(text: str) -> str:
    kept = "".join(character for character in text if character.isprintable())
    return kept[:_LONGEST_IDENTITY]
