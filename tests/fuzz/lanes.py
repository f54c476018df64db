"""Processes side by side, each of which takes one target after the other."""

import multiprocessing
import queue
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzzing import FoundError, Report, fuzz, seeds_of
from guards import Mailbox, bounded_inputs
from targets import TARGETS

from chess_snn.errors import ChessSnnError
from chess_snn.processes import end_with_parent

_POLL_S = 0.5


@dataclass(frozen=True)
class Failure:
    """An input that a parser did not stand."""

    name: str
    data: bytes
    reason: str


def fuzz_all(
    shares: Mapping[str, int], seed: int, processes: int, scratch: Path
) -> Iterator[Report | Failure]:
    """What came of each target of ``shares`` (its inputs), as they end; nothing hides a dead one.

    Args:
        shares: inputs by target.
        seed: of all mutations.
        processes: side by side.
        scratch: a folder for what they hold in common.
    """
    context = multiprocessing.get_context("spawn")
    names, results = context.Queue(), context.Queue()
    for name in sorted(shares, key=lambda name: name != "uci-session"):  # the slowest first
        names.put((name, shares[name]))
    for _ in range(processes):
        names.put(None)
    lanes = {
        number: context.Process(
            target=_run_lane, args=(names, results, seed, _mailbox(scratch, number)), daemon=True
        )
        for number in range(processes)
    }
    for lane in lanes.values():
        lane.start()
    left = len(shares)
    while left:
        try:
            yield results.get(timeout=_POLL_S)
            left -= 1
        except queue.Empty:
            for number, lane in list(lanes.items()):
                if lane.exitcode:
                    del lanes[number]
                    yield _post_mortem(_mailbox(scratch, number), lane.exitcode)
                    left -= 1
            if not lanes:
                return
    for lane in lanes.values():
        lane.join()


def _mailbox(scratch: Path, number: int) -> Path:
    return scratch / f"lane-{number}"


def _run_lane(names: Any, results: Any, seed: int, mailbox: Path) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    end_with_parent(parent.pid or 0, signal.SIGKILL)
    while (task := names.get()) is not None:
        name, inputs = task
        mailbox.with_suffix(".name").write_text(name)
        results.put(_fuzz_one(name, inputs, seed, Mailbox(mailbox)))


def _fuzz_one(name: str, inputs: int, seed: int, mailbox: Mailbox) -> Report | Failure:
    target = TARGETS[name]
    for data in seeds_of(target):  # which compiles kernels; that is no input's fault
        mailbox.put(data)
        with suppress(ChessSnnError, AssertionError):
            target.attempt(data)
    try:
        with bounded_inputs(mailbox) as watch:
            return fuzz(target, inputs, seed, watch)
    except FoundError as found:
        return Failure(found.target, found.data, found.reason)


def _post_mortem(mailbox: Path, code: int) -> Failure:
    name = mailbox.with_suffix(".name").read_text()
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return Failure(name, Mailbox.read(mailbox), f"its process ended with {how}")
