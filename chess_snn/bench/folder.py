"""``bench folder``: what a campaign of very many shards costs to start, watch, go on with, verify.

Everything that is done at a start, after each iteration, or by a command that reads the folder, is
timed on a folder with 50,000 shards in 500 iterations; see :mod:`chess_snn.bench.many_shards`.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from chess_snn.bench.many_shards import SHARDS_EACH, make_campaign
from chess_snn.bench.report import BenchReport
from chess_snn.campaign import CampaignFolder, read_receipts
from chess_snn.campaign.keeping.disposal import find_disposable
from chess_snn.campaign.keeping.verifying import verify_campaign
from chess_snn.campaign.stages import window_shards
from chess_snn.campaign.store.history import ReceiptHistory
from chess_snn.campaign.store.plans import begin_iteration
from chess_snn.campaign.store.receipts import num_finished_iterations, recorded_seconds
from chess_snn.campaign.store.sweep import sweep_leftovers
from chess_snn.campaign.strength.matches import read_final_matches
from chess_snn.campaign.viewing.alarms import find_alarms
from chess_snn.campaign.viewing.finish import is_finished
from chess_snn.campaign.viewing.results import result_rows
from chess_snn.campaign.viewing.watching import CampaignWatch
from chess_snn.cores import num_cores
from chess_snn.data import ReplayWindow
from chess_snn.errors import UsageError
from chess_snn.games import get_game
from chess_snn.types import Progress

NUM_SHARDS: Final = 50_000
_QUICK_SHARDS: Final = 500
_BARS_S: Final = {
    "resumed": 10.0, "status": 15.0, "after an iteration": 2.0, "window selected": 10.0,
    "window loaded": 60.0, "watch, first look": 60.0, "watch, next look": 1.0,
    "gc, dry run": 60.0, "verified": 600.0,
}
"""Seconds at most, with 50,000 shards."""
_MEMORY_BAR_MIB: Final = 1500.0

_KIB_PER_MIB: Final = 1024
_LINE_S: Final = 10.0

_Outcome = TypeVar("_Outcome")


def run(quick: bool = False, shards: int = NUM_SHARDS) -> BenchReport:
    """Make a campaign of ``shards`` in a temporary folder, and time what is done with it.

    Args:
        quick: 500 shards, whatever ``shards`` says.
        shards: how many; bars hold for 50,000.

    Raises:
        UsageError: not a multiple of 100.
    """
    num_shards = _QUICK_SHARDS if quick else shards
    if num_shards < SHARDS_EACH or num_shards % SHARDS_EACH:
        raise UsageError(f"--shards must be a multiple of {SHARDS_EACH}, got {num_shards}")
    with tempfile.TemporaryDirectory(prefix="chess-snn-bench-") as scratch:
        bench = _Bench(num_shards)
        folder = bench.time(
            "made", lambda: make_campaign(Path(scratch), num_shards, _tell("shards made"))
        )
        bench.measure(folder)
    return bench.report


class _Bench:
    """One campaign, and the figures of it."""

    def __init__(self, num_shards: int) -> None:
        self.report = BenchReport("folder")
        self._has_bars = num_shards == NUM_SHARDS
        self._num_shards = num_shards

    def time(self, name: str, work: Callable[[], _Outcome]) -> _Outcome:
        """Time ``work``, and say which."""
        begun = time.perf_counter()
        outcome = work()
        bar = _BARS_S.get(name) if self._has_bars else None
        self.report.add(name, time.perf_counter() - begun, "s", at_most=bar)
        return outcome

    def measure(self, folder: CampaignFolder) -> None:
        """Everything, in the order in which a campaign meets it."""
        newest = num_finished_iterations(folder)
        self.time("resumed", lambda: _resume(folder))
        self.time("after an iteration", lambda: _after_iteration(folder))
        self.time("status", lambda: _status(folder))
        shards = self.time("window selected", lambda: window_shards(folder, newest))
        self.time("window loaded", lambda: ReplayWindow.load(
            get_game(folder.config.campaign.game), shards, capacity=1 << 30
        ))
        watch = CampaignWatch(folder.path)
        self.time("watch, first look", watch.look)
        self.time("watch, next look", watch.look)
        self.time("gc, dry run", lambda: find_disposable(folder))
        findings = self.time("verified", lambda: verify_campaign(
            folder, num_workers=num_cores(), on_progress=_tell("things verified")
        ))
        assert findings.is_whole, findings.damage[:3]
        # Linux counts in KiB.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_PER_MIB
        bar = _MEMORY_BAR_MIB if self._has_bars else None
        self.report.add("most memory of this process", peak, "MiB", at_most=bar)
        self.report.notes.append(
            f"{self._num_shards:,} shards of a game each in {newest:,} iterations, "
            f"{findings.num_positions:,} positions; a window of {len(shards):,} shards"
        )


def _resume(folder: CampaignFolder) -> None:
    """What a campaign does before the first of its iterations that are left."""
    opened = CampaignFolder.open(folder.path)
    recorded_seconds(opened)
    sweep_leftovers(opened)
    begin_iteration(opened, num_finished_iterations(opened), recorded_seconds(opened))
    _after_iteration(opened)


def _after_iteration(folder: CampaignFolder) -> None:
    """What it does after each of them."""
    history = ReceiptHistory(folder).metrics()
    find_alarms(history)
    sweep_leftovers(folder)


def _status(folder: CampaignFolder) -> None:
    receipts = read_receipts(folder)
    result_rows(folder.config, receipts)
    find_alarms([receipt.metrics() for receipt in receipts])
    read_final_matches(folder)
    is_finished(folder)
    recorded_seconds(folder)


def _tell(what: str) -> Progress:
    """A callback that says on standard error how far it is, every ten seconds."""
    next_s = time.monotonic() + _LINE_S

    def tell(done: int, total: int) -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + _LINE_S
            print(f"{what}: {done:,} of {total:,}", file=sys.stderr)  # noqa: T201

    return tell
