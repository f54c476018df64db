"""Several processes of one engine, which share out positions and are replaced when they fail."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import chess
from pydantic import Field

from chess_snn.cores import num_cores
from chess_snn.errors import EngineError
from chess_snn.evaluation import engines
from chess_snn.known import ANSWER_S
from chess_snn.later import asyncio, chess_engine
from chess_snn.settings import settings_class

_Result = TypeVar("_Result")


@settings_class("engine")
class EngineSettings:
    """Settings of running engines; none of it changes what a healthy engine plays."""

    processes: int = Field(default=0, ge=0, le=1024)
    """Processes of one player, each with one thread; 0 is one for every core of this program."""
    answer_s: float = Field(default=ANSWER_S, gt=0.0, le=86_400.0)
    """An engine that has not moved after this many seconds counts as dead."""
    start_s: float = Field(default=10.0, gt=0.0, le=3600.0)
    """The same for an engine that has just been started."""
    restarts: int = Field(default=2, ge=0, le=100)
    """Number of times a position is asked again of a fresh process before its game is void."""
    give_up_after: int = Field(default=8, ge=1)
    """After this many unanswered positions in a row the engine is not asked again: all games are
    void."""

    @property
    def num_processes(self) -> int:
        """Return the processes of one player, >= 1."""
        return self.processes or num_cores()


class EnginePool:
    """Answers positions on every process at once. One caller at a time."""

    def __init__(self, program: Path, limit: chess_engine.Limit, settings: EngineSettings) -> None:
        """Nothing is started yet; every position is searched up to ``limit``."""
        self.failures = 0
        """Number of processes that were replaced."""
        self.last_failure: str | None = None
        self._program, self._limit, self._settings = program, limit, settings
        self._processes: list[engines.EngineProcess | None] = [None] * settings.num_processes
        self._failed_in_a_row = 0
        self._identity: str | None = None
        self._is_closed = False
        self._thread: _LoopThread | None = None

    @property
    def identity(self) -> str:
        """Return what the engine calls itself; starts a process where none was started before.

        Raises:
            EngineError: it does not start.
        """
        if self._identity is None:
            try:
                self._identity = self._run(self._first_identity)
            except engines.EngineFailureError as failure:
                raise EngineError(
                    f"engine {self._program} {failure}; is it a UCI engine, and does it run on "
                    "this machine?"
                ) from failure
        return self._identity

    def best_moves(self, boards: Sequence[chess.Board]) -> list[str | None]:
        """The engine's answer to each position, as it came; None where it had none.

        Raises:
            EngineError: the engine does not even start.
        """
        if not boards:
            return []
        _ = self.identity
        if self._is_closed:
            return [None] * len(boards)
        limit, within_s = self._limit, self._settings.answer_s
        return self._run(lambda: self._answers(
            boards, lambda process, board: process.best_move(board, limit, within_s)
        ))

    def candidates(
        self, boards: Sequence[chess.Board], lines: int
    ) -> list[list[engines.Candidate]]:
        """At most ``lines`` moves for each position, best first.

        An engine begins without memory and then keeps it from one position to the next: with one
        process, the answers depend on ``boards`` alone.

        Raises:
            EngineError: the engine does not start, or has no answer to a position.
        """
        _ = self.identity
        game, limit, within_s = object(), self._limit, self._settings.answer_s
        answers = self._run(lambda: self._answers(
            boards, lambda process, board: process.candidates(board, limit, lines, game, within_s)
        ))
        found = [answer for answer in answers if answer is not None]
        if len(found) < len(boards):
            raise EngineError(
                f"engine {self._program} {self.last_failure}, and so each time it was asked again; "
                "replace the engine, and run the command again"
            )
        return found

    def close(self) -> None:
        """End all processes at once; the pool answers nothing any more."""
        self._is_closed = True
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.end_with(self._release_all)

    def _run(self, work: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
        if self._is_closed:
            raise engines.EngineFailureError("has been closed")
        if self._thread is None:
            self._thread = _LoopThread()
        try:
            return self._thread.run(work)
        except engines.EngineFailureError:
            raise
        except BaseException:  # Ctrl-C above all: the engines must not think on
            self.close()
            raise

    async def _first_identity(self) -> str:
        try:
            return (await self._running(0)).identity
        except engines.EngineFailureError:
            await self._discard(0)
            raise

    async def _answers(
        self, boards: Sequence[chess.Board],
        ask: Callable[[engines.EngineProcess, chess.Board], Awaitable[_Result]],
    ) -> list[_Result | None]:
        answers: list[_Result | None] = [None] * len(boards)
        waiting = deque(range(len(boards)))

        async def work(seat: int) -> None:
            while waiting:
                index = waiting.popleft()
                answers[index] = await self._answer(seat, boards[index], ask)

        num_seats = min(len(boards), len(self._processes))
        await asyncio.gather(*(work(seat) for seat in range(num_seats)))
        return answers

    async def _answer(
        self, seat: int, board: chess.Board,
        ask: Callable[[engines.EngineProcess, chess.Board], Awaitable[_Result]],
    ) -> _Result | None:
        for _ in range(1 + self._settings.restarts):
            if self._failed_in_a_row >= self._settings.give_up_after:
                return None
            try:
                answer = await ask(await self._running(seat), board)
            except engines.EngineFailureError as failure:
                self.failures += 1
                self.last_failure = f"{failure} in {board.fen()!r}"
                await self._discard(seat)
            else:
                self._failed_in_a_row = 0
                return answer
        self._failed_in_a_row += 1
        return None

    async def _running(self, seat: int) -> engines.EngineProcess:
        """The process of a seat, greeted."""
        process = self._processes[seat]
        if process is None:
            process = await engines.EngineProcess.start(self._program)
            self._processes[seat] = process
            await process.greet(self._settings.start_s)
        return process

    async def _discard(self, seat: int) -> None:
        process = self._processes[seat]
        if process is not None:
            await process.release()
            self._processes[seat] = None

    async def _release_all(self) -> None:
        for seat in range(len(self._processes)):
            await self._discard(seat)


def engine_identity(program: Path) -> str:
    """Return what the engine at ``program`` calls itself.

    Raises:
        EngineError: it does not start, or does not answer as an engine would.
    """
    pool = EnginePool(program, chess_engine.Limit(nodes=1), EngineSettings(processes=1))
    try:
        return pool.identity
    finally:
        pool.close()


class _LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # A daemon: a player that is never closed must not keep the interpreter from ending.
        self._thread = threading.Thread(target=self._run_loop, name="engine", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
        """Do ``work`` in the thread, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result()

    def end_with(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel what the thread is at, do ``work`` in it, and end it."""

        async def finish() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await work()
            self._loop.stop()

        asyncio.run_coroutine_threadsafe(finish(), self._loop)
        # The garbage collector may close a pool in any thread, this one among them.
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run_loop(self) -> None:
        self._loop.run_forever()
        self._loop.close()
