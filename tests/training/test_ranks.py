"""Ranks in processes of their own learn what one process learns, each sample once."""

import functools
import json

import numpy as np
import pytest
import torch
from rank_driver import SETTINGS, Case, case_network, learn, train
from rank_group import driver_environment, read_outcomes, run_group, write_task

from chess_snn.errors import RankLostError, UsageError
from chess_snn.training import RankInfo, step_checkpoints
from chess_snn.training.rank_launch import run_ranks
from chess_snn.training.ranks import _choose_backend

pytestmark = pytest.mark.timeout(600)

EVEN = Case("even")
SHORT = Case("short", {"batch_size": 56, "spike_rate_weight": 0.5})
"""The last of four micro-batches has 8 positions; spikes have a price."""
SHORT_OF_MEMORY = Case("oom", fault="oom", fault_rank=1, fault_step=2)
CASES = [EVEN, SHORT, SHORT_OF_MEMORY]
REFUSED = {
    "settings": "training.weight_decay", "window": "replay window", "stream": "stream of samples",
}
"""Differences of one rank, and the names under which the others see them."""
LEARN = Case("learn", {"batch_size": 512, "micro_batch": 256}, is_supervised=True)
"""From a dataset, two micro-batches: two ranks add up what one process does, in the same order."""
TOO_FEW_PARTS = Case("few", {"micro_batch": 48}, is_refused=True)
REFUSED_CASES = [Case(fault, fault=fault, is_refused=True) for fault in REFUSED]
PAIR = 2
SIZES = (PAIR, pytest.param(3, marks=pytest.mark.slow))

ROUNDING = {"rtol": 2e-6, "atol": 1e-7}
"""Rounding of figures, after some steps from sums in another order."""


@pytest.fixture(scope="module")
def groups(searched_shard, tmp_path_factory):
    """The folder in which a group of as many ranks has done all cases; each runs once."""

    @functools.cache
    def group_of(size):
        folder = tmp_path_factory.mktemp(f"group-of-{size}")
        pair = [LEARN] if size == PAIR else []
        run_group(folder, searched_shard, [*REFUSED_CASES, TOO_FEW_PARTS, *CASES, *pair], size)
        return folder

    return group_of


@pytest.fixture(scope="module")
def outcomes(groups):
    """Results of each rank of a group, by the case's name and the group's size."""
    return functools.cache(lambda case, size: read_outcomes(groups(size), case, size))


@pytest.fixture(scope="module")
def alone(searched_shard):
    """The same cases in this process."""
    return {case.name: train(case, searched_shard) for case in CASES if case.fault == ""}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", [
    pytest.param(EVEN, id=EVEN.name, marks=pytest.mark.slow), pytest.param(SHORT, id=SHORT.name),
])
def test_the_loss_curve_is_that_of_one_process(outcomes, alone, case, size):
    expected = alone[case.name]
    for outcome in outcomes(case.name, size):
        np.testing.assert_allclose(outcome.figures, expected.figures, **ROUNDING)
        (before, after), (wanted, wanted_after) = outcome.holdout, expected.holdout
        assert before == pytest.approx(wanted, rel=1e-6)
        # Held-out games have planes that no sample had: see the weights, below.
        assert after == pytest.approx(wanted_after, rel=2e-3)
        assert abs(after - before) > 10 * abs(after - wanted_after)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", [EVEN, SHORT], ids=lambda case: case.name)
def test_so_are_weights_and_running_statistics(outcomes, alone, case, size):
    """But for the few weights whose gradient is nothing but rounding: AdamW goes by its sign."""
    found, expected = outcomes(case.name, size)[0].state, alone[case.name].state
    distances = torch.cat([
        (found[name] - tensor).abs().flatten().float() for name, tensor in expected.items()
    ])
    assert distances.quantile(0.995) < 1e-5
    assert distances.max() < 2 * case.steps * SETTINGS["learning_rate"]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_ranks_come_to_the_same_bits(outcomes, case, size):
    first, *others = outcomes(case.name, size)
    for other in others:
        assert other.figures == first.figures
        for name, tensor in first.state.items():
            assert torch.equal(other.state[name], tensor), name


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_sample_is_computed_once_by_one_rank(outcomes, alone, case, size):
    drawn = alone.get(case.name, alone["even"]).rows  # memory decides nothing about the samples
    of_ranks = outcomes(case.name, size)
    for step, expected in enumerate(drawn):
        rows = [row for outcome in of_ranks for row in outcome.rows[step]]
        assert rows == expected
        assert min(len(outcome.rows[step]) for outcome in of_ranks) > 0


@pytest.mark.parametrize("size", SIZES)
def test_threads_of_gloo_end_before_the_interpreter_bug(groups, size):
    """One that frees a tensor while Python ends aborts its rank."""
    for rank in range(size):
        threads = json.loads((groups(size) / f"threads-{rank}.json").read_text())
        assert "python" in " ".join(threads)
        assert not [name for name in threads if "gloo" in name]


@pytest.mark.slow
def test_three_ranks_share_four_micro_batches(outcomes):
    first = outcomes("even", 3)[0]
    assert first.counts == [[2, 1, 1]] * EVEN.steps
    assert [len(outcome.rows[0]) for outcome in outcomes("short", 3)] == [32, 16, 8]


def test_from_given_games_two_ranks_learn_the_bits_of_one_process(
    groups, outcomes, searched_shard, tmp_path
):
    expected = learn(LEARN, searched_shard, tmp_path)
    untrained = case_network().state_dict()
    assert any(not torch.equal(expected.state[name], untrained[name]) for name in untrained)
    assert expected.figures[-1][-1] is not None, "no game was held out"
    first, other = outcomes("learn", PAIR)
    for outcome in (first, other):
        assert outcome.figures == expected.figures
        for name, tensor in expected.state.items():
            assert torch.equal(outcome.state[name], tensor), name
    kept = step_checkpoints(groups(PAIR) / "learn-steps")
    assert [path.name for path in kept] == [
        path.name for path in step_checkpoints(tmp_path)
    ], "rank 0 alone writes, and removes older ones"


@pytest.mark.parametrize(("wanted", "device", "gpus", "chosen"), [
    ("auto", "cuda:0", 2, "nccl"),
    ("auto", "cuda:0", 1, "gloo"),
    ("auto", "cpu", 2, "gloo"),
    ("gloo", "cuda:0", 2, "gloo"),
    ("nccl", "cuda:0", 2, "nccl"),
])
def test_nccl_is_chosen_if_each_rank_has_a_gpu_of_its_own(
    monkeypatch, wanted, device, gpus, chosen
):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert _choose_backend(wanted, torch.device(device), local_size=2) == chosen


@pytest.mark.parametrize(("device", "gpus"), [("cuda:0", 1), ("cpu", 2)])
def test_nccl_without_a_gpu_for_each_rank_is_refused(monkeypatch, device, gpus):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    with pytest.raises(UsageError, match='"nccl"'):
        _choose_backend("nccl", torch.device(device), local_size=2)


@pytest.mark.fault(13)
@pytest.mark.parametrize("size", SIZES)
def test_out_of_memory_on_one_rank_halves_micro_batches_on_all(outcomes, searched_shard, size):
    """From the step where it happened, as one process with the smaller ones would go on."""
    expected = train(Case("oom", fault="oom", fault_rank=0, fault_step=2), searched_shard)
    for outcome in outcomes("oom", size):
        assert outcome.micro_batches == [[0, 16], [1, 16], [2, 16], [2, 8], [3, 8], [4, 8]]
        np.testing.assert_allclose(outcome.figures, expected.figures, **ROUNDING)


@pytest.mark.fault(13)
def test_one_process_too_takes_the_step_again(searched_shard, alone):
    """Nothing of the failed attempt stays: the step is that of a fresh trainer in halves."""
    found = train(Case("oom", fault="oom", fault_rank=0, fault_step=0), searched_shard)
    halved = train(Case("halved", {"micro_batch": 8}), searched_shard)
    assert found.figures == halved.figures
    for name, tensor in halved.state.items():
        assert torch.equal(found.state[name], tensor), name
    assert found.figures != alone["even"].figures


@pytest.mark.fault(13)
def test_memory_that_is_never_enough_is_an_error(searched_shard, monkeypatch):
    def never(*arguments):
        raise torch.OutOfMemoryError("injected")

    monkeypatch.setattr("chess_snn.training.gradients.losses_of", never)
    with pytest.raises(UsageError, match=" 2 "):
        train(Case("never"), searched_shard)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("fault", REFUSED)
def test_ranks_that_disagree_are_refused_by_name(groups, size, fault):
    told = [(groups(size) / f"{fault}-{rank}.txt").read_text() for rank in range(size)]
    assert len(set(told)) == 1
    for part in ("rank 1 ", REFUSED[fault], "rank 0 "):
        assert part in told[0]
    assert not (groups(size) / f"{fault}-0.json").exists(), "it was trained"


@pytest.mark.slow
def test_more_ranks_than_micro_batches_are_refused(groups):
    assert (groups(PAIR) / "few-0.json").exists()
    assert "training.micro_batch" in (groups(3) / "few-2.txt").read_text()


@pytest.mark.slow
def test_a_rank_that_does_not_come_is_named(searched_shard, tmp_path):
    file = write_task(tmp_path / "g", searched_shard, [EVEN], timeout_s=2.0)
    with pytest.raises(RankLostError, match=r"^rank 1 of 2 "):
        run_ranks(
            1, "rank_driver", [str(file)], environment=driver_environment() | {"WORLD_SIZE": "2"}
        )


ENVIRONMENT = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}


@pytest.fixture
def torchrun_variables(monkeypatch):
    """Sets them; None leaves one out."""

    def set_all(**changes):
        for name, value in (ENVIRONMENT | changes).items():
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, value)

    return set_all


def test_a_place_is_read_from_what_torchrun_sets(torchrun_variables):
    torchrun_variables()
    assert RankInfo.from_environment() == RankInfo(3, 4, 1, 2)


def test_without_a_launcher_a_process_is_alone(torchrun_variables):
    torchrun_variables(RANK=None)
    assert RankInfo.from_environment() == RankInfo(0, 1, 0, 1)


@pytest.mark.parametrize(("name", "value"), [
    ("RANK", "-1"), ("WORLD_SIZE", "many"), ("LOCAL_RANK", None),
])
def test_a_variable_that_is_missing_or_no_number_is_named(torchrun_variables, name, value):
    torchrun_variables(**{name: value})
    with pytest.raises(UsageError, match=f"{name} = '{value or ''}'"):
        RankInfo.from_environment()
