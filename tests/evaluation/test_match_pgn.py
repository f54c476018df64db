"""Matches to PGN, with python-chess as the reader."""

import io
import json
from dataclasses import replace

import chess
import chess.pgn
import numpy as np
import pytest
from solved_games import SubtractionGame

from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.evaluation.match_files import match_pgn
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.matches import play_match
from chess_snn.evaluation.openings import book_openings, random_openings
from chess_snn.evaluation.players import GreedyPlayer, MinimaxPlayer, RandomPlayer
from chess_snn.games.chess import action_of_move
from chess_snn.pgn.reading import read_games

UNKNOWN = {}, {}


def to_pgn(game, result, facts=UNKNOWN, **more):
    texts = match_pgn(
        game, result, event="a match", date="2026-03-04T05:06:07+00:00", facts=facts,
        more=more,
    )
    return "".join(text for _, text in texts)


def read_all(text):
    stream = io.StringIO(text)
    return list(iter(lambda: chess.pgn.read_game(stream), None))


@pytest.fixture(scope="module")
def openings(chess_game):
    return np.concatenate([book_openings(chess_game, 8, seed=5),
                           random_openings(chess_game, 4, 9, seed=5),
                           random_openings(chess_game, 1, 0, seed=5)])


@pytest.fixture(scope="module")
def played(chess_game, openings):
    return play_match(
        chess_game, GreedyPlayer(chess_game), RandomPlayer(), openings, seed=2, max_plies=150
    )


def test_wanted_games_alone_are_written_as_among_all(chess_game, played):
    def write(numbers):
        return list(match_pgn(
            chess_game, played, event="e", date="2026-03-04", numbers=numbers
        ))

    everything = write(None)
    assert [number for number, _ in everything] == list(range(26))
    assert write([3, 17]) == [everything[3], everything[17]]
    assert write([]) == []


def test_python_chess_reads_the_games_that_were_played(chess_game, played):
    games = read_all(to_pgn(chess_game, played))
    assert len(games) == played.num_games == 26
    for number, game in enumerate(games):
        assert not game.errors
        opening = played.opening_index[number]
        board = game.board()
        assert board.fen() == played.opening_positions[opening]
        rows = slice(*played.game_offsets[number : number + 2])
        for action, move in zip(played.actions[rows], game.mainline_moves(), strict=True):
            assert action == action_of_move(move, board.turn)
            board.push(move)
        headers = game.headers
        assert headers["PlyCount"] == str(played.plies[number])
        names = ("greedy", "random") if played.a_is_white[number] else ("random", "greedy")
        assert (headers["White"], headers["Black"]) == names
        for_a = played.scores_a[number]
        score = for_a if played.a_is_white[number] else 1 - for_a
        assert headers["Result"] == {1: "1-0", 0.5: "1/2-1/2", 0: "0-1"}[score]
        is_cut = board.outcome(claim_draw=True) is None
        assert headers["EndedBy"] == ("ply_cap" if is_cut else
                                      played.spec.terminations[played.terminations[number]])
        assert headers["Termination"] == ("adjudication" if is_cut else "normal")
        if board.is_checkmate():
            assert headers["Result"] == ("0-1" if board.turn else "1-0")
            assert headers["EndedBy"] == "checkmate"
    ends = [game.headers["EndedBy"] for game in games]
    assert ends.count("ply_cap") == played.truncated > 0
    assert ends.count("checkmate") == played.wins + played.losses > 0
    assert "SetUp" not in games[-1].headers, "it began at the initial position"
    assert [game.headers["OpeningKey"][:5] for game in games[:18:2]] == ["book:"] * 8 + [
        played.opening_positions[8][:5]]
    assert [game.headers["Round"] for game in games[:3]] == ["1.1", "1.2", "2.1"]


def test_our_own_import_takes_every_game(chess_game, played):
    records, report = read_games(to_pgn(chess_game, played).encode())
    assert (report.games, report.refused, report.played_on) == (26, {}, 0)
    np.testing.assert_array_equal(records.actions, played.actions)
    np.testing.assert_array_equal(records.outcomes_white, played.outcomes_white)
    np.testing.assert_array_equal(records.terminations, played.terminations)


def test_what_is_known_of_a_player_stands_by_its_colour(chess_game, played):
    facts = (
        {"generation": 12, "simulations": 64, "config_digest": "0123456789ab"}, {"simulations": 0},
    )
    first, second, *_ = read_all(to_pgn(chess_game, played, facts, Match="m/n"))
    assert first.headers["WhiteGeneration"] == second.headers["BlackGeneration"] == "12"
    assert first.headers["WhiteSimulations"] == second.headers["BlackSimulations"] == "64"
    assert first.headers["BlackSimulations"] == "0"
    assert "BlackGeneration" not in first.headers
    assert second.headers["BlackConfigDigest"] == "0123456789ab"
    assert first.headers["WhiteType"] == first.headers["BlackType"] == "program"
    assert (first.headers["Event"], first.headers["Date"]) == ("a match", "2026.03.04")
    assert first.headers["Match"] == "m/n"


def test_json_and_back_gives_the_same_pgn(chess_game, played):
    body = json.loads(json.dumps(played.to_json()))
    again = MatchResult.from_json(chess_game.spec, body)
    assert to_pgn(chess_game, again) == to_pgn(chess_game, played)
    assert again.to_json() == played.to_json()
    assert sum(map(len, body["per_game"]["moves"])) < 3 * played.plies.sum()


def test_parts_join_to_the_whole(chess_game, openings, played):
    parts = [
        play_match(chess_game, GreedyPlayer(chess_game), RandomPlayer(), openings[rows], seed=2,
                   max_plies=150)
        for rows in (slice(0, 5), slice(5, 13))
    ]
    joined = MatchResult.joined(parts)
    assert joined.opening_keys == played.opening_keys
    np.testing.assert_array_equal(joined.opening_index, played.opening_index)
    assert to_pgn(chess_game, joined).count("[Event ") == 26
    np.testing.assert_array_equal(joined.actions[: parts[0].plies.sum()], parts[0].actions)


@pytest.mark.parametrize(("column", "value"), [
    ("moves", ["AAA"] * 26), ("moves", ["AAAA"] * 26), ("moves", [""] * 25), ("plies", [1] * 26),
    ("termination", ["boredom"] * 26), ("opening_index", [0] * 26), ("a_is_white", [True]),
])
def test_damaged_json_is_refused(chess_game, played, column, value):
    body = played.to_json()
    body["per_game"] = body["per_game"] | {column: value}
    with pytest.raises(CorruptDataError):
        MatchResult.from_json(chess_game.spec, body)


def test_moves_that_do_not_fit_are_named(chess_game, played):
    actions = played.actions.copy()
    actions[played.game_offsets[3] + 4] = 0
    with pytest.raises(CorruptDataError, match="game 3 "):
        to_pgn(chess_game, replace(played, actions=actions))
    terminations = played.terminations.copy()
    terminations[5] = 2
    with pytest.raises(CorruptDataError, match="game 5"):
        to_pgn(chess_game, replace(played, terminations=terminations))
    positions = ("no FEN", *played.opening_positions[1:])
    with pytest.raises(CorruptDataError, match="'no FEN'"):
        to_pgn(chess_game, replace(played, opening_positions=positions))


def test_another_game_keeps_its_moves_and_has_no_pgn():
    game = SubtractionGame()
    heaps = np.array([[3], [6]], np.uint64)
    result = play_match(
        game, MinimaxPlayer(game, 6, "a"), MinimaxPlayer(game, 6, "b"), heaps, seed=0
    )
    assert result.opening_keys == result.opening_positions == ("3 w", "6 w")
    again = MatchResult.from_json(game.spec, result.to_json())
    np.testing.assert_array_equal(again.actions, result.actions)
    for number, heap in enumerate((3, 3, 6, 6)):
        rows = slice(*again.game_offsets[number : number + 2])
        assert (again.actions[rows] + 1).sum() == heap, "the last move takes all that is left"
    with pytest.raises(UsageError, match="subtraction"):
        list(match_pgn(game, result, event="", date="2026-01-01"))
