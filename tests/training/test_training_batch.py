"""What a training step sees, against python-chess and the records, one position at a time."""

from dataclasses import replace

import chess
import numpy as np
import pytest
import torch

from chess_snn.training.batch import assemble

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def samples(window):
    return window.sample(64, np.random.default_rng(1))


@pytest.fixture(scope="module")
def batch(game, samples):
    return assemble(game, samples, CPU)


def test_pieces_stand_on_their_planes(game, samples, batch):
    """Planes 0 to 5 are the mover's pieces and 6 to 11 the other's, from the mover's side."""
    for b, state in enumerate(samples.states):
        board = chess.Board(game.format_state(state))
        view = board if board.turn == chess.WHITE else board.mirror()
        expected = np.zeros((12, 8, 8), np.float32)
        for square, piece in view.piece_map().items():
            plane = piece.piece_type - 1 + (0 if piece.color == chess.WHITE else 6)
            expected[plane, square // 8, square % 8] = 1
        np.testing.assert_array_equal(batch.planes_BPHW[b, :12], expected)


def test_every_plane_is_the_bits_of_its_word(game, samples, batch):
    words = game.planes(samples.states)
    bits = words[:, :, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    np.testing.assert_array_equal(batch.planes_BPHW, bits.reshape(*words.shape, 8, 8))
    assert batch.planes_BPHW.dtype == torch.float32
    assert batch.planes_BPHW.is_contiguous(memory_format=torch.channels_last)


def test_legal_lists_are_python_chess_s(game, samples, batch):
    targets = batch.targets
    assert targets.legal_actions_BL.shape[1] == targets.num_legal_B.max()
    for b, state in enumerate(samples.states):
        board = chess.Board(game.format_state(state))
        listed = targets.legal_actions_BL[b, : targets.num_legal_B[b]].tolist()
        moves = {game.format_action(state, action) for action in listed}
        assert moves == {move.uci() for move in board.legal_moves}
        assert len(listed) == len(moves)
        assert targets.target_actions_BK[b, 0] in listed


def test_all_columns_can_be_gathered(game, batch):
    targets = batch.targets
    for actions in (targets.legal_actions_BL, targets.target_actions_BK):
        assert actions.dtype == torch.int64
        assert actions.min() >= 0
        assert actions.max() < game.spec.num_actions


def test_a_short_target_is_padded_with_weight_0(game, samples):
    short = replace(
        samples,
        target_actions=np.column_stack([samples.target_actions, np.full((64, 2), -1, np.int16)]),
        target_weights=np.column_stack([samples.target_weights, np.zeros((64, 2), np.float32)]),
    )
    targets = assemble(game, short, CPU).targets
    assert targets.target_actions_BK.shape == (64, 3)
    assert targets.target_actions_BK.min() >= 0
    np.testing.assert_array_equal(targets.target_actions_BK[:, 0], samples.target_actions[:, 0])
    np.testing.assert_array_equal(targets.target_weights_BK, short.target_weights)


def test_targets_are_the_samples(samples, batch):
    targets = batch.targets
    present = samples.target_actions >= 0
    np.testing.assert_array_equal(
        targets.target_actions_BK.numpy()[present], samples.target_actions[present]
    )
    np.testing.assert_array_equal(targets.target_weights_BK, samples.target_weights)
    np.testing.assert_array_equal(targets.outcomes_stm_B, samples.outcomes_stm)
    assert targets.target_weights_BK.dtype == targets.outcomes_stm_B.dtype == torch.float32
