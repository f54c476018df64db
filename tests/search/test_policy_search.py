"""Policy search against closed forms of its distribution."""

import math

import numpy as np
import pytest
import torch
from search_inputs import chess_positions, position

from chess_snn.games import get_game
from chess_snn.nets import build_network, make_evaluator, net_config
from chess_snn.nets.evaluator import Evaluation
from chess_snn.rng import random_unit, random_word
from chess_snn.search import PolicySearch

GAME = get_game("chess")
EIGHT_MOVES = "k7/p7/8/8/3K4/8/8/8 w - - 0 1"
NUM_DRAWS = 8000
CHI_SQUARED_999 = 24.32
"""99.9 % quantile at 7 degrees of freedom."""
NOT_AN_ACTION = -7


@pytest.fixture(scope="module")
def evaluator():
    """A network with opinions: a fresh one is near uniform over legal moves."""
    config = net_config("tiny", blocks=1, channels=8, value_channels=2, value_hidden=8)
    network = build_network(GAME.spec, config, seed=6)
    with torch.no_grad():
        network.policy.readout.weight *= 6
    with make_evaluator(network, precision="fp32") as evaluator:
        yield evaluator


@pytest.fixture(scope="module")
def search(evaluator):
    return PolicySearch(GAME, evaluator)


def copies(fen, count):
    return position(fen).take(np.zeros(count, np.int64))


def various(count):
    """Positions after 0 to 40 random plies, with rubbish behind each legal list."""
    batch = chess_positions(count, most_plies=40)
    behind = np.arange(GAME.spec.max_legal) >= batch.num_legal[:, None]
    batch.legal_actions[behind] = NOT_AN_ACTION
    return batch


def keys(count, seed=0):
    return np.random.default_rng([9, seed]).integers(2**64, size=count, dtype=np.uint64)


def full(count, number, dtype):
    return np.full(count, number, dtype)


def run(search, batch, temperature=1.0, *, keys_G=None, plies_G=None):
    count = len(batch)
    return search.run(
        batch,
        keys(count) if keys_G is None else keys_G,
        full(count, 3, np.int32) if plies_G is None else plies_G,
        full(count, temperature, np.float32),
    )


def evaluate(evaluator, batch):
    planes = GAME.planes(batch.state)
    return evaluator.evaluate(planes, batch.legal_actions, batch.num_legal)


def softmax(logits):
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return weights / weights.sum()


@pytest.mark.parametrize(("temperature", "varied"), [(0.4, "key"), (2.5, "ply")])
def test_actions_are_drawn_from_the_tempered_softmax(search, evaluator, temperature, varied):
    batch = copies(EIGHT_MOVES, NUM_DRAWS)
    count = batch.num_legal[0]
    logits = evaluate(evaluator, batch.take(np.zeros(1, np.int64))).legal_logits[0, :count]
    expected = NUM_DRAWS * softmax(logits / temperature)
    assert count == 8
    assert expected.max() > 1.3 * expected.min() > 5  # neither uniform nor too rare to test

    if varied == "key":
        result = run(search, batch, temperature)
    else:
        one_key = full(NUM_DRAWS, keys(1)[0], np.uint64)
        plies = np.arange(NUM_DRAWS, dtype=np.int32)
        result = run(search, batch, temperature, keys_G=one_key, plies_G=plies)
    observed = (result.actions[:, None] == batch.legal_actions[0, :count]).sum(axis=0)
    assert observed.sum() == NUM_DRAWS
    assert ((observed - expected) ** 2 / expected).sum() < CHI_SQUARED_999


def test_temperature_0_plays_the_likeliest_action(search, evaluator):
    batch = various(60)
    best = evaluate(evaluator, batch).legal_logits.argmax(axis=1)
    result = run(search, batch, temperature=0.0)
    np.testing.assert_array_equal(result.actions, batch.legal_actions[np.arange(len(batch)), best])


def test_hardly_any_temperature_plays_one_of_the_likeliest(search, evaluator):
    batch = various(60)
    logits = evaluate(evaluator, batch).legal_logits
    actions = run(search, batch, temperature=1e-30).actions
    rows, slots = np.nonzero(batch.legal_actions == actions[:, None])
    np.testing.assert_array_equal(logits[rows, slots], logits.max(axis=1))


def test_draw_depends_on_its_own_row_alone(search):
    batch = various(60)
    count = len(batch)
    plies = (np.arange(count) % 7).astype(np.int32)
    first = run(search, batch, keys_G=keys(count), plies_G=plies)
    order = np.random.default_rng(1).permutation(count)[: count // 2]
    again = run(search, batch.take(order), keys_G=keys(count)[order], plies_G=plies[order])
    for name in ("actions", "values_stm", "prior_entropies"):
        np.testing.assert_array_equal(getattr(again, name), getattr(first, name)[order], name)


def test_rows_have_their_own_temperature(search, evaluator):
    batch = copies(EIGHT_MOVES, 400)
    temperatures = np.tile(np.float32([0.0, 100.0]), 200)
    actions = search.run(batch, keys(400), full(400, 0, np.int32), temperatures).actions
    best = batch.legal_actions[0, evaluate(evaluator, batch).legal_logits[0].argmax()]
    assert (actions[::2] == best).all()
    assert (actions[1::2] == best).mean() < 0.5


def test_without_a_tree_there_are_no_targets(search):
    batch = various(60)
    result = run(search, batch)
    assert result.policy_targets.shape == (len(batch), 0)
    assert (result.policy_targets.dtype, result.actions.dtype) == (np.float32, np.int16)
    assert batch.lists(result.actions).all()


@pytest.mark.parametrize(("temperature", "scale"), [(4.0, 0.0), (1.0, 1.0), (0.3, 30.0)])
def test_the_draw_is_that_of_all_noises(temperature, scale):
    """Bit by bit the action of the plain formula, which takes every logarithm."""
    batch = various(400)
    count, width = batch.legal_actions.shape
    logits = np.random.default_rng(3).normal(0, scale, (count, width)).astype(np.float32)
    drawn = run(PolicySearch(GAME, Fixed(logits)), batch, temperature).actions
    for g in range(count):
        stream = np.uint64(random_word(keys(count)[g], np.uint64(3)))
        scores = [
            float(logits[g, j]) / float(np.float32(temperature))
            - math.log(-math.log(random_unit(stream, np.uint64(j))))
            for j in range(batch.num_legal[g])
        ]
        assert drawn[g] == batch.legal_actions[g, np.argmax(scores)]


class Fixed:
    """Answers with the same logits, whatever is asked."""

    def __init__(self, logits):
        self._logits = logits

    def evaluate(self, planes, legal_actions, num_legal):
        value, wdl = np.zeros(len(planes), np.float32), np.zeros((len(planes), 3), np.float32)
        return Evaluation(self._logits, value, wdl)


@pytest.mark.parametrize("temperature", [0.0, 2.0])
def test_values_and_entropies_are_the_networks(search, evaluator, temperature):
    batch = various(60)
    evaluation = evaluate(evaluator, batch)
    result = run(search, batch, temperature)
    np.testing.assert_array_equal(result.values_stm, evaluation.value_stm)
    for g, count in enumerate(batch.num_legal):
        policy = softmax(evaluation.legal_logits[g, :count])
        entropy = -(policy * np.log(policy)).sum()
        assert result.prior_entropies[g] == pytest.approx(entropy, abs=1e-5)


def test_a_forced_move_has_no_entropy(search):
    batch = copies("7k/8/8/8/8/8/1q6/K6N w - - 0 1", 1)
    assert batch.num_legal[0] == 1
    result = run(search, batch)
    assert result.actions[0] == batch.legal_actions[0, 0]
    assert result.prior_entropies[0] == pytest.approx(0, abs=1e-7)


def test_search_leaves_the_batch_alone(search):
    batch = various(20)
    before = batch.take(np.arange(len(batch)))
    run(search, batch)
    for name in ("state", "history", "legal_actions", "num_legal", "termination", "reward"):
        np.testing.assert_array_equal(getattr(batch, name), getattr(before, name), name)


def test_another_key_or_ply_draws_anew(search):
    batch = copies(EIGHT_MOVES, 200)
    first, again, other_ply, other_key = (
        run(search, batch, **given).actions
        for given in ({}, {}, {"plies_G": full(200, 4, np.int32)}, {"keys_G": keys(200, seed=1)})
    )
    assert (again == first).all()
    assert (other_ply != first).mean() > 0.5
    assert (other_key != first).mean() > 0.5
