"""Iterations one after another: when one begins, and one that has its receipt is left as it is."""

from concurrent.futures import Future
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")

from small_campaigns import finish, finish_without_games, make_campaign  # noqa: E402

from chess_snn.campaign import read_receipt  # noqa: E402
from chess_snn.campaign.store.plans import (  # noqa: E402
    CampaignClock,
    ProgressPlan,
    begin_iteration,
)
from chess_snn.flows.context import CampaignRun, Handoff  # noqa: E402
from chess_snn.flows.iteration import _begin, _run_iteration  # noqa: E402
from chess_snn.tasks.compute import StoppedError  # noqa: E402


class Idle:
    """Workers and a board that nobody is to ask anything."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"asked for {name}")


def test_closing_a_gap_leaves_later_receipts_as_they_are_bug(tmp_path: Path) -> None:
    """And needs nothing of what they name: it may have been removed since."""
    folder = make_campaign(tmp_path / "c")
    for iteration in range(3):
        finish(folder, iteration)
    folder.receipt(0).unlink()
    before = folder.receipt(1).read_bytes()
    run = CampaignRun(folder, Idle(), Idle(), CampaignClock(0.0))
    handoff = Handoff(read_receipt(folder, 1).plan, network=Future(), predecessor=Future())
    assert _run_iteration(run, handoff) == read_receipt(folder, 1)
    assert handoff.played.done(), "the next iteration may begin"
    assert handoff.trained.done(), "and play"
    assert folder.receipt(1).read_bytes() == before


def test_an_iteration_whose_network_was_not_trained_is_stopped() -> None:
    network: Future[None] = Future()
    network.set_exception(ValueError("training diverged"))
    handoff = Handoff(ProgressPlan(1, 0.0, 0.5, 1.0, num_shards=1), network, predecessor=None)
    with pytest.raises(StoppedError):
        handoff.wait_for_network()


@pytest.mark.parametrize(("iteration", "elapsed_s", "waits"), [
    (1, 100.0, False), (1, 3599.0, True), (0, 100.0, True),
], ids=["early", "near the end", "first"])
def test_an_iteration_is_begun_while_its_network_is_trained(
    tmp_path: Path, iteration: int, elapsed_s: float, waits: bool
) -> None:
    folder = make_campaign(tmp_path / "c", "campaign.hours=1")
    for earlier in range(iteration):  # of two seconds
        finish_without_games(folder, earlier, champion=0)
    plan = begin_iteration(folder, iteration, float(iteration))
    handoff = Handoff(plan, network=None, predecessor=None)
    run = CampaignRun(folder, SimpleNamespace(num_workers=1), Idle(), CampaignClock(elapsed_s))
    training = Timer(0.5, handoff.trained.set_result, [None])
    training.start()
    begun = _begin(run, iteration + 1, handoff)
    assert handoff.trained.done() == waits
    training.join()
    assert begun is None or elapsed_s <= begun.elapsed_s < 3600


def test_a_campaign_of_iterations_does_not_wait(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "c", "campaign.iterations=2")
    handoff = Handoff(begin_iteration(folder, 0, 0.0), network=None, predecessor=None)
    run = CampaignRun(folder, SimpleNamespace(num_workers=1), Idle(), CampaignClock(0.0))
    assert _begin(run, 1, handoff) is not None
    assert not handoff.trained.done()
