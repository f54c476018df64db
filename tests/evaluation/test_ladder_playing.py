"""A round-robin that is stopped goes on to the same games; other plans are kept apart."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from signed_files import edit

from chess_snn.errors import ConfigError, CorruptDataError, UsageError
from chess_snn.evaluation import EngineSettings, ProgramFacts
from chess_snn.evaluation.ladder import (
    LADDER_PLAYERS,
    LadderPlan,
    ladder_pairings,
    play_ladder,
    playing,
    programs_of,
    read_matches,
    uses_engine,
)

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


@pytest.mark.parametrize(("players", "message"), [
    ([], "at least two players, got none"), (["random"], "at least two"),
    (["random", "greedy", "random"], "names a player twice"),
])
def test_no_ladder_of_these(players, message):
    with pytest.raises(ConfigError, match=message):
        ladder_pairings(players)


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
    with pytest.raises(UsageError, match="seed 3.* 4"):
        play_ladder(tmp_path, replace(PLAN, seed=4), ENGINES)
    with pytest.raises(UsageError, match="max_plies 12"):
        read_matches(tmp_path, replace(PLAN, max_plies=14))


def test_a_damaged_part_is_named(tmp_path):
    play_ladder(tmp_path, PLAN, ENGINES)
    path = tmp_path / "random--greedy--0001.json"
    edit(path, per_game={})
    with pytest.raises(CorruptDataError, match=r"random--greedy--0001\.json"):
        play_ladder(tmp_path, PLAN, ENGINES)


def test_an_unknown_player_is_told_before_any_game(tmp_path):
    plan = replace(PLAN, pairings=(*PAIRINGS, ("greedy", "bob")))
    with pytest.raises(ConfigError, match="bob"):
        play_ladder(tmp_path / "new", plan, ENGINES)
    assert not (tmp_path / "new").exists()


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
    with pytest.raises(UsageError, match="greedy .*Engine 1 .*Engine 2"):
        programs_of(matches.values())


def test_parts_of_one_match_hide_an_engines_other_version_bug(tmp_path):
    play_ladder(tmp_path, PLAN, ENGINES)
    for number, path in enumerate(sorted(tmp_path.glob("random--greedy--*.json"))):
        facts = {"identity": f"Engine {number}", "failures": 0, "last_failure": None,
                 "last_illegal": None}
        edit(path, programs={"greedy": facts})
    with pytest.raises(UsageError, match="greedy .*Engine 0 .*Engine 1"):
        read_matches(tmp_path, PLAN)


@pytest.mark.parametrize(("change", "message"), [
    ({"num_pairs": 0}, "--pairs"), ({"num_pairs": 1001}, "the book has 1000"),
    ({"seed": -1}, "--seed"), ({"max_plies": 0}, "--max-plies"),
])
def test_plans_that_cannot_be(change, message):
    with pytest.raises(ConfigError, match=message):
        replace(PLAN, **change)
