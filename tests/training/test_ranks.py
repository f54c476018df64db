"""Ranks in processes of their own learn what one process learns, each sample once."""

import os

import numpy as np
import pytest
import torch
from rank_driver import SETTINGS, Case, case_network, learn, train
from rank_group import free_port, read_outcomes, run_group, start_rank, write_task

from chess_snn.errors import UsageError
from chess_snn.processes import PARENT_IS_DEAD
from chess_snn.training import RankPlace, step_checkpoints
from chess_snn.training.rank_watch import RankCard
from chess_snn.training.ranks import _common_backend

pytestmark = pytest.mark.timeout(600)

EVEN = Case("even")
SHORT = Case("short", {"batch_size": 56})
"""The last of four micro-batches has 8 positions."""
SHORT_OF_MEMORY = Case("oom", fault="oom", fault_rank=1, fault_step=2)
BY_PACE = Case("pace", {"batch_size": 96}, steps=6, by_pace=True, slow_ranks=(1,))
CASES = [EVEN, SHORT, SHORT_OF_MEMORY, BY_PACE]
REFUSED = {
    "settings": "training.clip_norm", "window": "replay window", "stream": "stream of samples",
}
"""What one rank has otherwise, and as what the others see it."""
FP16 = Case(
    "fp16", {"batch_size": 32, "precision": "fp16", "skip_limit": 0}, steps=12, loss_scale=2.0**24
)
"""Two micro-batches, of which two ranks add up what one process does, in the same order."""
LEARN = Case("learn", {"batch_size": 512, "micro_batch": 256}, is_supervised=True)
"""The same two micro-batches, from given games."""
CARD = RankCard(1, "box-a", 4711)
TOO_FEW_PARTS = Case("few", {"micro_batch": 48}, is_refused=True)
REFUSED_CASES = [Case(fault, fault=fault, is_refused=True) for fault in REFUSED]
SIZES = (2, 3)
PAIR = 2

ROUNDING = {"rtol": 2e-6, "atol": 1e-7}
"""Of figures, after some steps from sums in another order."""


@pytest.fixture(scope="module")
def groups(searched_shard, tmp_path_factory):
    """The outcomes of all cases by groups of 2 and of 3, and the folder of each group."""
    outcomes = {}
    for size in SIZES:
        folder = tmp_path_factory.mktemp(f"group-of-{size}")
        pair = [FP16, LEARN] if size == PAIR else []
        cases = [*REFUSED_CASES, TOO_FEW_PARTS, *CASES, *pair]
        codes, told = run_group(folder, searched_shard, cases, size)
        assert codes == [0] * size, told
        outcomes[size] = folder
        for case in [*CASES, *pair]:
            outcomes[case.name, size] = read_outcomes(folder, case, size)
    return outcomes


@pytest.fixture(scope="module")
def alone(searched_shard):
    """The same cases in this process."""
    return {case.name: train(case, searched_shard) for case in CASES if case.fault == ""}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", [EVEN, SHORT, BY_PACE], ids=lambda case: case.name)
def test_the_loss_curve_is_that_of_one_process(groups, alone, case, size):
    expected = alone[case.name]
    for outcome in groups[case.name, size]:
        np.testing.assert_allclose(outcome.figures, expected.figures, **ROUNDING)
        (before, after), (wanted, wanted_after) = outcome.holdout, expected.holdout
        assert before == pytest.approx(wanted, rel=1e-6)
        # Held-out games have planes that no sample had: see the weights, below.
        assert after == pytest.approx(wanted_after, rel=2e-3)
        assert abs(after - before) > 10 * abs(after - wanted_after)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", [EVEN, SHORT], ids=lambda case: case.name)
def test_so_are_weights_and_running_statistics(groups, alone, case, size):
    """But for the few weights whose gradient is nothing but rounding: AdamW goes by its sign."""
    found, expected = groups[case.name, size][0].state, alone[case.name].state
    distances = torch.cat([
        (found[name] - tensor).abs().flatten().float() for name, tensor in expected.items()
    ])
    assert distances.quantile(0.995) < 1e-5
    assert distances.max() < 2 * case.steps * SETTINGS["learning_rate"]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_ranks_come_to_the_same_bits(groups, case, size):
    first, *others = groups[case.name, size]
    for other in others:
        assert other.figures == first.figures
        for name, tensor in first.state.items():
            assert torch.equal(other.state[name], tensor), name


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_sample_is_computed_once_by_one_rank(groups, alone, case, size):
    drawn = alone.get(case.name, alone["even"]).rows  # memory decides nothing about the samples
    outcomes = groups[case.name, size]
    for step, expected in enumerate(drawn):
        rows = [row for outcome in outcomes for row in outcome.rows[step]]
        assert rows == expected
        assert min(len(outcome.rows[step]) for outcome in outcomes) > 0


def test_three_ranks_share_four_micro_batches(groups):
    first = groups["even", 3][0]
    assert first.counts == [[2, 1, 1]] * EVEN.steps
    assert [len(outcome.rows[0]) for outcome in groups["short", 3]] == [32, 16, 8]


@pytest.mark.parametrize("size", SIZES)
def test_a_slow_rank_is_given_less_once_that_was_measured(groups, size):
    counts = groups["pace", size][0].counts
    assert counts[:3] == [[6 // size] * size] * 3
    assert counts[-1][1] < 6 // size
    assert sum(counts[-1]) == 6


def test_in_fp16_two_ranks_find_the_scale_and_the_bits_of_one_process(groups, searched_shard):
    expected = train(FP16, searched_shard)
    assert expected.scales[0] < FP16.loss_scale, "nothing overflowed"
    assert expected.scales[-1] == expected.scales[-2], "nothing else was done"
    for outcome in groups["fp16", PAIR]:
        assert outcome.scales == expected.scales
        assert outcome.figures == expected.figures
        for name, tensor in expected.state.items():
            assert torch.equal(outcome.state[name], tensor), name


def test_from_given_games_two_ranks_learn_the_bits_of_one_process(groups, searched_shard, tmp_path):
    expected = learn(LEARN, searched_shard, tmp_path)
    untrained = case_network().state_dict()
    assert any(not torch.equal(expected.state[name], untrained[name]) for name in untrained)
    assert expected.figures[-1][-1] is not None, "no game was held out"
    first, other = groups["learn", PAIR]
    for outcome in (first, other):
        assert outcome.figures == expected.figures
        for name, tensor in expected.state.items():
            assert torch.equal(outcome.state[name], tensor), name
    kept = step_checkpoints(groups[PAIR] / "learn-steps")
    assert [path.name for path in kept] == [
        path.name for path in step_checkpoints(tmp_path)
    ], "rank 0 alone writes, and removes older ones"


@pytest.mark.parametrize(("told", "chosen"), [
    ([("auto", True), ("auto", True)], "nccl"),
    ([("auto", True), ("auto", False)], "gloo"),
    ([("gloo", True), ("gloo", True)], "gloo"),
    ([("nccl", True), ("nccl", True)], "nccl"),
])
def test_all_ranks_exchange_by_the_same_backend(told, chosen):
    assert _common_backend([CARD, CARD], told) == chosen


@pytest.mark.parametrize(("told", "reason"), [
    ([("nccl", True), ("nccl", False)], 'the backend "nccl" needs a GPU for each rank, and rank 1'),
    ([("auto", True), ("gloo", True)], 'rank 1 .* has the backend "gloo", and rank 1 .* "auto"'),
])
def test_a_backend_that_ranks_cannot_share_is_refused(told, reason):
    with pytest.raises(UsageError, match=reason):
        _common_backend([CARD, CARD], told)


@pytest.mark.fault(13)
@pytest.mark.parametrize("size", SIZES)
def test_out_of_memory_on_one_rank_halves_micro_batches_on_all(groups, searched_shard, size):
    """From the step where it happened, as one process with the smaller ones would go on."""
    expected = train(Case("oom", fault="oom", fault_rank=0, fault_step=2), searched_shard)
    for outcome in groups["oom", size]:
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
    with pytest.raises(UsageError, match="micro-batches of 2 positions"):
        train(Case("never"), searched_shard)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("fault", REFUSED)
def test_ranks_that_disagree_are_refused_by_name(groups, size, fault):
    told = [(groups[size] / f"{fault}-{rank}.txt").read_text() for rank in range(size)]
    assert len(set(told)) == 1
    assert told[0].startswith("rank 1 (process ")
    assert f") has {REFUSED[fault]} = " in told[0]
    assert ", and rank 0 (process " in told[0]
    assert not (groups[size] / f"{fault}-0.json").exists(), "it was trained"


def test_more_ranks_than_micro_batches_are_refused(groups):
    assert (groups[2] / "few-0.json").exists()
    told = (groups[3] / "few-2.txt").read_text()
    assert told.startswith("3 ranks cannot share a step of 2 micro-batches")
    assert "set training.micro_batch to 21 or less" in told


def test_a_rank_that_does_not_come_is_named(searched_shard, tmp_path):
    file = write_task(tmp_path / "g", searched_shard, [EVEN], timeout_s=2.0)
    rank = start_rank(file, 0, 2, free_port())
    told = rank.communicate(timeout=120)[1]
    assert rank.returncode == 2
    assert "RankLostError: rank 1 of 2 ranks did not come within 2 s" in told


def test_a_rank_whose_launcher_died_before_it_came_ends(searched_shard, tmp_path):
    file = write_task(tmp_path / "g", searched_shard, [EVEN])
    stranger = os.getppid()
    rank = start_rank(file, 0, 2, free_port(), CHESS_SNN_AGENT_PID=str(stranger))
    rank.communicate(timeout=120)
    assert rank.returncode == PARENT_IS_DEAD


ENVIRONMENT = {
    "RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "node-0", "MASTER_PORT": "29500",
}


def test_a_place_is_read_from_what_torchrun_sets():
    place = RankPlace.from_environment(ENVIRONMENT)
    assert place == RankPlace(3, 4, 1, 2, "node-0", 29500, keeps_store=False)
    first = ENVIRONMENT | {"RANK": "0", "LOCAL_RANK": "0"}
    assert RankPlace.from_environment(first).keeps_store
    agent = first | {"TORCHELASTIC_USE_AGENT_STORE": "True"}
    assert not RankPlace.from_environment(agent).keeps_store


def test_without_a_launcher_there_is_no_place():
    assert RankPlace.from_environment({"PATH": os.environ["PATH"]}) is None


@pytest.mark.parametrize(("changes", "message"), [
    ({"RANK": "4"}, "RANK = 4 does not fit WORLD_SIZE = 4"),
    ({"RANK": "-1"}, "RANK = '-1' is not a number"),
    ({"WORLD_SIZE": "many"}, "WORLD_SIZE = 'many' is not a number"),
    ({"LOCAL_RANK": "2"}, "LOCAL_RANK = 2 does not fit"),
    ({"LOCAL_WORLD_SIZE": "5"}, "LOCAL_WORLD_SIZE = 5 does not fit"),
])
def test_places_that_cannot_be_are_refused(changes, message):
    with pytest.raises(UsageError, match=message):
        RankPlace.from_environment(ENVIRONMENT | changes)


def test_a_missing_variable_is_named():
    partial = {k: v for k, v in ENVIRONMENT.items() if k != "MASTER_ADDR"}
    with pytest.raises(UsageError, match="RANK is set and MASTER_ADDR is not"):
        RankPlace.from_environment(partial)
