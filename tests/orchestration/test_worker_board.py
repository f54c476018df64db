"""Games by worker, from events that may come late, twice or not at all."""

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("distributed")

from tasks.cluster.devices import WorkerState  # noqa: E402
from tasks.progress import WorkerBoard  # noqa: E402


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def event(done, worker="a/cpu-0", part="shard 0", stage="self-play", total=100):
    return {"iteration": 2, "stage": stage, "part": part, "done": done, "total": total,
            "sender": worker}


def state(name="a/cpu-0", quiet_s=0.4):
    return WorkerState(name, "the processor of a", quiet_s, 0.98, 1 << 29, None)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def board(clock):
    return WorkerBoard(lambda: [state("a/cpu-1", 7.0), state()], clock)


def test_games_are_counted_by_worker_and_paced_over_the_last_minute(board, clock):
    for done in range(10, 101, 10):
        board.handle_event(event(done))
        clock.now += 2.0
    first, second = board.progress()
    assert (first.name, first.games, second.games) == ("a/cpu-0", 100, 0)
    assert first.games_per_s == pytest.approx(90 / 20)
    clock.now += 1000.0
    assert board.progress()[0].games_per_s == 0.0
    assert board.progress()[0].games == 100


def test_an_event_that_is_lost_or_comes_twice_changes_nothing(board):
    for done in (10, 10, 40, 40):
        board.handle_event(event(done))
    assert board.progress()[0].games == 40


def test_a_shard_that_is_begun_again_counts_the_games_that_are_played(board):
    for done in (30, 5, 20):
        board.handle_event(event(done))
    assert board.progress()[0].games == 50
    board.handle_event(event(10, part="shard 1"))
    assert board.progress()[0].games == 60


def test_steps_are_no_games(board):
    board.handle_event(event(200, stage="training", part="steps", total=400))
    (worker, _) = board.progress()
    assert worker.games == 0
    assert worker.doing == "iteration 2 training, steps: 200 of 400"


def test_who_has_finished_has_nothing_to_do(board):
    board.handle_event(event(99))
    assert board.progress()[0].doing == "iteration 2 self-play, shard 0: 99 of 100"
    board.handle_event(event(100))
    assert board.progress()[0].doing == ""


def test_the_last_sign_of_life_is_the_newer_of_both(board, clock):
    assert [worker.quiet_s for worker in board.progress()] == [0.4, 7.0]
    board.handle_event(event(1, worker="a/cpu-1"))
    clock.now += 3.0
    assert [worker.quiet_s for worker in board.progress()] == [0.4, 3.0]


def test_a_worker_that_has_left_is_told_of_no_more(clock):
    there = [state()]
    board = WorkerBoard(lambda: there, clock)
    board.handle_event(event(10))
    there.clear()
    assert board.progress() == []
    there.append(state())
    assert board.progress()[0].games == 10
