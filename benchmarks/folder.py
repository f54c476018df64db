"""The cost of starting, resuming, watching and verifying a campaign of very many shards.

Times everything that runs at a start, after each iteration, or in a command that reads the folder,
on a folder with 50,000 shards in 500 iterations; see :mod:`benchmarks.many_shards`.
"""

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer

from benchmarks.harness import Quick, Report, benchmark
from benchmarks.many_shards import SHARDS_EACH, make_campaign
from chess_snn.campaign import CampaignFolder, read_receipts
from chess_snn.campaign.integrity.gc import find_disposable, sweep_leftovers
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.stages import window_shards
from chess_snn.campaign.store.plans import begin_iteration
from chess_snn.campaign.store.receipts import num_finished_iterations, recorded_seconds
from chess_snn.campaign.strength.matches import is_finished, read_final_matches
from chess_snn.campaign.viewing.alarms import find_alarms
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


def run(
    report: Report, quick: Quick = False,
    shards: Annotated[int, typer.Option(help="Shards of the campaign; bars hold for 50000.")]
    = NUM_SHARDS,
) -> None:
    """Starting, watching and verifying a campaign of very many shards.

    Takes 15 s and 60 MB of disk for each 1,000 shards; the folder is removed.

    python -m benchmarks folder --shards 5000 --json
    """
    num_shards = _QUICK_SHARDS if quick else shards
    if num_shards < SHARDS_EACH or num_shards % SHARDS_EACH:
        raise UsageError(f"--shards must be a multiple of {SHARDS_EACH}, got {num_shards}")
    has_bars = num_shards == NUM_SHARDS

    def timed(name: str, work: Callable[[], _Outcome]) -> _Outcome:
        begun = time.perf_counter()
        outcome = work()
        seconds = time.perf_counter() - begun
        report.add(name, seconds, "s", at_most=_BARS_S.get(name) if has_bars else None)
        return outcome

    with tempfile.TemporaryDirectory(prefix="chess-snn-bench-") as scratch:
        folder = timed("made", lambda: make_campaign(
            Path(scratch), num_shards, _progress(report, "shards made")
        ))
        newest = num_finished_iterations(folder)
        timed("resumed", lambda: _resume(folder))
        timed("after an iteration", lambda: _after_iteration(folder))
        _forget(folder)
        timed("status", lambda: _status(folder))
        selected = timed("window selected", lambda: window_shards(folder, newest))
        timed("window loaded", lambda: ReplayWindow.load(
            get_game(folder.config.campaign.game), selected, capacity=1 << 30
        ))
        _forget(folder)
        watch = CampaignWatch(folder.path)
        timed("watch, first look", watch.look)
        timed("watch, next look", watch.look)
        timed("gc, dry run", lambda: find_disposable(folder))
        findings = timed("verified", lambda: verify_campaign(
            folder, num_workers=num_cores(), on_progress=_progress(report, "artifacts verified")
        ))
    assert findings.is_whole, findings.damage[:3]
    # Linux counts in KiB.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_PER_MIB
    report.add("most memory of this process", peak, "MiB",
               at_most=_MEMORY_BAR_MIB if has_bars else None)
    report.note(
        f"{num_shards:,} shards of a game each in {newest:,} iterations, "
        f"{findings.num_positions:,} positions; a window of {len(selected):,} shards"
    )


command = benchmark("folder", run)


def _forget(folder: CampaignFolder) -> None:
    """Have receipts and plans read from the disk again, as a process that has just begun does."""
    for path in (folder.receipt(0).parent, folder.plan(0).parent):
        for file in path.iterdir():
            file.touch()


def _resume(folder: CampaignFolder) -> None:
    """The work of a resume before its first iteration."""
    opened = CampaignFolder.open(folder.path)
    recorded_seconds(opened)
    sweep_leftovers(opened)
    begin_iteration(opened, num_finished_iterations(opened), recorded_seconds(opened))
    _after_iteration(opened)


def _after_iteration(folder: CampaignFolder) -> None:
    """The work after each iteration."""
    find_alarms(result_rows(folder, read_receipts(folder)))
    sweep_leftovers(folder)


def _status(folder: CampaignFolder) -> None:
    receipts = read_receipts(folder)
    find_alarms(result_rows(folder, receipts))
    read_final_matches(folder)
    is_finished(folder)
    recorded_seconds(folder)


def _progress(report: Report, what: str) -> Progress:
    """A callback that prints the progress every ten seconds."""
    next_s = time.monotonic() + _LINE_S

    def tell(done: int, total: int) -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + _LINE_S
            report.progress(f"{what}: {done:,} of {total:,}")

    return tell
