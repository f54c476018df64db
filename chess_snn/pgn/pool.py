"""Processes that share work: they turn chunks of PGN into shards, or look at shards.

Each is a fresh interpreter that runs a module such as :mod:`chess_snn.pgn.worker`, at the other end
of a socket of its own. That end closes with the process that shares its work, however it dies, and
the worker leaves.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Final

from chess_snn.errors import ChessSnnError, CorruptDataError, UsageError
from chess_snn.types import Json

IMPORTER: Final = "chess_snn.pgn.worker"

READY: Final = "ready"
"""A worker's first answer: its kernels are loaded."""

_ERRORS: Final[dict[str, type[ChessSnnError]]] = {
    error.__name__: error for error in (UsageError, CorruptDataError)
}
_LONGEST_GOODBYE_S: Final = 20.0


class WorkerPool:
    """Workers, of which each has one task at a time or none."""

    def __init__(self, connections: dict[Connection, "subprocess.Popen[bytes]"]) -> None:
        self._processes = connections
        self._starting = set(connections)
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()

    @property
    def num_busy(self) -> int:
        """Workers with a task."""
        return len(self._busy)

    @property
    def has_idle(self) -> bool:
        """Whether a task would be taken at once."""
        return bool(self._idle)

    def submit(self, task: Json, content: bytes) -> None:
        """Hand a task to an idle worker."""
        connection = self._idle.pop()
        try:
            connection.send_bytes(json.dumps(task).encode())
            connection.send_bytes(content)
        except OSError:
            raise self._died(connection) from None
        self._busy.add(connection)

    def answers(self) -> list[Json]:
        """Wait until a worker has something to say; answers of tasks, not of workers that are up.

        Raises:
            UsageError: a worker met one, or died.
            CorruptDataError: a worker met one.
        """
        answers = []
        for connection in wait([*self._starting, *self._busy]):
            assert isinstance(connection, Connection)
            answer = self._receive(connection)
            if "error" in answer:
                raise _ERRORS[answer["error"]](answer["message"])
            self._idle.append(connection)
            if connection in self._starting:
                self._starting.discard(connection)
            else:
                self._busy.discard(connection)
                answers.append(answer)
        return answers

    def _receive(self, connection: Connection) -> Json:
        try:
            answer: Json = json.loads(connection.recv_bytes())
        except (EOFError, OSError):
            raise self._died(connection) from None
        return answer

    def _died(self, connection: Connection) -> UsageError:
        code = self._processes[connection].wait(_LONGEST_GOODBYE_S)
        return UsageError(
            f"a worker process ended with exit code {code}; run the same command again: shards "
            "that were committed are kept"
        )


@contextmanager
def worker_pool(num_workers: int, module: str = IMPORTER) -> Iterator[WorkerPool]:
    """``num_workers`` processes for the length of the block; what they are at then is dropped.

    Each runs ``module``, which gives its socket's number to :func:`serve`.
    """
    processes: dict[Connection, subprocess.Popen[bytes]] = {}
    try:
        for _ in range(num_workers):
            connection, process = _start_worker(module)
            processes[connection] = process
        yield WorkerPool(processes)
    finally:
        for connection in processes:
            connection.close()
        for process in processes.values():
            process.terminate()
            process.wait()


def _start_worker(module: str) -> tuple[Connection, "subprocess.Popen[bytes]"]:
    paths = [str(Path(__file__).parents[2])]  # this very package, wherever it comes from
    if "PYTHONPATH" in os.environ:
        paths.append(os.environ["PYTHONPATH"])
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        )
        return Connection(ours.detach()), process


def serve(connection: Connection, work: Callable[[Json, bytes], Json]) -> None:
    """Answer tasks by ``work(task, content)`` until the other end closes.

    An error of ours becomes the answer; any other ends this process.
    """
    try:
        connection.send_bytes(json.dumps({READY: True}).encode())
        while True:
            task = json.loads(connection.recv_bytes())
            answer = _answer(work, task, connection.recv_bytes())
            connection.send_bytes(json.dumps(answer).encode())
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _answer(work: Callable[[Json, bytes], Json], task: Json, content: bytes) -> Json:
    try:
        return work(task, content)
    except (UsageError, CorruptDataError) as error:
        kind = CorruptDataError if isinstance(error, CorruptDataError) else UsageError
        return {"error": kind.__name__, "message": str(error)}
