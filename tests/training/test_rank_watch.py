"""Signs of life: who is silent or behind is named, and nobody else."""

import contextlib
import threading
import time
from datetime import timedelta

import pytest
from torch.distributed import PrefixStore, TCPStore

from chess_snn.training.rank_watch import RankCard, RankWatch, meet

TIMEOUT_S = 3.0
CARDS = [RankCard(rank, f"node-{rank}", 100 + rank) for rank in range(3)]


@pytest.fixture
def store(request):
    server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False,
                      timeout=timedelta(seconds=30))
    return PrefixStore(request.node.name, server)


class Other:
    """A rank as the store shows it: beats from a thread, begins no exchange unless told."""

    def __init__(self, store, rank):
        self.store, self.rank, self.begun = store, rank, 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.beat)

    def beat(self):
        beats = 0
        while not self.ended.wait(0.3):
            beats += 1
            self.store.set(f"life/{self.rank}", f"{beats} {self.begun}")

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.ended.set()
        self.thread.join()


@contextlib.contextmanager
def watching(store):
    """Rank 0 watches; the errors it gave up with."""
    for card in CARDS:
        store.set(f"life/{card.rank}", "0 0")
    errors = []
    with RankWatch(store, 0, CARDS, TIMEOUT_S, errors.append) as watch:
        yield watch, errors


def wait_for(errors):
    deadline = time.monotonic() + 30
    while not errors:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return str(errors[0])


def test_a_silent_rank_is_named(store):
    with Other(store, 1), watching(store) as (_, errors):
        assert wait_for(errors).startswith("rank 2 (process 102 on node-2) kept the others waiting")


def test_a_rank_that_lives_and_stays_behind_is_named(store):
    with Other(store, 1) as one, Other(store, 2), watching(store) as (watch, errors):
        for _ in range(4):
            watch.begin_exchange()
        one.begun = 4
        text = wait_for(errors)
        assert text.startswith("rank 2 (process 102 on node-2) kept the others waiting for 3 s in")
        assert "exchange 4" in text


def test_who_falls_behind_after_long_work_of_all_is_not_late_at_once_bug(store):
    """Such as a share of the held-out positions, which ends sooner on one rank than on another."""
    with Other(store, 1) as one, Other(store, 2) as two, watching(store) as (watch, errors):
        time.sleep(TIMEOUT_S + 1)
        watch.begin_exchange()
        time.sleep(TIMEOUT_S / 2)
        one.begun = two.begun = 1
        time.sleep(1.5)
        assert not errors


@pytest.mark.slow
def test_ranks_that_go_on_together_or_have_left_are_not(store):
    with Other(store, 1) as one, watching(store) as (watch, errors):
        store.set("life/2", "left")
        end = time.monotonic() + 3 * TIMEOUT_S
        while time.monotonic() < end:
            watch.begin_exchange()
            time.sleep(0.5)
            one.begun += 1
        assert not errors


def test_an_exchange_that_fails_is_blamed_on_who_is_silent(store):
    with Other(store, 1), watching(store) as (watch, _):
        watch.begin_exchange()
        text = str(watch.lost_in_exchange(RuntimeError("connection reset")))
    assert text == "rank 2 (process 102 on node-2) died or froze in exchange 1"


def test_where_all_live_the_error_itself_is_told(store):
    with Other(store, 1), Other(store, 2), watching(store) as (watch, _):
        text = str(watch.lost_in_exchange(RuntimeError("connection reset")))
    assert text == "exchange 0 failed, though every rank is alive: connection reset"


def test_ranks_know_each_other_when_they_met(store):
    met = {}
    threads = [
        threading.Thread(target=lambda rank: met.update({rank: meet(store, rank, 2, 30)}),
                         args=(rank,))
        for rank in (0, 1)
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert met[0] == met[1]
    assert [card.rank for card in met[0]] == [0, 1]
