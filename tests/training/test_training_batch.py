"""Inputs of a training step, against python-chess and the records, one position at a time."""

import itertools
import threading
from dataclasses import replace

import chess
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.games import ONGOING
from chess_snn.training import TrainingSettings
from chess_snn.training.batch import assemble, load_ahead, transform
from chess_snn.training.ranks import divide


@pytest.fixture(scope="module")
def samples(searched_window):
    return searched_window.sample(64, np.random.default_rng(1))


@pytest.fixture(scope="module")
def batch(game, samples):
    return assemble(game, samples)


def test_every_plane_is_the_bits_of_its_word(game, samples, batch):
    words = game.planes(samples.states)
    bits = words[:, :, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    for most in (game.spec.num_planes, game.spec.all_planes):
        planes = batch.planes(most)
        np.testing.assert_array_equal(planes, bits.reshape(*words.shape, 8, 8)[:, :most])
        assert planes.dtype == torch.float32
        assert planes.is_contiguous(memory_format=torch.channels_last)


def test_legal_lists_are_python_chess_s(game, samples, batch):
    targets = batch.targets
    assert targets.legal_actions_BL.shape[1] == targets.num_legal_B.max()
    for b, state in enumerate(samples.states):
        board = chess.Board(game.format_state(state))
        listed = targets.legal_actions_BL[b, : targets.num_legal_B[b]].tolist()
        moves = {game.format_action(state, action) for action in listed}
        assert moves == {move.uci() for move in board.legal_moves}
        assert len(listed) == len(moves)


def weights_by_action(targets, b):
    """The policy target of one position as it reached the loss, without what weighs nothing."""
    num_legal = int(targets.num_legal_B[b])
    assert (targets.policy_BL[b, num_legal:] == 0).all()
    pairs = zip(targets.legal_actions_BL[b, :num_legal].tolist(),
                targets.policy_BL[b, :num_legal].tolist(), strict=True)
    return {action: weight for action, weight in pairs if weight}


def test_policy_targets_are_the_samples(samples, batch):
    lengths = (samples.target_actions >= 0).sum(axis=1)
    assert lengths.min() < lengths.max()  # some are padded
    for b, length in enumerate(lengths):
        actions = samples.target_actions[b, :length].tolist()
        weights = samples.target_weights[b, :length].tolist()
        assert weights_by_action(batch.targets, b) == dict(zip(actions, weights, strict=True))
    assert batch.targets.policy_BL.dtype == torch.float32


def test_values_and_plies_are_the_samples(samples, batch):
    targets = batch.targets
    columns = {
        "outcomes_stm_B": samples.outcomes_stm,
        "root_values_stm_B": samples.values_stm,
        "ended_B": samples.terminations != ONGOING,
    }
    for name, expected in columns.items():
        np.testing.assert_array_equal(getattr(targets, name), expected, name)
        assert getattr(targets, name).dtype == torch.float32
    np.testing.assert_allclose(
        targets.log_plies_left_B, np.log(1.0 + samples.plies_left), rtol=1e-6
    )
    assert targets.log_plies_left_B.dtype == torch.float32


def test_an_illegal_target_is_refused(game, samples):
    board = chess.Board(game.format_state(samples.states[9]))
    wrong = samples.target_actions.copy()
    legal = set(assemble(game, samples).targets.legal_actions_BL[9].tolist())
    wrong[9, 0] = next(action for action in range(1, 4672) if action not in legal)
    with pytest.raises(CorruptDataError, match=board.board_fen()):
        assemble(game, replace(samples, target_actions=wrong))


def mirrored_move(move):
    return chess.Move(move.from_square ^ 7, move.to_square ^ 7, move.promotion)


def test_a_mirrored_batch_asks_for_the_mirror_of_what_the_batch_asked(game, samples, batch):
    mirrored = transform(game, samples, np.ones(len(samples), np.uint8))
    targets = assemble(game, mirrored).targets
    num_mirrored = 0
    for b, state in enumerate(samples.states):
        before, after = (chess.Board(game.format_state(s)) for s in (state, mirrored.states[b]))
        is_same = bool(before.castling_rights)
        num_mirrored += not is_same
        expected = before if is_same else before.transform(chess.flip_horizontal)
        assert after.board_fen() == expected.board_fen()
        assert after.turn == before.turn

        def moves(targets, board, state, b=b):
            weights = weights_by_action(targets, b)
            return {board.parse_uci(game.format_action(state, action)): weight
                    for action, weight in weights.items()}

        wanted = moves(batch.targets, before, state)
        if not is_same:
            wanted = {mirrored_move(move): weight for move, weight in wanted.items()}
        assert moves(targets, after, mirrored.states[b]) == wanted
    assert 10 < num_mirrored < len(samples)
    for name in ("outcomes_stm_B", "root_values_stm_B", "log_plies_left_B",
                 "ended_B", "num_legal_B"):
        assert torch.equal(getattr(targets, name), getattr(batch.targets, name)), name


def test_only_the_chosen_samples_are_mirrored_and_in_a_copy(game, samples):
    before = samples.states.copy(), samples.target_actions.copy()
    chosen = np.arange(len(samples)) % 3 == 0
    some = transform(game, samples, chosen.astype(np.uint8))
    every = transform(game, samples, np.ones(len(samples), np.uint8))
    for name in ("states", "target_actions"):
        expected = getattr(samples, name).copy()
        expected[chosen] = getattr(every, name)[chosen]
        np.testing.assert_array_equal(getattr(some, name), expected)
    assert (some.states != samples.states).any()
    np.testing.assert_array_equal(samples.states, before[0])
    np.testing.assert_array_equal(samples.target_actions, before[1])
    nobody = transform(game, samples, np.zeros(len(samples), np.uint8))
    np.testing.assert_array_equal(nobody.states, samples.states)


AHEAD = pytest.mark.parametrize("ahead", [0, 1, 3])


@AHEAD
def test_items_come_in_order_and_no_more_are_made(ahead):
    source = itertools.count()
    assert list(load_ahead(lambda: next(source), 7, ahead)) == list(range(7))
    assert next(source) == 7
    assert list(load_ahead(lambda: next(source), 0, ahead)) == []
    assert next(source) == 8


def test_items_are_made_while_one_is_in_use():
    made = [threading.Event() for _ in range(4)]
    source = itertools.count()

    def prepare():
        index = next(source)
        made[index].set()
        return index

    items = load_ahead(prepare, 4, ahead=2)
    assert next(items) == 0
    assert made[2].wait(10)
    assert not made[3].is_set()
    assert list(items) == [1, 2, 3]


@AHEAD
def test_a_failure_is_raised_in_its_turn(ahead):
    source = itertools.count()

    def prepare():
        index = next(source)
        if index == 2:
            raise OSError("gone")
        return index

    items = load_ahead(prepare, 5, ahead)
    assert [next(items), next(items)] == [0, 1]
    with pytest.raises(OSError, match="gone"):
        next(items)


def test_leaving_early_ends_the_thread():
    items = load_ahead(lambda: 0, 1000, ahead=2)
    next(items)
    items.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("load-ahead")]


# Dealing micro-batches to ranks.


@given(batch=st.integers(2, 300), micro=st.integers(2, 70), ranks=st.integers(1, 4))
def test_every_position_is_in_exactly_one_share(batch, micro, ranks):
    settings = TrainingSettings(batch_size=batch, micro_batch=micro)
    if ranks > settings.num_micro_batches:
        with pytest.raises(UsageError, match=r"training\.micro_batch"):
            divide(settings, ranks)
        return
    division = divide(settings, ranks)
    assert sum(division.counts) == settings.num_micro_batches
    shares = [range(batch)[division.positions(rank)] for rank in range(ranks)]
    assert list(itertools.chain(*shares)) == list(range(batch))
    assert all(share.start % micro == 0 and len(share) > 0 for share in shares)


@given(parts=st.integers(1, 12), ranks=st.integers(1, 5))
def test_shares_are_even(parts, ranks):
    if ranks > parts:
        return
    counts = divide(TrainingSettings(batch_size=4 * parts, micro_batch=4), ranks).counts
    assert max(counts) - min(counts) <= 1
    assert list(counts) == sorted(counts, reverse=True)
