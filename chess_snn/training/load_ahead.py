"""Batches prepared in a thread while the device trains on the one before."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def load_ahead(prepare: Callable[[], T], num_items: int, ahead: int) -> Iterator[T]:
    """What ``num_items`` calls of ``prepare`` give, in their order.

    ``prepare`` is called from one thread at a time, and ``num_items`` times in all where the
    iterator is read to its end: whatever it draws from, it draws the same as without a thread.

    Args:
        prepare: makes one item.
        num_items: how many are wanted.
        ahead: items made while one is in use; 0 makes each when it is asked for.
    """
    if ahead == 0:
        for _ in range(num_items):
            yield prepare()
        return
    thread = ThreadPoolExecutor(1, thread_name_prefix="load-ahead")
    try:
        under_way: deque[Future[T]] = deque()
        for index in range(num_items):
            while len(under_way) <= ahead and index + len(under_way) < num_items:
                under_way.append(thread.submit(prepare))
            yield under_way.popleft().result()
    finally:
        thread.shutdown(cancel_futures=True)
