"""Ratings from the match files of a campaign: which games count, and what receipts keep."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest
from made_games import made_match

from benchmarks.ladder import ladder_json
from chess_snn.campaign.strength import ratings as campaign_ratings
from chess_snn.campaign.strength.ratings import rate_campaign, rating_of
from chess_snn.evaluation import match_files
from chess_snn.evaluation.ladder.ladder import Ladder
from chess_snn.evaluation.players import ProgramFacts

PAIRS = 40


def write_match(folder, event, name, player, opponent, score, programs=None):
    """``score`` of its 80 games are won by ``player``, the rest lost, the same with each colour."""
    won = np.repeat(np.arange(PAIRS) < round(PAIRS * score), 2).reshape(PAIRS, 2)
    result = made_match(won, player, opponent, programs=programs or {})
    match_files.write_match(folder.match(event, name), result, {"name": name})


@pytest.fixture
def folder(new_folder):
    folder = new_folder("c")
    write_match(folder, "gen-000004", "random", "gen-000004@16", "random", 0.75)
    write_match(folder, "gen-000008", "random", "gen-000008@16", "random", 0.9)
    write_match(folder, "gen-000008", "earlier", "gen-000008@16", "gen-000004@16", 0.75)
    return folder


def test_two_players_are_apart_by_the_logistic_formula(folder):
    (folder.match("gen-000008", "random")).unlink()
    (folder.match("gen-000008", "earlier")).unlink()
    ratings = rate_campaign(folder).ratings
    expected = 400 * math.log10((60 + 1 / 3) / (20 + 1 / 3))  # the prior adds a third of a game
    assert ratings.of("gen-000004@16").elo.value == pytest.approx(expected)
    assert ratings.of("random").elo.value == 0


def test_all_games_are_fitted_together(folder):
    ratings = rate_campaign(folder).ratings
    elder, newest = (ratings.of(name).elo.value for name in ("gen-000004@16", "gen-000008@16"))
    assert 150 < elder < 250
    assert elder + 150 < newest < elder + 250
    assert ratings.of("gen-000008@16").num_games == 4 * PAIRS


def test_a_receipt_keeps_what_was_known_when_its_generation_was_new(folder):
    before = rating_of(rate_campaign(folder, 4), 4, 16)
    assert before.player == "gen-000004@16"
    assert before.anchor == "random"
    assert before.elo_low < before.elo < before.elo_high
    write_match(folder, "gen-000012", "random", "gen-000012@16", "random", 0.5)
    write_match(folder, "final", "random-16", "gen-000012@16", "random", 0.5)
    assert rating_of(rate_campaign(folder, 4), 4, 16) == before
    json.dumps(asdict(before), allow_nan=False)


def test_who_won_every_game_has_a_bound(folder):
    write_match(folder, "gen-000012", "random", "gen-000012@16", "random", 1.0)
    rating = rating_of(rate_campaign(folder, 12), 12, 16)
    assert rating.elo_high is None
    assert 300 < rating.elo_low < rating.elo


def test_parts_and_the_suite_of_won_positions_are_no_matches(folder):
    expected = rating_of(rate_campaign(folder, 8), 8, 16)
    folder.match("gen-000008", "conversion").write_text('{"won": 1}')
    folder.match_part("gen-000008", "greedy", 0).write_text('{"half": "written"}')
    assert rating_of(rate_campaign(folder, 8), 8, 16) == expected


def test_nobody_is_rated_without_the_anchor(new_folder):
    folder = new_folder("d")
    assert rate_campaign(folder) is None
    write_match(folder, "gen-000004", "greedy", "gen-000004@16", "greedy", 0.5)
    assert rate_campaign(folder) is None
    assert rating_of(rate_campaign(folder, 4), 4, 16) is None


def test_one_match_that_nothing_links_to_random_ends_all_ratings_bug(folder):
    expected = rate_campaign(folder)
    assert expected.notice is None
    write_match(folder, "extra", "x", "gen-000008@800", "gen-000004@800", 0.5)
    rated = rate_campaign(folder)
    assert rated.ratings.to_json() == expected.ratings.to_json()
    assert rated.left_out == ("gen-000004@800", "gen-000008@800")
    assert "gen-000008@800" in rated.notice
    write_match(folder, "gen-000012", "x", "gen-000012@800", "gen-000008@800", 0.5)
    assert rating_of(rate_campaign(folder, 12), 12, 800) is None


def test_an_engine_of_another_version_is_rated_as_the_ladders_player_bug(new_folder, monkeypatch):
    even, engine = np.array([[2, 3, 6], [3, 4, 3], [6, 3, 2]]), "stockfish@30"
    pairings = [{"player_a": engine, "player_b": "random", "pairs": even}]
    ladder = Ladder.from_json(
        ladder_json(pairings, {engine: "Engine 1"}, max_plies=6, origin={})
    )
    monkeypatch.setattr(campaign_ratings, "read_ladder", lambda: ladder)
    folder = new_folder("c", "evaluation.ladder_test=true")
    for generation, identity in ((4, "Engine 1"), (8, "Engine 2")):
        player = f"gen-{generation:06d}@16"
        facts = {engine: ProgramFacts(identity, 0, None, None)}
        write_match(folder, f"gen-{generation:06d}", "s", player, engine, 0.5, facts)
        write_match(folder, f"gen-{generation:06d}", "random", player, "random", 0.75)
    rated = rate_campaign(folder).ratings
    assert set(rated.players) == {
        "random", engine, f"{engine} (Engine 2)", "gen-000004@16", "gen-000008@16"
    }
    assert rated.of(f"{engine} (Engine 2)").num_games == 2 * PAIRS
