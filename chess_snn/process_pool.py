"""Processes that share work for the length of a block, each of them a fresh interpreter."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from chess_snn.errors import UsageError


@contextmanager
def process_pool(num_workers: int) -> Iterator[ProcessPoolExecutor]:
    """Workers that end with the block, or with this process, however it ends.

    Each imports the main module of the program anew, so a script that gets here must do its work
    behind ``if __name__ == "__main__":``.

    Raises:
        UsageError: a worker died; raised where a result is asked for.
    """
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(num_workers, context, _begin)
    try:
        yield pool
    except BrokenProcessPool as error:
        raise UsageError(
            "a worker process died, perhaps because memory ran out; run the same command again: "
            "what was committed is kept"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    # Ctrl-C reaches every process of the terminal; the one that shares the work reacts to it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
