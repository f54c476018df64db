"""Works take turns; rates are items over time."""

import time

import pytest
import torch

from chess_snn.bench.timing import Pace, Work, matrix_flops_per_s, rates_in_turn, torch_threads


def test_works_take_turns_after_one_call_of_each():
    calls = []
    works = {name: Work(lambda name=name: calls.append(name), items=1) for name in "ab"}
    rates_in_turn(works, Pace(rounds=2, turn_s=0.0))
    assert calls == ["a", "b", "a", "b", "a", "b"]


def test_a_rate_counts_the_items_of_all_calls_of_a_turn():
    work = Work(lambda: time.sleep(0.02), items=10)
    rate = rates_in_turn({"sleep": work}, Pace(rounds=1, turn_s=0.1))["sleep"]
    # Never faster than it sleeps, however busy the machine is.
    assert 0 < rate <= 10 / 0.02


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_peak_leaves_threads_as_they_were(dtype):
    before = torch.get_num_threads()
    assert matrix_flops_per_s(dtype, num_threads=1, size=64, rounds=2) > 0
    assert torch.get_num_threads() == before


def test_threads_come_back_after_an_error():
    before = torch.get_num_threads()
    with pytest.raises(RuntimeError), torch_threads(1):
        raise RuntimeError
    assert torch.get_num_threads() == before
