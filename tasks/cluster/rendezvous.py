"""Training on several machines: which ones, and the rendezvous from the worker's side.

A worker that has all inputs of training says so, and names a port that is free on its machine. The
campaign tells each its place once all are ready (:mod:`tasks.train_together`). A call that is no
longer wanted is noticed here: Dask cannot end one that runs.
"""

import queue
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from typing import Final, TypedDict

from distributed import get_worker
from distributed.comm import get_address_host

from chess_snn.errors import RankLostError
from chess_snn.training.rank_launch import RankLayout
from tasks.cluster.worker_pool import PoolWorker

READY_TOPIC: Final = "training-ready"
"""Dask topic of :class:`ReadyMachine`."""

_POLL_S: Final = 0.5

_places: dict[str, "queue.SimpleQueue[RankLayout]"] = {}
"""Of the meetings that a call of this process waits at: its place, once it is told."""


def choose_machines(
    trainers: Sequence[PoolWorker], tasks: Mapping[str, Sized], most: int
) -> list[PoolWorker]:
    """At most ``most`` workers, each on another machine; by the names of these.

    Where there are GPUs, those of GPUs alone: ranks on GPUs and on processors exchange in different
    ways. Machines, and the workers of each, are taken that have least to do.

    Args:
        trainers: workers that may train.
        tasks: what each has to do already, by its address.
        most: >= 1.
    """
    with_gpus = [member for member in trainers if not member.shares_cores]

    def pressure(member: PoolWorker) -> tuple[int, str, str]:
        return len(tasks.get(member.address, ())), member.host, member.name

    by_host: dict[str, PoolWorker] = {}
    for member in sorted(with_gpus or trainers, key=pressure):
        by_host.setdefault(member.host, member)
    chosen = list(by_host.values())[:most]
    return sorted(chosen, key=lambda member: member.host)


class ReadyMachine(TypedDict):
    """What a worker says when it is ready to train."""

    meeting: str
    worker: str
    """Its Dask address."""
    port: int
    """One that is free there, for the machines to meet at."""


def own_call_wanted() -> Callable[[], bool]:
    """Whether somebody still waits for the call that this is called in; to be asked at any time."""
    worker = get_worker()
    key = worker.get_current_task()

    def is_wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state != "cancelled"

    return is_wanted


def wait_for_place(meeting: str, is_wanted: Callable[[], bool]) -> RankLayout:
    """Say that this machine is ready, and wait until it is told its place.

    Args:
        meeting: known to the campaign, and to no other call.
        is_wanted: whether to wait on.

    Raises:
        RankLostError: nobody waits for this machine any more.
    """
    worker = get_worker()
    with _awaited(meeting) as places, _free_port(get_address_host(worker.address)) as port:
        ready = ReadyMachine(meeting=meeting, worker=worker.address, port=port)
        worker.log_event(READY_TOPIC, dict(ready))
        while is_wanted():
            try:
                return places.get(timeout=_POLL_S)
            except queue.Empty:
                continue
    raise RankLostError("nobody waits any more for what this machine was to train")


def tell_place(meeting: str, layout: RankLayout) -> bool:
    """Tell the call of this process that waits at ``meeting``; whether there is one."""
    places = _places.get(meeting)
    if places is None:
        return False
    places.put(layout)
    return True


@contextmanager
def _awaited(meeting: str) -> Iterator["queue.SimpleQueue[RankLayout]"]:
    places = _places[meeting] = queue.SimpleQueue()
    try:
        yield places
    finally:
        del _places[meeting]


@contextmanager
def _free_port(host: str) -> Iterator[int]:
    """A port of ``host`` that nobody else gets during the block."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as holder:
        port: int = holder.getsockname()[1]
        yield port
