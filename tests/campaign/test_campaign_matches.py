"""Matches in parts come to the same as whole ones; the last ones have the right players."""

import io
import json
from dataclasses import asdict, replace

import chess.pgn
import numpy as np
import pytest
from signed_files import edit
from small_campaigns import copy_generation, finish_without_games

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.stages import prepare_first_generation
from chess_snn.campaign.store.collection import GameFilter
from chess_snn.campaign.store.plans import ProgressPlan, begin_iteration
from chess_snn.campaign.strength.gating_match import gating_match_of
from chess_snn.campaign.strength.match_games import match_games_pgn, read_match
from chess_snn.campaign.strength.match_schedule import (
    earlier_generation,
    final_matches,
    generation_matches,
)
from chess_snn.campaign.strength.matches import (
    finish_match,
    is_finished,
    play_match_part,
    read_final_matches,
    unplayed_parts,
)
from chess_snn.errors import CampaignError, ConfigError, CorruptDataError, UsageError
from chess_snn.evaluation.openings import book_openings, opening_keys
from chess_snn.games import get_game
from chess_snn.rng import derive_seed


def hour_of_iterations(folder: CampaignFolder, count: int) -> None:
    """``count`` iterations without games, of equal length, an hour in all."""
    for number in range(count):
        finish_without_games(
            folder, number, champion=1, score=None, begun_s=3600.0 * number / count,
            ended_s=3600.0 * (number + 1) / count,
        )


def first_keys(folder: CampaignFolder, count: int) -> tuple[str, ...]:
    seed = derive_seed(folder.config.campaign.seed, "evaluation")
    game = get_game("chess")
    return opening_keys(game, book_openings(game, count, seed))


@pytest.fixture
def untrained(new_folder):
    folder = new_folder("c", "evaluation.num_openings=5", "evaluation.simulations=0")
    prepare_first_generation(folder)
    begin_iteration(folder, 0, 0.0)
    return folder


def test_a_match_in_parts_plays_every_opening_once_and_leaves_one_file(untrained):
    match = replace(
        generation_matches(untrained, 1)[0], generation=0, opponent="random", openings_each=2,
    )
    assert match.parts == [range(0, 2), range(2, 4), range(4, 5)]
    play_match_part(untrained.path, match, 1)
    assert unplayed_parts(untrained, match) == [0, 2]
    for part in (2, 0):
        play_match_part(untrained.path, match, part)
    summary = finish_match(untrained.path, match)
    assert (summary.num_games, summary.player_b) == (10, "random")
    (file,) = untrained.match("gen-000001", "random").parent.iterdir()
    body = json.loads(file.read_text())
    games = body["per_game"]
    assert all(key.startswith("book:") for key in body["openings"]["key"])
    assert set(body["openings"]["key"]) == set(first_keys(untrained, 5))
    assert not {"moves", "per_game"} & set(asdict(summary))
    assert games["opening_index"] == np.repeat(range(5), 2).tolist()
    assert games["a_is_white"] == [True, False] * 5
    assert unplayed_parts(untrained, match) == []
    assert finish_match(untrained.path, match) == summary


def test_a_damaged_part_is_refused(untrained):
    (match, _) = generation_matches(untrained, 1)
    match = replace(match, generation=0)
    play_match_part(untrained.path, match, 0)
    part = untrained.match_part(match.event, match.name, 0)
    for damage in ({"per_game": {}}, {"schema": 1}):
        part.write_text(json.dumps(json.loads(part.read_text()) | damage))
        with pytest.raises(CorruptDataError, match=r"gen-000001/random\.part-"):
            finish_match(untrained.path, match)
    assert not untrained.match(match.event, match.name).exists()


def test_parts_against_two_versions_of_an_engine_are_no_match(untrained):
    match = replace(
        generation_matches(untrained, 1)[0], generation=0, num_openings=2, openings_each=1,
    )
    for number in range(2):
        play_match_part(untrained.path, match, number)
        part = untrained.match_part(match.event, match.name, number)
        facts = {"identity": f"Engine {number}", "failures": 0, "last_failure": None,
                 "last_illegal": None}
        edit(part, programs={"random": facts})
    with pytest.raises(CampaignError, match="Engine 0"):
        finish_match(untrained.path, match)
    assert not untrained.match(match.event, match.name).exists()


def test_twenty_minutes_before_the_end_of_an_hour(new_folder):
    folder = new_folder("c", "campaign.iterations=12", "evaluation.final_openings=7")
    assert final_matches(folder) == [], "nothing is finished yet"
    hour_of_iterations(folder, 12)  # five minutes each
    played = {match.name: match for match in final_matches(folder)}
    assert list(played) == ["random-0", "random-64", "greedy-64", "earlier-64"]
    assert [match.players for match in played.values()] == [
        ("gen-000012", "random"), ("gen-000012@64", "random"), ("gen-000012@64", "greedy"),
        ("gen-000012@64", "gen-000008@64"),  # new after 40 minutes
    ]
    assert {match.num_games for match in played.values()} == {14}
    assert read_final_matches(folder) == []
    assert not is_finished(folder), "the last matches are missing"


def test_a_campaign_by_hours_is_finished_when_the_time_is_up(new_folder):
    folder = new_folder("c", "campaign.hours=1")
    hour_of_iterations(folder, 3)
    assert is_finished(folder)
    more = new_folder("d", "campaign.hours=2")
    hour_of_iterations(more, 3)
    assert not is_finished(more)
    begin_iteration(more, 3, 3600.0)
    assert not is_finished(more), "one began and has no receipt"


def plans_begun_at(*elapsed_s: float) -> list[ProgressPlan]:
    return [ProgressPlan(k, 0.0, 0.0, begun_s, 1) for k, begun_s in enumerate(elapsed_s)]


def test_by_hours_the_earlier_generation_is_the_nearest_to_two_thirds_of_the_time():
    plans = plans_begun_at(0, 10, 55, 90)
    assert earlier_generation(plans[:1], by_time=True) == 0
    assert earlier_generation(plans, by_time=True) == 2
    assert earlier_generation(plans, by_time=True, now=30.0) == 1


def test_by_iterations_the_earlier_generation_follows_from_their_number_alone():
    for number, expected in ((1, 0), (2, 1), (4, 2), (7, 4), (10, 6)):
        even = plans_begun_at(*range(number))
        uneven = plans_begun_at(*(k**3 for k in range(number)))
        assert earlier_generation(even, by_time=False) == expected
        assert earlier_generation(uneven, by_time=False) == expected
    assert earlier_generation(plans_begun_at(*range(12)), by_time=False, now=12) == 8
    removed = [plan for plan in plans_begun_at(*range(10)) if plan.iteration not in (5, 6)]
    assert earlier_generation(removed, by_time=False) == 7


def opponents_of_two_runs(new_folder, length: str) -> list[list[object]]:
    """The opponents in two campaigns whose six iterations lasted equally and unequally long."""
    opponents = []
    for name, ends_s in (("even", range(6)), ("uneven", (0, 1, 2, 3, 4, 50))):
        folder = new_folder(name, length, "evaluation.final_openings=1", "evaluation.every=1")
        begun_s = 0.0
        for iteration, end_s in enumerate(ends_s):
            ended_s = 100.0 * (end_s + 1)
            finish_without_games(
                folder, iteration, champion=1, score=None, begun_s=begun_s, ended_s=ended_s
            )
            begun_s = ended_s
        begin_iteration(folder, 6, begun_s)
        matches = [m for g in range(1, 7) for m in generation_matches(folder, g)]
        opponents.append([match.players[1] for match in [*matches, *final_matches(folder)]])
    return opponents


def test_two_runs_of_other_pace_play_the_same_opponents_bug(new_folder):
    """Which network was new at two thirds of the time was asked of campaigns by iterations too."""
    even, uneven = opponents_of_two_runs(new_folder, "campaign.iterations=6")
    assert even == uneven
    assert "gen-000004@64" in even, "at the end"


def test_gating_matches_have_openings_of_their_own_and_evaluations_the_same(new_folder):
    """Luck with an opening is not inherited, and scores of generations can be compared."""
    folder = new_folder("campaign", "evaluation.every=1")
    for iteration in range(3):
        finish_without_games(folder, iteration, champion=1)
    gating = [gating_match_of(folder, generation).seed_path for generation in (2, 3)]
    evaluated = [match.seed_path for g in (2, 3) for match in generation_matches(folder, g)]
    assert len(set(gating) | set(evaluated)) == 3
    assert len(set(evaluated)) == 1


def test_every_game_of_the_matches_becomes_pgn(untrained):
    copy_generation(untrained, 0, 1)
    for event, number in (("final", 2), ("gen-000001", 1)):
        match = replace(
            generation_matches(untrained, 1)[0], event=event, generation=0,
            opponent=("random", 1)[number - 1], simulations=2, num_openings=number,
        )
        play_match_part(untrained.path, match, 0)
        finish_match(untrained.path, match)
    play_match_part(untrained.path, replace(match, name="unfinished"), 0)
    text = "".join(match_games_pgn(untrained, GameFilter()))
    stream = io.StringIO(text)
    games = list(iter(lambda: chess.pgn.read_game(stream), None))
    assert [game.headers["Match"] for game in games] == ["gen-000001/random"] * 2 + [
        "final/random"] * 4, "those at the end last, and none of a match that goes on"
    for game in games:
        assert not game.errors
        assert (game.headers["EndedBy"], game.headers["Result"]) == ("ply_cap", "1/2-1/2")
        assert game.headers["Termination"] == "adjudication"
        assert len(game.headers["ConfigDigest"]) == 12
        assert game.end().ply() - game.ply() == 6
    first = games[0].headers
    assert (first["White"], first["Black"]) == ("gen-000000@2", "random")
    assert (first["WhiteGeneration"], first["WhiteSimulations"]) == ("0", "2")
    last = games[-1].headers
    assert (last["White"], last["WhiteGeneration"]) == ("gen-000001@2", "1")
    assert first["OpeningKey"] == games[2].headers["OpeningKey"] == first_keys(untrained, 1)[0]


def test_filters_of_match_games(untrained):
    match = replace(generation_matches(untrained, 1)[0], generation=0, opponent="random")
    with pytest.raises(UsageError):
        list(match_games_pgn(untrained, GameFilter()))
    play_match_part(untrained.path, match, 0)
    finish_match(untrained.path, match)
    for wanted, count in (
        (GameFilter(limit=3), 3), (GameFilter(generations=range(1)), 10),
        (GameFilter(generations=range(1, 9)), 0), (GameFilter(outcome="white"), 0),
    ):
        assert len(list(match_games_pgn(untrained, wanted))) == count, wanted
    with pytest.raises(UsageError, match="--iteration"):
        list(match_games_pgn(untrained, GameFilter(iterations=range(3))))


def test_openings_by_the_settings(new_folder):
    folder = new_folder("c", 'evaluation.openings="random"')
    prepare_first_generation(folder)
    begin_iteration(folder, 0, 0.0)
    match = replace(generation_matches(folder, 1)[0], generation=0, simulations=0)
    play_match_part(folder.path, match, 0)
    finish_match(folder.path, match)
    played, _ = read_match(get_game("chess").spec, folder.match(match.event, match.name))
    (fen,) = played.opening_positions
    assert played.opening_keys == (fen,)
    assert chess.Board(fen).ply() == 4


@pytest.mark.parametrize("setting", ["num_openings", "final_openings"])
def test_more_openings_than_the_book_has_are_refused(new_folder, setting):
    with pytest.raises(ConfigError, match=rf"evaluation\.{setting}"):
        new_folder("c", f"evaluation.{setting}=1001")
    new_folder("d", f"evaluation.{setting}=1001", 'evaluation.openings="random"')


def test_by_hours_the_opponents_follow_the_time(new_folder):
    even, uneven = opponents_of_two_runs(new_folder, "campaign.hours=10")
    assert even != uneven
