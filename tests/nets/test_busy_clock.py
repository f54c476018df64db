import threading
import time

import pytest

from chess_snn.nets.cuda_evaluator import BusyClock


def test_time_in_use_by_several_counts_once():
    clock, barrier = BusyClock(), threading.Barrier(3)

    def use():
        with clock:
            barrier.wait()
            time.sleep(0.05)

    threads = [threading.Thread(target=use) for _ in range(3)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0.05 <= clock.seconds <= time.perf_counter() - start


def test_it_stands_still_out_of_use_and_runs_in_use():
    clock = BusyClock()
    with clock:
        before = clock.seconds
        time.sleep(0.01)
        assert clock.seconds >= before + 0.01
    stopped = clock.seconds
    time.sleep(0.01)
    assert clock.seconds == stopped


def test_it_stops_when_a_user_fails():
    clock = BusyClock()
    with pytest.raises(ZeroDivisionError), clock:
        1 / 0  # noqa: B018
    stopped = clock.seconds
    time.sleep(0.01)
    assert clock.seconds == stopped
