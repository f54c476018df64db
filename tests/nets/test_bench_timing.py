"""Works take turns; rates are items over time."""

from types import SimpleNamespace

import pytest
import torch

from chess_snn.bench import timing
from chess_snn.bench.timing import Pace, Work, matrix_flops_per_s, rates_in_turn, torch_threads


def test_works_take_turns_after_one_call_of_each():
    calls = []
    works = {name: Work(lambda name=name: calls.append(name), items=1) for name in "ab"}
    rates_in_turn(works, Pace(rounds=2, turn_s=0.0))
    assert calls == ["a", "b", "a", "b", "a", "b"]


def test_a_rate_counts_the_items_of_all_calls_of_a_turn(monkeypatch):
    now = 5.0

    def work():
        nonlocal now
        now += 1 / 64

    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: now))
    pace = Pace(rounds=1, turn_s=7 / 64)
    assert rates_in_turn({"work": Work(work, items=10)}, pace) == {"work": 640.0}
    assert now == 5.0 + 8 / 64, "one call before, seven in the turn"


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
