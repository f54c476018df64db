"""Each game keeps the promises of every game; games are found by name."""

import random

import chess_oracle as oracle
import numpy as np
import pytest
from game_contract import GameContract

from benchmarks import env
from chess_snn.errors import ConfigError
from chess_snn.games import ONGOING, get_game, termination_counts
from chess_snn.games import starts as starts_module
from chess_snn.games.base import NO_ACTION
from chess_snn.games.chess import from_board
from chess_snn.games.minimax import best_actions
from chess_snn.games.starts import mismatched_starts, random_legal_actions, random_starts
from chess_snn.known import GAME_NAMES


class TestChessContract(GameContract):
    @pytest.fixture
    def game(self):
        return get_game("chess")

    @pytest.fixture
    def bad_states(self):
        return ("", "   ", "startpos", "8/8/8/8/8/8/8/8 w - - 0 1", "a\nb", "\x00", "♔" * 64)

    @pytest.fixture
    def bad_actions(self):
        malformed = ("", "e2", "nonsense", "\x00", "O-O", "e4", "z9z9", "e2e4 e7e5", "♙e4")
        return (*malformed, "e2e5", "e7e5", "0000", "e2e4q", "e1h1")


# 2048 keeps the promises of every game.


EMPTY_ROWS = "/. . . ./. . . ./. . . ."


class TestTwenty48Contract(GameContract):
    has_practice_states = False

    @pytest.fixture
    def game(self):
        return get_game("2048")

    @pytest.fixture
    def bad_states(self):
        malformed = ("", "   ", "startpos", "2 2 . ./. . . .", "a\nb", "\x00", "2 . . . ." * 4)
        out_of_range = (
            f"2 2 . {tile}{EMPTY_ROWS}" for tile in ("0", "1", "3", "-2", "65536", "+", "2.0")
        )
        return (
            *malformed, *out_of_range,
            f". . . .{EMPTY_ROWS}",
            f". . . .{EMPTY_ROWS} +",
            f"2 . . .{EMPTY_ROWS}",
            f"8 . . 8{EMPTY_ROWS}",
            f"2 2 . .{EMPTY_ROWS} + +",
            "/".join(["2 4 2 4", "4 2 4 2"] * 2) + " +",
        )

    @pytest.fixture
    def bad_actions(self):
        return ("", "x", "le", "e2e4", "2@b3", "0", "left right", "\x00")


# Games by name, and the counting of how they ended.


@pytest.mark.parametrize("name", GAME_NAMES)
def test_a_known_name_gives_that_game(name):
    assert get_game(name).spec.name == name
    assert get_game(name) is get_game(name)


def test_termination_counts_by_name():
    codes = np.array([1, 0, 1, 5], dtype=np.uint8)
    counts = termination_counts(get_game("chess").spec, codes)
    assert counts == {"ongoing": 1, "checkmate": 2, "insufficient_material": 1}


# The benchmark of the rules compares with python-chess doing the same work.


def test_both_sides_compute_the_same():
    game = get_game("chess")
    for board in oracle.random_boards(random.Random(8), 100):
        board.clear_stack()  # a state row from a board knows no repetitions
        planes = game.planes(from_board(board)[None])[0]
        np.testing.assert_array_equal(env._planes(board), planes[: game.spec.num_planes])
        for action, move in oracle.legal_actions(board).items():
            key = board.turn, move.from_square, move.to_square, move.promotion
            assert env._ACTION_OF[key] == action


# Uniform random play, and positions some plies into random or one-sided play.


GAME = get_game("chess")


@pytest.fixture(params=[random_starts, mismatched_starts], ids=["random", "mismatched"])
def starts_of(request):
    return request.param


def keys(count, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


def plies(count, ply):
    return np.full(count, ply, dtype=np.int32)


def test_starts_are_so_many_plies_in(starts_of):
    wanted = np.arange(30, dtype=np.int32)
    starts = starts_of(GAME, keys(30), wanted)
    for state, num_plies in zip(starts, wanted, strict=True):
        assert 2 * (_fullmove(state) - 1) + GAME.side_to_move(state[None])[0] == num_plies


def _fullmove(state):
    return int(GAME.format_state(state).split()[5])


def test_nothing_is_chosen_for_rows_that_have_started(monkeypatch):
    asked = []

    def watched(game, batch, depth):
        asked.append(len(batch))
        return best_actions(game, batch, depth)

    monkeypatch.setattr(starts_module, "best_actions", watched)
    mismatched_starts(GAME, keys(4), np.array([0, 1, 10, 10], dtype=np.int32))
    # Each row is greedy at every other of its plies, from the first or from the second on.
    assert 10 <= sum(asked) <= 11


def test_start_of_a_row_does_not_depend_on_the_others(starts_of):
    wanted = np.tile(np.array([0, 3, 8, 40], dtype=np.int32), 25)
    together = starts_of(GAME, keys(100), wanted)
    order = np.random.default_rng(2).permutation(100)[:30]
    np.testing.assert_array_equal(
        starts_of(GAME, keys(100)[order], wanted[order]), together[order]
    )
    assert len(np.unique(together[wanted == 8], axis=0)) == 25


@pytest.mark.parametrize(
    ("starts_of", "ply"), [(random_starts, 250), (mismatched_starts, 100)], indirect=["starts_of"]
)
def test_no_start_has_ended(starts_of, ply):
    """So far on a good part of the games is over, and many rows are played again."""
    starts = starts_of(GAME, keys(200), plies(200, ply))
    batch = GAME.allocate(200)
    GAME.reset(batch, np.arange(200), starts)
    assert (batch.termination == ONGOING).all()


def test_keys_are_left_as_they_were(starts_of):
    given = keys(20)
    starts_of(GAME, given, plies(20, 100))
    np.testing.assert_array_equal(given, keys(20))


def test_no_rows_at_all(starts_of):
    assert starts_of(GAME, keys(0), plies(0, 5)).shape == (0, GAME.spec.state_words)


@pytest.mark.slow
def test_too_many_plies_is_an_error(starts_of):
    with pytest.raises(ConfigError, match="5000"):
        starts_of(GAME, keys(1), plies(1, 5000))


@pytest.mark.parametrize("side", [0, 1])
def test_the_side_that_a_key_names_takes_everything(side):
    count = 60
    side_bit = np.uint64(side) << np.uint64(63)
    named = keys(count) >> np.uint64(1) | side_bit
    leads = GAME.heuristic_stm(mismatched_starts(GAME, named, plies(count, 30 + side)))
    assert np.median(leads) > 9


# Uniform random play.


def test_every_legal_action_is_equally_likely():
    num_games = 20_000
    batch = GAME.allocate(1).take(np.zeros(num_games, dtype=np.int64))
    actions = random_legal_actions(batch, keys(num_games), plies(num_games, 0))
    legal = batch.legal_actions[0, :20]
    counts = np.array([np.count_nonzero(actions == action) for action in legal])
    assert counts.sum() == num_games
    expected = num_games / 20
    chi_squared = ((counts - expected) ** 2 / expected).sum()
    assert chi_squared < 43.8  # 99.9 % quantile at 19 degrees of freedom


def test_draw_depends_on_key_and_ply_alone():
    batch = GAME.allocate(50)
    first = random_legal_actions(batch, keys(50), plies(50, 4))
    order = np.random.default_rng(1).permutation(50)
    again = random_legal_actions(batch.take(order), keys(50)[order], plies(50, 4))
    np.testing.assert_array_equal(again, first[order])
    assert (random_legal_actions(batch, keys(50), plies(50, 5)) != first).any()


def test_ended_games_get_no_action():
    batch = GAME.allocate(2)
    mated = GAME.parse_state("rnb1kbnr/pppp1ppp/8/4p3/5PPq/8/PPPPP2P/RNBQKBNR w KQkq - 1 3")
    GAME.reset(batch, np.array([1]), mated[None])
    actions = random_legal_actions(batch, keys(2), plies(2, 0))
    assert actions[0] >= 0
    assert actions[1] == NO_ACTION
