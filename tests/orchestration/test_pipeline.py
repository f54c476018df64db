"""Iterations one after another: one that has its receipt is left as it is."""

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")

from small_campaigns import finish, make_campaign  # noqa: E402

from chess_snn.campaign import read_receipt  # noqa: E402
from chess_snn.campaign.store.plans import CampaignClock, ProgressPlan  # noqa: E402
from flows.context import CampaignRun  # noqa: E402
from flows.iteration import Handoff, _run_iteration  # noqa: E402
from tasks.compute import StoppedError  # noqa: E402


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


def test_an_iteration_whose_network_was_not_trained_is_stopped_and_is_not_the_cause() -> None:
    network: Future[None] = Future()
    network.set_exception(ValueError("training diverged"))
    handoff = Handoff(ProgressPlan(1, 0.0, 0.5, 1.0, num_shards=1), network, predecessor=None)
    with pytest.raises(StoppedError):
        handoff.wait_for_network()
