"""The value of a truncated game in training, against its closed form."""

import math

import numpy as np
import pytest

from chess_snn.games import get_game
from chess_snn.self_play.group import cut_values_white

GAME = get_game("chess")
QUEEN_AHEAD = "3qk3/8/8/8/8/8/8/QQ2K3 {} - - 3 40"  # white: two queens against one
PAWNS_BEHIND = "4k3/pppppp2/8/8/8/8/8/4K3 {} - - 3 40"  # black: six pawns
EVEN = "4k3/p7/8/8/8/8/P7/4K3 {} - - 3 40"
TANH_1 = 0.7615941559557649


def cut_value(fen, root_value_white, material_share, limit):
    states = GAME.parse_state(fen)[None]
    values = cut_values_white(
        GAME, states, np.float32([root_value_white]), material_share=material_share, limit=limit
    )
    assert values.dtype == np.float32
    return values[0]


@pytest.mark.parametrize("side", "wb")
@pytest.mark.parametrize(("fen", "root", "share", "limit", "expected"), [
    (PAWNS_BEHIND, 0.9, 1.0, 1.0, -TANH_1),
    (PAWNS_BEHIND, 0.9, 0.0, 1.0, 0.9),
    (PAWNS_BEHIND, 0.9, 0.0, 0.5, 0.45),
    (PAWNS_BEHIND, 0.4, 0.75, 0.8, 0.8 * (0.25 * 0.4 - 0.75 * TANH_1)),
    (QUEEN_AHEAD, -0.2, 0.5, 0.8, 0.8 * (0.5 * math.tanh(1.5) - 0.5 * 0.2)),
    (QUEEN_AHEAD, -1.0, 0.5, 0.0, 0.0),
    (EVEN, -0.6, 0.5, 0.8, -0.24),
])
def test_material_and_root_value_mix(side, fen, root, share, limit, expected):
    value = cut_value(fen.format(side), root, share, limit)
    assert value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_no_value_is_beyond_its_limit(share):
    overwhelming = "4k3/8/8/8/8/8/8/QQQQKQQQ b - - 3 40"
    assert 0.79 < cut_value(overwhelming, 1.0, share, 0.8) <= np.float32(0.8)


def test_games_are_valued_one_by_one():
    fens = [QUEEN_AHEAD.format("w"), PAWNS_BEHIND.format("b"), EVEN.format("b")]
    roots = np.float32([0.5, -0.25, 0.125])
    states = np.stack([GAME.parse_state(fen) for fen in fens])
    together = cut_values_white(GAME, states, roots, material_share=0.6, limit=0.9)
    alone = [cut_value(fen, root, 0.6, 0.9) for fen, root in zip(fens, roots, strict=True)]
    np.testing.assert_array_equal(together, alone)


def test_no_games_have_no_values():
    states = np.empty((0, GAME.spec.state_words), np.uint64)
    assert cut_values_white(GAME, states, np.float32([]), material_share=1, limit=1).shape == (0,)
