"""Players choose legal moves, and matches are those of the arrays below."""

import io

import chess
import chess.pgn
import pytest

import chess_snn
from chess_snn.evaluation.matches import play_match as play_arrays
from chess_snn.evaluation.named_players import make_player
from chess_snn.evaluation.openings import book_openings
from chess_snn.games import get_game

MATE = "6k1/5ppp/8/8/8/8/8/K3R3 w - - 0 1"
ROWS = "2 2 . ./. . . ./. . . ./. . . 4"
QUICK = {"games": 4, "max_plies": 12}


@pytest.mark.parametrize("name", ["greedy", "minimax:2", "chess-small:16", "chess-small:16~10"])
def test_players_find_mate_in_one(name):
    with chess_snn.player(name, threads=1) as player:
        assert player.game == "chess"
        moves = {player.move(MATE, seed=seed) for seed in range(3)}
        assert chess.Move.from_uci("e1e8") in moves
        assert moves <= set(chess.Board(MATE).legal_moves)
        assert name.partition("~")[0] in repr(player)


def test_players_of_2048_name_their_moves():
    assert chess_snn.player("expectimax:2", game="2048").move(ROWS) in {"left", "right", "up",
                                                                       "down"}


def test_a_match_is_that_of_the_arrays():
    match = chess_snn.play_match("greedy", "random", games=6, seed=5, max_plies=30)
    game = get_game("chess")
    arrays = play_arrays(
        game, make_player(game, "greedy"), make_player(game, "random"), book_openings(game, 3, 5),
        seed=5, max_plies=30,
    )
    assert match.result.to_json() == arrays.to_json()
    assert match.score == arrays.score
    assert match.interval == arrays.interval()
    assert str(match).startswith(f"{match.score:.3f} (")
    assert match.settings == {"seed": 5, "max_plies": 30, "opening_source": "book"}


def test_networks_play_and_their_games_are_pgn():
    seen = []
    with chess_snn.load("chess-small", threads=1) as net:
        match = chess_snn.play_match(
            net.player(2), "random", **QUICK, on_progress=lambda *done: seen.append(done)
        )
    assert seen[-1] == (4, 4)
    stream = io.StringIO("".join(match.pgn()))
    games = list(iter(lambda: chess.pgn.read_game(stream), None))
    assert len(games) == 4
    assert {game.headers["White"] for game in games} == {"shipped/chess-small:2", "random"}
    assert games[0].headers["WhiteSimulations"] == "2"


def test_openings_may_be_boards():
    board = chess.Board()
    board.push_san("e4")
    match = chess_snn.play_match("greedy", "random", openings=[board, MATE], max_plies=4)
    assert match.result.num_games == 4
    assert match.result.opening_positions == (board.fen(), MATE)
    assert match.settings["opening_source"] == "given"


def test_a_name_beside_a_network_of_2048_plays_2048():
    with chess_snn.load("2048", threads=1) as net:
        match = chess_snn.play_match(net.player(0), "expectimax:1", games=2, max_plies=20)
    assert match.result.is_solo
    with pytest.raises(chess_snn.errors.UsageError, match="PGN is for chess"):
        list(match.pgn())
