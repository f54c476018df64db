"""Threads that each run torch's operations on one core.

Parts of a batch side by side are faster than one batch whose every operation is divided.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import torch


def single_torch_threads(num_threads: int, name: str) -> ThreadPoolExecutor:
    """A pool of ``num_threads`` threads called ``name``; what torch does elsewhere stays the same.

    torch keeps its number of threads for each thread, but remembers the last one set for threads to
    come. So all are started here, and what the caller's threads will see is set back.
    """
    before = torch.get_num_threads()
    threads = ThreadPoolExecutor(
        num_threads, thread_name_prefix=name, initializer=_use_one_torch_thread
    )
    all_started = threading.Barrier(num_threads)
    list(threads.map(lambda _: all_started.wait(), range(num_threads)))
    torch.set_num_threads(before)
    return threads


def _use_one_torch_thread() -> None:
    torch.set_num_threads(1)
    # A thread that has not asked yet takes the remembered number when it first does: ask now.
    torch.get_num_threads()
