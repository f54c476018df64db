"""Packed games come back move by move, and damage is found."""

import dataclasses

import numpy as np
import pytest
import zstandard

from chess_snn.errors import ConfigError, CorruptDataError
from chess_snn.evaluation import (
    GreedyPlayer,
    MatchResult,
    ProgramFacts,
    RandomPlayer,
    book_openings,
    opening_keys,
    play_match,
)
from chess_snn.evaluation.ladder import LadderGames, pack_games, unpack_games
from chess_snn.evaluation.openings import opening_states
from chess_snn.evaluation.played_moves import rank_moves, unrank_moves


@pytest.fixture(scope="module")
def games(chess_game):
    """Games that end by the rules, that are cut, and one that is void."""
    players = RandomPlayer(), GreedyPlayer(chess_game)
    matches = [
        play_match(chess_game, *players, book_openings(chess_game, 6, seed), seed=seed,
                   max_plies=max_plies)
        for seed, max_plies in ((1, 120), (2, 9))
    ]
    matches[1].scores_a[3] = np.nan
    matches[1] = dataclasses.replace(
        matches[1], programs={"greedy": ProgramFacts("Engine 1", 2, "died", None)}
    )
    return LadderGames(tuple(matches), "2026-01-31", 5)


def test_every_game_comes_back(games):
    packed = pack_games(games)
    again = unpack_games(packed)
    assert (again.date, again.seed) == ("2026-01-31", 5)
    for found, expected in zip(again.matches, games.matches, strict=True):
        for field in dataclasses.fields(MatchResult):
            one, other = getattr(found, field.name), getattr(expected, field.name)
            if isinstance(other, np.ndarray):
                np.testing.assert_array_equal(one, other)
                assert one.dtype == other.dtype
            else:
                assert one == other
    num_moves = sum(len(match.actions) for match in games.matches)
    assert len(packed) < num_moves + 1000


def test_a_rank_is_the_place_among_the_legal_actions(chess_game):
    starts = chess_game.parse_state(
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
    )[None]
    plies, actions = np.array([1], np.int32), chess_game.legal_actions(starts)[0][0]
    legal = np.sort(actions[:20])
    for rank, action in enumerate(legal):
        found = rank_moves(chess_game, starts, plies, np.array([action], np.int16))
        assert found.tolist() == [rank]
    for rank in (20, 255):
        with pytest.raises(CorruptDataError):
            unrank_moves(chess_game, starts, plies, np.array([rank], np.uint8))


def test_positions_by_their_keys(chess_game):
    states = book_openings(chess_game, 5, seed=3)
    keys = opening_keys(chess_game, states)
    np.testing.assert_array_equal(opening_states(chess_game, keys), states)
    fen = "8/8/8/8/8/4k3/4p3/4K3 w - - 0 1"
    assert chess_game.format_state(opening_states(chess_game, [fen])[0]) == fen
    with pytest.raises(ConfigError, match="book:9999"):
        opening_states(chess_game, ["book:9999"])


def test_damage_is_found(games):
    packed = pack_games(games)
    body = zstandard.ZstdDecompressor().decompress(packed)
    compress = zstandard.ZstdCompressor().compress
    for damaged in (
        packed[:-5], compress(body[:-1]), compress(body.replace(b'"schema": 1', b'"schema": 8')),
        compress(body.replace(b"book:", b"bok:")), compress(b"{}\n"), compress(b"[1]\n"),
        compress(body[:-3] + b"\xff\xff\xff"),
    ):
        with pytest.raises(CorruptDataError):
            unpack_games(damaged)
