import chess
import numpy as np
import pytest

from chess_snn.errors import ConfigError
from chess_snn.evaluation import (
    FORFEIT,
    VOID,
    DilutedPlayer,
    GreedyPlayer,
    RandomPlayer,
    check_player,
    make_player,
    play_match,
    random_openings,
)
from chess_snn.evaluation.named_players import split_dilution

NUM_ROWS = 20_000
CHECKMATED = "7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"


class ConstantPlayer:
    """Answers one action always, legal or not, and counts what it is asked."""

    def __init__(self, action=-100):
        self.name, self.action, self.asked = "constant", action, 0

    def choose(self, batch, keys, plies):
        assert batch.num_legal.all(), "ended rows must not reach the player within"
        self.asked += len(batch)
        return np.full(len(batch), self.action, np.int16)


def streams(num_games, seed=3):
    return np.random.default_rng(seed).integers(0, 2**64, num_games, dtype=np.uint64)


@pytest.fixture
def starts(batch_of):
    return batch_of([chess.STARTING_FEN]).take(np.zeros(NUM_ROWS, np.int64))


@pytest.mark.parametrize("percent", [1, 25, 90, 99.5])
@pytest.mark.parametrize("across", ["games", "plies"])
def test_the_share_of_random_moves_is_what_was_asked_for(starts, percent, across):
    inner = ConstantPlayer()
    keys, plies = streams(NUM_ROWS), np.zeros(NUM_ROWS, np.int32)
    if across == "plies":
        keys, plies = np.repeat(keys[:1], NUM_ROWS), np.arange(NUM_ROWS, dtype=np.int32)
    actions = DilutedPlayer(inner, percent).choose(starts, keys, plies)
    is_random = actions != inner.action
    assert inner.asked == np.count_nonzero(~is_random)
    share = percent / 100
    deviation = np.sqrt(share * (1 - share) / NUM_ROWS)
    assert abs(is_random.mean() - share) < 4 * deviation


def test_random_moves_are_uniform_over_the_legal_ones(starts):
    keys, plies = streams(NUM_ROWS), np.zeros(NUM_ROWS, np.int32)
    for inner in (ConstantPlayer(), RandomPlayer()):
        actions = DilutedPlayer(inner, 50).choose(starts, keys, plies)
        _, counts = np.unique(actions[actions >= 0], return_counts=True)
        assert len(counts) == 20
        expected = counts.sum() / 20
        assert np.sum((counts - expected) ** 2 / expected) < 43.8  # 99.9 %, 19 degrees of freedom


def test_which_plies_are_random_does_not_depend_on_the_player_within(starts):
    keys, plies = streams(NUM_ROWS), np.zeros(NUM_ROWS, np.int32)
    one, two = (
        DilutedPlayer(ConstantPlayer(action), 30).choose(starts, keys, plies)
        for action in (-100, -200)
    )
    np.testing.assert_array_equal(one == -100, two == -200)
    np.testing.assert_array_equal(one[one >= 0], two[two >= 0])


@pytest.mark.parametrize("text", ["random~50", "greedy~50", "minimax:2~50"])
def test_a_position_gets_the_same_answer_alone_as_among_others(chess_game, batch_of, random_fens,
                                                               text):
    fens = random_fens(12, seed=5)
    positions = batch_of([*fens[:3], CHECKMATED, *fens[3:]])
    keys, plies = streams(len(positions)), np.arange(len(positions), dtype=np.int32)
    player = make_player(chess_game, text)
    together = player.choose(positions, keys, plies)
    for row, action in enumerate(together):
        alone = player.choose(positions.take(np.array([row])), keys[[row]], plies[[row]])
        assert alone[0] == action
        legal = positions.legal_actions[row, : positions.num_legal[row]]
        assert action in legal if len(legal) else action == -1


@pytest.mark.parametrize("fault", [FORFEIT, VOID])
def test_a_fault_of_the_player_within_passes_through(starts, fault):
    actions = DilutedPlayer(ConstantPlayer(fault), 50).choose(
        starts, streams(NUM_ROWS), np.zeros(NUM_ROWS, np.int32)
    )
    assert set(actions[actions < 0]) == {fault}


def test_a_match_is_reproducible(chess_game):
    openings = random_openings(chess_game, 6, 4, seed=0)
    a, b = make_player(chess_game, "greedy~40"), make_player(chess_game, "greedy~80")
    one = play_match(chess_game, a, b, openings, seed=8, max_plies=120)
    again = play_match(chess_game, a, b, openings, seed=8, max_plies=120)
    few = play_match(chess_game, b, a, openings[:2], seed=8, max_plies=120)
    other = play_match(chess_game, a, b, openings, seed=9, max_plies=120)
    np.testing.assert_array_equal(one.plies, again.plies)
    np.testing.assert_array_equal(one.scores_a, again.scores_a)
    # Swapped, an opening's first game is what was its second.
    np.testing.assert_array_equal(few.plies, one.plies[[1, 0, 3, 2]])
    np.testing.assert_array_equal(few.scores_a, 1 - one.scores_a[[1, 0, 3, 2]])
    assert (other.plies != one.plies).any()


def test_dilution_makes_weaker(chess_game):
    openings = random_openings(chess_game, 30, 4, seed=0)
    result = play_match(
        chess_game, GreedyPlayer(chess_game), make_player(chess_game, "greedy~75"), openings, seed=1
    )
    assert result.interval()[0] > 0.5


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("greedy~25", ("greedy", 25.0)),
        ("stockfish:depth=1~2.5", ("stockfish:depth=1", 2.5)),
        ("uci:/opt/a~b/engine@10~90", ("uci:/opt/a~b/engine@10", 90.0)),
        ("uci:/opt/engine~b@10", ("uci:/opt/engine~b@10", None)),
        ("greedy", ("greedy", None)),
        ("greedy~", ("greedy~", None)),
        ("greedy~1e1", ("greedy~1e1", None)),
        ("greedy~-5", ("greedy~-5", None)),
    ],
)
def test_dilution_as_text(text, split):
    assert split_dilution(text) == split


def test_the_name_says_how_much(chess_game):
    assert make_player(chess_game, "minimax:2~25").name == "minimax:2~25"
    assert make_player(chess_game, "greedy~02.50").name == "greedy~2.5"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("greedy~0", r"percent of random moves for 'greedy' must be > 0 and < 100, got 0"),
        ("greedy~100", "must be > 0 and < 100"),
        ("greedy~1000", "must be > 0 and < 100"),
        ("greedy~10~10", "player 'greedy~10' is diluted already"),
        pytest.param("greedy" + "~10" * 1_000, "is diluted already", id="a thousand times"),
        ("greedy~", "unknown player 'greedy~'; known: .*PLAYER~P"),
        ("greedy~x", "unknown player 'greedy~x'"),
        ("~50", "unknown player ''"),
        ("nobody~50", "unknown player 'nobody'"),
    ],
)
@pytest.mark.parametrize("refuse", [make_player, check_player])
def test_bad_dilution_is_refused(chess_game, refuse, text, reason):
    with pytest.raises(ConfigError, match=reason):
        refuse(chess_game, text)
