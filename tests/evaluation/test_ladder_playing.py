"""A round-robin that is stopped goes on to the same games; other plans are kept apart."""

import dataclasses
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import zstandard
from made_games import made_match
from signed_files import edit
from simulated_ladder import play_pairs

from chess_snn.errors import ConfigError, CorruptDataError, UsageError
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.ladder import playing
from chess_snn.evaluation.ladder.games_file import LadderGames, pack_games, unpack_games
from chess_snn.evaluation.ladder.ladder import PairResults
from chess_snn.evaluation.ladder.playing import (
    LADDER_PLAYERS,
    LadderPlan,
    ladder_pairings,
    play_ladder,
    programs_of,
    read_matches,
    uses_engine,
)
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.matches import play_match
from chess_snn.evaluation.openings import book_openings, opening_keys, opening_states
from chess_snn.evaluation.played_moves import rank_moves, unrank_moves
from chess_snn.evaluation.players import GreedyPlayer, ProgramFacts, RandomPlayer
from chess_snn.evaluation.ratings.crosstable import Crosstable, match_games
from chess_snn.evaluation.scores import pair_counts

ENGINES = EngineSettings(processes=1)
PAIRINGS = tuple(ladder_pairings(["random", "greedy~50", "greedy"]))
PLAN = LadderPlan(PAIRINGS, num_pairs=5, seed=3, max_plies=12)


@pytest.fixture(autouse=True)
def short_parts(monkeypatch):
    monkeypatch.setattr(playing, "PART_PAIRS", 2)


def contents(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_neighbours_meet_and_some_that_are_far_apart():
    names = [f"p{number}" for number in range(8)]
    pairings = ladder_pairings(names)
    distances = [int(b[1:]) - int(a[1:]) for a, b in pairings]
    assert (distances.count(1), distances.count(2), distances.count(4)) == (7, 6, 2)
    assert len(set(pairings)) == len(pairings) == 15
    assert ladder_pairings(["random", "greedy"]) == [("random", "greedy")]


def test_players_that_need_an_engine():
    ours = [name for name in LADDER_PLAYERS if not uses_engine(name)]
    assert {"random", "greedy", "minimax:2", "greedy~50"} <= set(ours)
    assert all(name.startswith("stockfish") for name in set(LADDER_PLAYERS) - set(ours))


def test_all_of_the_plan_is_played_from_different_openings(tmp_path):
    told = []
    assert play_ladder(tmp_path, PLAN, ENGINES, on_progress=lambda *now: told.append(now))
    matches = read_matches(tmp_path, PLAN)
    assert list(matches) == list(PAIRINGS)
    for (player_a, player_b), match in matches.items():
        assert (match.player_a, match.player_b, match.num_games) == (player_a, player_b, 10)
        assert len(set(match.opening_keys)) == 5
        assert match.plies.max() <= 12
    assert told[-1] == (30, 30)
    assert told == sorted(told)


class StoppedError(Exception):
    pass


def test_stopped_and_started_again_it_plays_the_same_games(tmp_path):
    play_ladder(tmp_path / "whole", PLAN, ENGINES)

    def stop(done, _total):
        if done >= 9:
            raise StoppedError

    with pytest.raises(StoppedError):
        play_ladder(tmp_path / "stopped", PLAN, ENGINES, on_progress=stop)
    before = contents(tmp_path / "stopped")
    assert 0 < len(before) < 9
    play_ladder(tmp_path / "stopped", PLAN, ENGINES)
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


def test_more_pairs_add_to_those_that_are_there(tmp_path):
    play_ladder(tmp_path, replace(PLAN, num_pairs=3), ENGINES)
    before = contents(tmp_path)
    play_ladder(tmp_path, PLAN, ENGINES)
    after = contents(tmp_path)
    whole = [name for name in before if name.endswith("--0000.json")]
    assert len(whole) == 3
    assert all(after[name] == before[name] for name in whole)
    assert {match.num_games for match in read_matches(tmp_path, PLAN).values()} == {10}


def test_when_the_time_is_up_every_pairing_has_about_as_many_games(tmp_path, monkeypatch):
    minutes = iter(range(100))
    monkeypatch.setattr(playing, "time", SimpleNamespace(monotonic=lambda: 60.0 * next(minutes)))
    assert not play_ladder(tmp_path, PLAN, ENGINES, minutes=5)
    sizes = [match.num_games for match in read_matches(tmp_path, PLAN).values()]
    assert sizes == [8, 4, 4]
    assert play_ladder(tmp_path, PLAN, ENGINES)


def test_games_of_another_plan_are_not_mixed_in(tmp_path):
    play_ladder(tmp_path, PLAN, ENGINES)
    with pytest.raises(UsageError, match=r"seed 3.* 4"):
        play_ladder(tmp_path, replace(PLAN, seed=4), ENGINES)
    with pytest.raises(UsageError, match="max_plies 12"):
        read_matches(tmp_path, replace(PLAN, max_plies=14))


def test_a_damaged_part_is_named(tmp_path):
    play_ladder(tmp_path, PLAN, ENGINES)
    path = tmp_path / "random--greedy--0001.json"
    edit(path, per_game={})
    with pytest.raises(CorruptDataError, match=r"random--greedy--0001\.json"):
        play_ladder(tmp_path, PLAN, ENGINES)


def test_two_versions_of_an_engine_are_two_players(tmp_path):
    play_ladder(tmp_path, PLAN, ENGINES)
    matches = read_matches(tmp_path, PLAN)

    def program(version):
        return {"greedy": ProgramFacts(f"Engine {version}", 0, None, None)}

    assert programs_of(matches.values()) == {}
    one, two = PAIRINGS[1], PAIRINGS[2]
    matches[one] = replace(matches[one], programs=program(1))
    matches[two] = replace(matches[two], programs=program(1))
    assert programs_of(matches.values()) == {"greedy": "Engine 1"}
    matches[two] = replace(matches[two], programs=program(2))
    with pytest.raises(UsageError, match=r"greedy .*Engine 1 .*Engine 2"):
        programs_of(matches.values())


def test_parts_of_one_match_hide_an_engines_other_version_bug(tmp_path):
    play_ladder(tmp_path, PLAN, ENGINES)
    for number, path in enumerate(sorted(tmp_path.glob("random--greedy--*.json"))):
        facts = {"identity": f"Engine {number}", "failures": 0, "last_failure": None,
                 "last_illegal": None}
        edit(path, programs={"greedy": facts})
    with pytest.raises(UsageError, match=r"greedy .*Engine 0 .*Engine 1"):
        read_matches(tmp_path, PLAN)


@pytest.mark.parametrize(("change", "message"), [
    ({"num_pairs": 0}, "--pairs"), ({"num_pairs": 1001}, "1001"),
    ({"seed": -1}, "--seed"), ({"max_plies": 0}, "--max-plies"),
])
def test_plans_that_cannot_be(change, message):
    with pytest.raises(ConfigError, match=message):
        replace(PLAN, **change)


# What a pairing keeps of its games is all that ratings need.


def match_of(scores_white, scores_black):
    """A match of a against b; its scores by opening, with white and with black."""
    return made_match(np.stack([scores_white, scores_black], axis=1), plies=3)


@pytest.fixture
def random_match():
    stream = np.random.default_rng(5)
    return match_of(*stream.choice([0.0, 0.5, 1.0], size=(2, 200), p=[0.2, 0.3, 0.5]))


def test_by_outcome_with_each_colour():
    counts = PairResults.of_match(match_of([1.0, 1.0, 0.0, 0.5], [1.0, 0.0, 0.0, 0.0])).counts
    assert counts.tolist() == [[1, 0, 1], [0, 0, 1], [0, 0, 1]]


def test_pairs_are_those_of_the_match(random_match):
    results = PairResults.of_match(random_match)
    assert results.pentanomial.tolist() == pair_counts(random_match).tolist()
    assert results.score == pytest.approx(random_match.score)
    assert (results.num_pairs, results.plies) == (200, 1200)


def test_the_same_crosstable_as_from_the_games_themselves(random_match):
    expected = Crosstable.from_games(match_games(random_match))
    found = Crosstable.from_games(PairResults.of_match(random_match).games())
    assert found.players == expected.players
    for name in ("pairings", "pairing_of", "results", "num_openings"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_an_opening_with_a_void_game_is_left_out():
    results = PairResults.of_match(match_of([1.0, np.nan, 0.0], [0.5, 1.0, 0.0]))
    assert results.num_pairs == 2
    assert results.pentanomial.tolist() == [1, 0, 0, 1, 0]


def test_json_and_back():
    results = PairResults("a", "b", play_pairs(100, 0, 50, np.random.default_rng(0)), 4, 900)
    body = json.loads(json.dumps(results.to_json()))
    again = PairResults.from_json(body)
    assert again.counts.tolist() == results.counts.tolist()
    assert (again.player_a, again.truncated, again.plies) == ("a", 4, 900)
    assert sum(body["wdl_a_white"]) == sum(body["wdl_a_black"]) == 50


@pytest.mark.parametrize("pairs", [[[1, 0], [0, 1]], [[-1, 0, 0], [0, 0, 0], [0, 0, 0]], "x"])
def test_damage_is_found(pairs):
    body = {"player_a": "a", "player_b": "b", "pairs": pairs, "truncated": 0, "plies": 0}
    with pytest.raises(ValueError, match=r"pairs|invalid"):
        PairResults.from_json(body)


# Packed games come back move by move, and damage is found.


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


def test_damaged_games_are_found(games):
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
