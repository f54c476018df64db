"""Processes that share work for the length of a block, each of them a fresh interpreter."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

from chess_snn.errors import UsageError


@contextmanager
def process_pool(num_workers: int) -> Iterator[ProcessPoolExecutor]:
    """Workers that end with the block, or with this process, however it ends.

    Where an exception leaves the block they end at once, and what they were working on is dropped.
    Each imports the main module of the program anew, so a script that gets here must do its work
    behind ``if __name__ == "__main__":``.

    Raises:
        UsageError: a worker died; raised where a result is asked for.
    """
    context = multiprocessing.get_context("spawn")
    lifeline, held = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(num_workers, context, _begin, (lifeline,))
    try:
        yield pool
        pool.shutdown()
    except BrokenProcessPool as error:
        raise UsageError(
            "a worker process died, perhaps because memory ran out; run the same command again: "
            "what was committed is kept"
        ) from error
    finally:
        held.close()
        pool.shutdown(cancel_futures=True)
        lifeline.close()


def _begin(lifeline: Connection) -> None:
    # Ctrl-C reaches every process of the terminal; the one that shares the work reacts to it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=[lifeline], daemon=True).start()


def _end_with(lifeline: Connection) -> None:
    """End this process when the other end of ``lifeline`` is closed."""
    with suppress(EOFError):
        lifeline.recv_bytes()
    os._exit(1)
