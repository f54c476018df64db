"""One engine in a process of its own: python-chess's UCI client, with an end to every wait.

python-chess speaks the protocol. This adds what matches need of it: a time limit for every answer,
and answers that depend on the position alone.
"""

import asyncio
import logging
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final, Self

import chess
import chess.engine

from chess_snn.errors import ChessSnnError
from chess_snn.processes import CANNOT_RUN, describe_exit, group_command

_OPTIONS: Final = {"Threads": 1, "Hash": 16}
"""Set where the engine has them; they make its answers repeatable. 16 MiB are Stockfish's own
default. Not settings: they are part of who plays."""
_LONGEST_LINE: Final = 1 << 16
_LONGEST_IDENTITY: Final = 80
_STDOUT: Final = 1


class EngineFailureError(ChessSnnError):
    """The process died, hung or sent nothing that could be used; it must be replaced."""

    code = "engine.failed"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One move that an engine considered, in the side to move's view."""

    move: str
    """Move as the engine wrote it, legal or not."""
    unit: str
    """``cp``, or ``mate`` where ``score`` is the moves to mate, negative if it is mated."""
    score: int


class EngineProcess(chess.engine.UciProtocol):
    """A running engine. After an :class:`EngineFailureError` it can only be released."""

    def __init__(self) -> None:
        super().__init__()
        self.identity = ""
        """Name that the engine gave itself, after the greeting: ``Stockfish 15.1``."""
        self._exited = asyncio.Event()
        self._answer: str | None = None
        """The first move that it named since this was set to None; "" where it named none."""
        self._candidates: dict[str, Candidate] | None = None
        """Last report of each line, by the line's number; None where that is not asked."""
        self._has_long_line = False

    @classmethod
    async def start(cls, program: Path) -> Self:
        """Start the program; it is not yet greeted. It ends with this process at the latest.

        Raises:
            EngineFailureError: the system cannot start it.
        """
        try:
            _, engine = await cls.popen(
                group_command([str(program)]), stderr=subprocess.DEVNULL, start_new_session=True
            )
        except OSError as error:
            raise EngineFailureError(f"could not be started: {error}") from error
        engine.identity = program.name
        return engine

    async def greet(self, within_s: float) -> None:
        """Exchange greetings, and set options that make its answers repeatable.

        Raises:
            EngineFailureError: it does not answer as an engine would.
        """
        async with self._in_time(within_s):
            await self.initialize()
            await self.configure({
                name: _nearest(self.options[name], value)
                for name, value in _OPTIONS.items() if name in self.options
            })
            await self.ping()
        name = "".join(filter(str.isprintable, self.id.get("name", "")))
        self.identity = name[:_LONGEST_IDENTITY] or self.identity

    async def best_move(
        self, board: chess.Board, limit: chess.engine.Limit, within_s: float
    ) -> str:
        """The engine's answer as text, legal or not; "" where it names no move.

        It forgets everything first, so its answer does not depend on what it was asked before.

        Raises:
            EngineFailureError: there is no answer within ``within_s`` seconds.
        """
        async with self._in_time(within_s):
            # Passes over what a confused engine still had to say of the position before.
            await self.ping()
            self._answer = None
            try:
                await self.play(board, limit, game=object())
            except chess.engine.EngineTerminatedError:
                raise
            except chess.engine.EngineError:
                # An illegal move is an answer; what follows from it is for the caller to say.
                if self._answer is None:
                    raise
        return self._answer or ""

    async def candidates(
        self, board: chess.Board, limit: chess.engine.Limit, lines: int, game: object,
        within_s: float,
    ) -> list[Candidate]:
        """The best moves, at most ``lines``, best first.

        It forgets what it knows when ``game`` is another object than before. An engine that cannot
        show several lines names one move.

        Raises:
            EngineFailureError: there is no answer within ``within_s`` seconds, or no move in it.
        """
        multi = self.options.get("MultiPV")
        if multi is not None:
            # python-chess sets what it takes for the default before each move.
            self.options["MultiPV"] = replace(multi, default=_nearest(multi, lines))
        async with self._in_time(within_s):
            await self.ping()
            self._candidates = {}
            await self.play(board, limit, game=game)
        found, self._candidates = self._candidates, None
        if not found:
            raise EngineFailureError("named no move and no score")
        return list({each.move: each for each in found.values()}.values())

    async def release(self) -> None:
        """End the process at once, with all that it started, and close its pipes."""
        self._kill()
        await self._exited.wait()
        assert self.transport is not None
        self.transport.close()
        await asyncio.wait([self.returncode])

    def line_received(self, line: str) -> None:
        """Keep an answer as text, before python-chess reads it.

        What candidates are worth is read here as well: python-chess would play every line on a
        board, which takes longer than a search of some hundred nodes.
        """
        words = line.split()
        if self._answer is None and words[:1] == ["bestmove"]:
            self._answer = words[1] if len(words) > 1 else ""
        if self._candidates is not None and words[:1] == ["info"]:
            followed_by = dict(pairwise(words))
            unit = followed_by.get("score", "")
            if "pv" in followed_by and unit in {"cp", "mate"}:
                with suppress(ValueError):  # ignore a score that is not a number
                    self._candidates[followed_by.get("multipv", "1")] = Candidate(
                        followed_by["pv"], unit, int(followed_by[unit])
                    )

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        """Kill an engine that sends a line without end; python-chess reads the others."""
        super().pipe_data_received(fd, data)
        if len(self.buffer[_STDOUT]) > _LONGEST_LINE:
            self._has_long_line = True
            self._kill()

    def process_exited(self) -> None:
        """Let :meth:`release` go on."""
        self._exited.set()

    def _kill(self) -> None:
        """Kill its whole group: an engine is often behind a script, and outlives it if it hangs."""
        assert self.transport is not None
        if self.transport.get_returncode() is None:
            # Not transport.terminate(): it may wait for the process itself, and its status is lost.
            with suppress(ProcessLookupError):
                os.kill(self.transport.get_pid(), signal.SIGTERM)

    @asynccontextmanager
    async def _in_time(self, within_s: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(within_s):
                yield
        except TimeoutError as error:
            raise EngineFailureError("did not answer in time") from error
        except chess.engine.EngineTerminatedError as error:
            raise EngineFailureError(self._cause_of_death()) from error
        except chess.engine.EngineError as error:
            raise EngineFailureError(f"does not follow the UCI protocol ({error})") from error

    def _cause_of_death(self) -> str:
        if self._has_long_line:
            return f"sent a line of over {_LONGEST_LINE} bytes"
        assert self.transport is not None
        status = self.transport.get_returncode()
        assert status is not None
        if status == CANNOT_RUN:
            return "could not be started"
        return describe_exit(status)


def _is_of_others(record: logging.LogRecord) -> bool:
    """Drop python-chess's warnings about lines that one of our engines should not have sent."""
    return not any(isinstance(part, EngineProcess) for part in record.args or ())


chess.engine.LOGGER.addFilter(_is_of_others)


def _nearest(option: chess.engine.Option, value: int) -> int:
    """The value that the option allows and that is nearest to ``value``."""
    at_least = value if option.min is None else max(value, option.min)
    return at_least if option.max is None else min(at_least, option.max)
