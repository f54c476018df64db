from collections import defaultdict

import chess
import numpy as np
import pytest
from solved_games import SubtractionGame

from chess_snn.errors import ConfigError, IllegalMoveError
from chess_snn.evaluation.matches import play_match
from chess_snn.evaluation.openings import random_openings
from chess_snn.evaluation.players import GreedyPlayer, MinimaxPlayer, RandomPlayer
from chess_snn.evaluation.scores import pair_counts, pair_interval

DRAWS_BY_RULE = {
    "stalemate": chess.Board.is_stalemate,
    "fifty_moves": chess.Board.is_fifty_moves,
    "threefold_repetition": chess.Board.is_repetition,
    "insufficient_material": chess.Board.is_insufficient_material,
}


class RecordingPlayer:
    """Plays as another does and notes, for each random stream, {ply: (FEN, UCI)}."""

    def __init__(self, game, player):
        self.name, self.moves = player.name, defaultdict(dict)
        self._game, self._player = game, player

    def choose(self, batch, keys, plies):
        actions = self._player.choose(batch, keys, plies)
        for key, ply, state, action in zip(keys, plies, batch.state, actions, strict=True):
            fen, uci = self._game.format_state(state), self._game.format_action(state, action)
            self.moves[int(key)][int(ply)] = (fen, uci)
        return actions


def merged_game(moves_a, moves_b):
    """The two players' plies as one python-chess game, or None if they are of two games."""
    plies = moves_a | moves_b
    if len(plies) < len(moves_a) + len(moves_b) or set(plies) != set(range(len(plies))):
        return None
    board = chess.Board(plies[0][0])
    for ply in range(len(plies)):
        fen, uci = plies[ply]
        if board.fen() != fen:
            return None
        board.push_uci(uci)
    return board


def test_every_game_replays_in_python_chess(chess_game):
    openings = random_openings(chess_game, 12, 5, seed=2)
    a = RecordingPlayer(chess_game, GreedyPlayer(chess_game))
    b = RecordingPlayer(chess_game, RandomPlayer())
    result = play_match(chess_game, a, b, openings, seed=4, max_plies=250)
    rows = {
        (chess_game.format_state(openings[result.opening_index[i]]), bool(result.a_is_white[i])): i
        for i in range(result.num_games)
    }
    assert len(rows) == len(a.moves) == len(b.moves) == result.num_games == 24
    for moves_a in a.moves.values():
        boards = [merged_game(moves_a, moves_b) for moves_b in b.moves.values()]
        [board] = [board for board in boards if board is not None]
        a_is_white = chess.Board(next(iter(moves_a.values()))[0]).turn
        i = rows.pop((board.root().fen(), a_is_white))
        assert result.plies[i] == len(board.move_stack)
        termination = result.spec.terminations[result.terminations[i]]
        if board.is_checkmate():
            assert termination == "checkmate"
            assert result.scores_a[i] == (board.turn != a_is_white)
        else:
            assert result.scores_a[i] == 0.5
            if termination == "ongoing":
                assert len(board.move_stack) == 250
                assert not board.is_game_over(claim_draw=False)
            else:
                assert DRAWS_BY_RULE[termination](board)
    assert not rows


def test_counts_add_up(chess_game):
    openings = random_openings(chess_game, 20, 4, seed=3)
    result = play_match(
        chess_game, RandomPlayer(), RandomPlayer("other"), openings, seed=1, max_plies=150
    )
    assert result.num_games == 40
    assert result.wins + result.draws + result.losses + result.truncated == 40
    assert result.truncated == np.sum(result.plies == 150) > 0
    assert result.score == (result.wins + (result.draws + result.truncated) / 2) / 40
    assert sum(result.terminations_by_name.values()) == 40
    assert result.terminations_by_name["ply_cap"] == result.truncated
    assert result.wins + result.losses == result.terminations_by_name.get("checkmate", 0)
    np.testing.assert_array_equal(result.opening_index, np.repeat(np.arange(20), 2))
    np.testing.assert_array_equal(result.a_is_white, [True, False] * 20)


def test_swapped_players_and_fewer_openings_play_the_same_games(chess_game):
    openings = random_openings(chess_game, 10, 4, seed=3)
    players = GreedyPlayer(chess_game), RandomPlayer()
    one = play_match(chess_game, *players, openings, seed=8, max_plies=120)
    two = play_match(chess_game, *reversed(players), openings, seed=8, max_plies=120)
    swapped = np.arange(20) ^ 1  # the other game of the pair has the colours the other way
    np.testing.assert_array_equal(two.scores_a[swapped], 1 - one.scores_a)
    np.testing.assert_array_equal(two.plies[swapped], one.plies)
    np.testing.assert_array_equal(two.terminations[swapped], one.terminations)
    assert (two.wins, two.losses, two.draws) == (one.losses, one.wins, one.draws)
    assert two.interval() == pytest.approx(tuple(1 - end for end in reversed(one.interval())))
    low, high = one.interval(0.9)
    assert (low, high) == pair_interval(pair_counts(one), 0.9)
    assert low < one.score < high
    few = play_match(chess_game, *players, openings[:3], seed=8, max_plies=120)
    np.testing.assert_array_equal(few.plies, one.plies[:6])
    np.testing.assert_array_equal(few.scores_a, one.scores_a[:6])


def test_seed_decides_the_games(chess_game):
    openings = random_openings(chess_game, 8, 4, seed=3)
    players = RandomPlayer(), RandomPlayer("other")
    first, again, other = (
        play_match(chess_game, *players, openings, seed=seed, max_plies=300).plies
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_a_win_on_the_last_ply_before_the_cap_counts(chess_game, batch_of):
    mate_in_one = batch_of(["6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1"]).state
    result = play_match(
        chess_game, GreedyPlayer(chess_game), MinimaxPlayer(chess_game, 1, "other"),
        mate_in_one, seed=0, max_plies=1,
    )
    np.testing.assert_array_equal(result.scores_a, [1, 0])  # whoever is white mates
    assert result.terminations_by_name == {"checkmate": 2}


def test_perfect_players_of_a_solved_game():
    game = SubtractionGame()
    heaps = np.array([[3], [4], [6], [7]], np.uint64)  # white wins all but the heap of 4
    result = play_match(
        game, MinimaxPlayer(game, 6, "a"), MinimaxPlayer(game, 6, "b"), heaps, seed=0
    )
    white_wins = np.repeat([True, False, True, True], 2)
    np.testing.assert_array_equal(result.scores_a, white_wins == result.a_is_white)
    assert result.terminations_by_name == {"took_last": 8}


def test_progress_counts_up_to_all_games(chess_game):
    calls = []
    openings = random_openings(chess_game, 5, 4, seed=0)
    result = play_match(
        chess_game, RandomPlayer(), RandomPlayer("other"), openings, seed=0, max_plies=2000,
        on_progress=lambda *call: calls.append(call),
    )
    assert max(result.plies) <= len(calls) <= max(result.plies) + 1
    assert calls == sorted(calls)
    assert calls[-1] == (10, 10)


def test_players_take_turns_with_all_games_in_one_batch(chess_game):
    class Counting(RandomPlayer):
        def __init__(self, name):
            super().__init__(name)
            self.batches = []

        def choose(self, batch, keys, plies):
            self.batches.append(len(batch))
            return super().choose(batch, keys, plies)

    a, b = Counting("a"), Counting("b")
    openings = random_openings(chess_game, 5, 2, seed=0)
    play_match(chess_game, a, b, openings, seed=0, max_plies=6)
    # a begins where it is white; the games in which it is black reach their last ply one turn late.
    assert a.batches == [5, 10, 10, 5]
    assert b.batches == [10, 10, 10]


class StubbornPlayer:
    name = "stubborn"

    def choose(self, batch, keys, plies):
        return np.full(len(batch), -1, np.int16)


def test_illegal_choice_names_player_and_position(chess_game):
    openings = random_openings(chess_game, 1, 0, seed=0)
    with pytest.raises(IllegalMoveError, match="'stubborn'"):
        play_match(chess_game, StubbornPlayer(), RandomPlayer(), openings, seed=0)


def test_ended_opening_is_refused():
    game = SubtractionGame()
    with pytest.raises(ConfigError, match="'0 w'"):
        play_match(
            game, RandomPlayer(), GreedyPlayer(game), np.array([[3], [0]], np.uint64), seed=0
        )


@pytest.mark.parametrize(("num_openings", "max_plies"), [(0, 10), (1, 0)])
def test_nothing_to_play(chess_game, num_openings, max_plies):
    openings = random_openings(chess_game, 1, 0, seed=0)[:num_openings]
    with pytest.raises(ConfigError, match=r"evaluation\.\w+"):
        play_match(
            chess_game, RandomPlayer(), RandomPlayer("other"), openings,
            seed=0, max_plies=max_plies,
        )
