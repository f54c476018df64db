"""Several processes of one engine, which share out positions and are replaced when they fail."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue

from chess_snn.errors import EngineError
from chess_snn.evaluation.engines.process import EngineFailureError, EngineProcess
from chess_snn.evaluation.engines.settings import EngineSettings


class EnginePool:
    """Answers positions on every process at once. One caller at a time."""

    def __init__(self, program: Path, go: str, settings: EngineSettings) -> None:
        """Nothing is started yet; ``go`` is the UCI command that every position is asked with."""
        self.failures = 0
        """How often a process had to be replaced."""
        self.last_failure: str | None = None
        self._program, self._go, self._settings = program, go, settings
        self._processes: list[EngineProcess | None] = [None] * settings.num_processes
        self._lock = threading.Lock()
        self._failed_in_a_row = 0
        self._identity: str | None = None
        self._is_closed = False

    @property
    def identity(self) -> str:
        """What the engine calls itself; starts a process where none was started before.

        Raises:
            EngineError: it does not start.
        """
        if self._identity is None:
            try:
                self._identity = self._running(0).identity
            except EngineFailureError as failure:
                self._discard(0)
                raise EngineError(
                    f"engine {self._program} {failure}; is it a UCI engine, and does it run on "
                    "this machine?"
                ) from failure
        return self._identity

    def best_moves(self, fens: Sequence[str]) -> list[str | None]:
        """The engine's answer to each position, as it came; None where it had none.

        Raises:
            EngineError: the engine does not even start.
        """
        if not fens:
            return []
        _ = self.identity
        answers: list[str | None] = [None] * len(fens)
        waiting: SimpleQueue[int] = SimpleQueue()
        for index in range(len(fens)):
            waiting.put(index)

        def work(seat: int) -> None:
            while (index := _next(waiting)) is not None:
                answers[index] = self._best_move(seat, fens[index])

        num_seats = min(len(fens), len(self._processes))
        with ThreadPoolExecutor(num_seats, "engine") as threads:
            try:
                for done in [threads.submit(work, seat) for seat in range(num_seats)]:
                    done.result()
            except BaseException:  # Ctrl-C above all: the threads must not play on
                self._kill()
                raise
        return answers

    def close(self) -> None:
        """End all processes at once; the pool answers nothing any more."""
        self._kill()
        for seat in range(len(self._processes)):
            self._discard(seat)

    def _kill(self) -> None:
        with self._lock:
            self._is_closed = True
            processes = [process for process in self._processes if process is not None]
        for process in processes:
            process.kill()

    def _best_move(self, seat: int, fen: str) -> str | None:
        for _ in range(1 + self._settings.restarts):
            if self._is_closed or self._failed_in_a_row >= self._settings.give_up_after:
                return None
            try:
                answer = self._running(seat).best_move(fen, self._go, self._settings.answer_s)
            except EngineFailureError as failure:
                self._note(f"{failure} in {fen!r}")
                self._discard(seat)
            else:
                self._failed_in_a_row = 0
                return answer
        with self._lock:
            self._failed_in_a_row += 1
        return None

    def _running(self, seat: int) -> EngineProcess:
        """The process of a seat, greeted."""
        process = self._processes[seat]
        if process is None:
            with self._lock:
                # Once closed nothing may be started that nobody would end.
                if self._is_closed:
                    raise EngineFailureError("has been closed")
                process = self._processes[seat] = EngineProcess(self._program)
            process.greet(self._settings.start_s)
        return process

    def _discard(self, seat: int) -> None:
        with self._lock:
            process, self._processes[seat] = self._processes[seat], None
        if process is not None:
            process.release()

    def _note(self, failure: str) -> None:
        with self._lock:
            self.failures += 1
            self.last_failure = failure


def _next(waiting: "SimpleQueue[int]") -> int | None:
    try:
        return waiting.get_nowait()
    except Empty:
        return None
