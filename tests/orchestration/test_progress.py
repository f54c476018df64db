"""A board and its listeners, one of which waits for a server that never answers."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.timeout(120)]
pytest.importorskip("distributed")

from waiting import wait_for  # noqa: E402

from chess_snn.campaign.viewing.events import (  # noqa: E402
    Event,
    Message,
    StageProgress,
    WorkersProgress,
)
from chess_snn.tasks.progress import ProgressBoard  # noqa: E402

TOLD_WITHIN_S = 10.0
"""Limit for news of a dead worker, whatever the servers do."""
HANGS_S = 60.0


class Ear:
    """A listener that keeps all."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.stages: list[StageProgress] = []
        self.num_workers = 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, StageProgress):
            self.stage(event)
        elif isinstance(event, WorkersProgress):
            self.num_workers += 1
        else:
            assert isinstance(event, Message)
            self.lines.append(event.text)

    def stage(self, progress: StageProgress) -> None:
        self.stages.append(progress)


class Caller(Ear):
    """A listener that asks a server first, as Prefect's pages are brought up to date."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.is_asking = threading.Event()

    def stage(self, progress: StageProgress) -> None:
        self.is_asking.set()
        with suppress(httpx.HTTPError):
            httpx.get(self.url, timeout=HANGS_S)
        super().stage(progress)


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes calls and answers none, until it is closed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.slow
def test_a_listener_that_hangs_keeps_nobody_waiting_bug(silent: str) -> None:
    """The end of a worker was told once Prefect's server had answered; and Dask waited for that."""
    ear, caller = Ear(), Caller(silent)
    board = ProgressBoard([caller, ear], period_s=0.05)
    board.watch_workers(list)
    start_s = time.monotonic()
    with board.running(), board.stage(0, "self_play", "games", 10):
        assert caller.is_asking.wait(10)
        for number in range(50):
            board.message(f"worker {number} was killed")
        board.count(0, "self_play", "shard 0", 7)
        wait_for(
            lambda: ear.num_workers >= 2 and ear.stages[-1].done >= 7,
            "the others hear of progress no more", 30,
        )
    assert ear.lines == [f"worker {number} was killed" for number in range(50)]
    assert ear.stages[-1].has_ended
    assert time.monotonic() - start_s < TOLD_WITHIN_S
    assert caller.lines == []


@pytest.mark.slow
def test_a_listener_that_is_back_hears_what_it_missed() -> None:
    class Slow(Ear):
        may_go_on = threading.Event()

        def stage(self, progress: StageProgress) -> None:
            assert self.may_go_on.wait(60)
            super().stage(progress)

    slow = Slow()
    board = ProgressBoard([slow], period_s=0.05)
    with board.running(), board.stage(0, "train", "steps", 10):
        board.message("the first")
        time.sleep(0.5)
    board.message("the second")
    assert slow.lines == []
    slow.may_go_on.set()
    wait_for(lambda: slow.lines == ["the first", "the second"], timeout_s=30)
    assert slow.stages[-1].has_ended
    board.message("the third")
    assert slow.lines[-1] == "the third"


def test_all_is_told_when_a_call_returns_and_nothing_of_a_stage_after_its_last() -> None:
    ear = Ear()
    board = ProgressBoard([ear], period_s=0.001)
    with board.running():
        for iteration in range(200):
            with board.stage(iteration, "train", "steps", 10):
                board.message(f"{iteration}")
                assert ear.lines[-1] == f"{iteration}"
            assert ear.stages[-1].has_ended
    ended: set[int] = set()
    for progress in ear.stages:
        assert progress.iteration not in ended
        if progress.has_ended:
            ended.add(progress.iteration)
    assert len(ended) == 200


def test_the_end_of_a_stage_says_all_only_if_it_was_done() -> None:
    ear = Ear()
    board = ProgressBoard([ear])
    with board.stage(0, "train", "steps", 10):
        board.count(0, "train", "a", 7)
    with suppress(ZeroDivisionError), board.stage(1, "train", "steps", 10):
        board.count(1, "train", "a", 3)
        raise ZeroDivisionError
    ended = [progress for progress in ear.stages if progress.has_ended]
    assert [(progress.iteration, progress.done) for progress in ended] == [(0, 10), (1, 3)]


def test_a_stage_whose_total_was_unknown_ends_at_its_whole_bug() -> None:
    """The number of games of a gating match is not known before: it stayed at 0 %."""
    ear = Ear()
    board = ProgressBoard([ear])
    with board.stage(0, "gating match", "games", total=0):
        board.count(0, "gating match", "part 0", 6)
    with suppress(OSError), board.stage(1, "gating match", "games", total=0):
        board.count(1, "gating match", "part 0", 6)
        raise OSError
    _, completed, _, failed = ear.stages
    assert (completed.done, completed.share) == (6, 1.0)
    assert (failed.done, failed.share) == (6, 0.0)


def test_what_a_listener_raises_is_raised_where_it_is_told() -> None:
    def fail(event: Event) -> None:
        raise ArithmeticError(event)

    board = ProgressBoard([fail])
    with pytest.raises(ArithmeticError):
        board.message("the disk")
