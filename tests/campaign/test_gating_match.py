"""Candidates against champions: who plays whom, when it ends, what is kept of it."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from small_campaigns import finish_without_games as finish

from chess_snn.campaign.stages import prepare_first_generation
from chess_snn.campaign.strength.champions import promote_by_hand
from chess_snn.campaign.strength.gating_match import (
    finish_gating_match,
    gating_match_of,
    gating_state,
    next_parts,
)
from chess_snn.campaign.strength.match_games import read_match
from chess_snn.campaign.strength.matches import play_match_part, unplayed_parts
from chess_snn.errors import ConfigError
from chess_snn.evaluation import MatchResult, book_openings, opening_keys
from chess_snn.evaluation.match_files import write_match
from chess_snn.games import get_game
from chess_snn.rng import derive_seed

GAME = get_game("chess")
EACH = 4
SETTINGS = (
    "promotion.max_openings=14", f"promotion.openings_each={EACH}", "promotion.elo0=0.0",
    "promotion.elo1=200.0",
)
"""Eight pairs of the same points decide, four do not."""


@pytest.fixture
def folder(new_folder):
    """Generation 1 is the champion, and generation 2 is to play it."""
    folder = new_folder("c", "campaign.iterations=9", *SETTINGS)
    finish(folder, 0, champion=1)
    return folder


def keep_part(folder, match, part, points: list[float]) -> None:
    """As if the candidate had made so many points with each of the part's openings."""
    openings = match.parts[part]
    assert len(points) == len(openings)
    names = tuple(f"book:{number:04d}" for number in openings)
    halves = np.array([(min(1.0, each), max(0.0, each - 1.0)) for each in points])
    result = MatchResult(
        spec=GAME.spec, player_a=match.players[0], player_b=match.players[1],
        opening_keys=names, opening_positions=names,
        opening_index=np.repeat(np.arange(len(openings), dtype=np.int32), 2),
        a_is_white=np.tile([True, False], len(openings)),
        scores_a=halves.ravel().astype(np.float32),
        terminations=np.ones(2 * len(openings), np.uint8),
        plies=np.ones(2 * len(openings), np.int32),
        actions=np.zeros(2 * len(openings), np.int16),
    )
    write_match(folder.match_part(match.event, match.name, part), result)


def test_the_first_evaluated_generation_is_champion_without_games(new_folder):
    folder = new_folder("c", "campaign.iterations=9", "evaluation.every=2")
    assert gating_match_of(folder, 1) is None, "not evaluated"
    finish(folder, 0, champion=1, score=None)
    assert gating_match_of(folder, 2) is None, "the champion was not evaluated"
    finish(folder, 1, champion=2)
    assert gating_match_of(folder, 3) is None
    finish(folder, 2, champion=2, score=None)
    match = gating_match_of(folder, 4)
    assert (match.generation, match.opponent) == (4, 2)


def test_a_champion_by_hand_is_played_against_even_if_it_was_not_evaluated(new_folder):
    folder = new_folder("c", "campaign.iterations=9", "evaluation.every=2")
    finish(folder, 0, champion=1, score=None)
    finish(folder, 1, champion=2)
    finish(folder, 2, champion=2, score=None)
    promote_by_hand(folder, 1, "somebody", "curious")
    assert gating_match_of(folder, 4).opponent == 1


def test_no_games_are_played_where_scores_decide(new_folder):
    folder = new_folder("c", 'promotion.rule="score"')
    finish(folder, 0, champion=1)
    assert gating_match_of(folder, 2) is None


def test_the_budget_is_that_of_the_evaluation_unless_set(folder, new_folder):
    match = gating_match_of(folder, 2)
    assert match.players == ("gen-000002@2", "gen-000001@2")
    assert match.parts == [range(0, 4), range(4, 8), range(8, 12), range(12, 14)]
    other = new_folder("d", "promotion.simulations=9")
    finish(other, 0, champion=1)
    assert gating_match_of(other, 2).players == ("gen-000002@9", "gen-000001@9")


@pytest.mark.parametrize(("points", "verdict"), [(2.0, "accept"), (0.0, "reject")])
def test_a_clear_match_ends_early_and_keeps_the_games_that_count(folder, points, verdict):
    match = gating_match_of(folder, 2)
    assert next_parts(folder, match, most=2) == [0, 1]
    # Both workers have played, and a third part is there as if there had been three.
    for part in range(3):
        keep_part(folder, match, part, [points] * EACH)
    state = gating_state(folder, match)
    assert (state.num_parts, state.is_over) == (2, True), "the third part says nothing any more"
    assert next_parts(folder, match, most=2) == []

    facts = finish_gating_match(folder.path, match)
    assert (facts.verdict, facts.candidate, facts.champion) == (verdict, 2, 1)
    assert (facts.games, facts.score) == (16, points / 2)
    assert facts.pairs == ([0, 0, 0, 0, 8] if points else [8, 0, 0, 0, 0])
    assert facts.wins + facts.draws + facts.losses + facts.truncated == facts.games
    assert facts.llr >= facts.upper if verdict == "accept" else facts.llr <= facts.lower
    (kept,) = folder.match(match.event, match.name).parent.iterdir()
    assert kept.name == "champion-000001.json"
    assert read_match(GAME.spec, kept)[0].num_games == 16
    assert finish_gating_match(folder.path, match) == facts
    assert next_parts(folder, match, most=2) == []


def test_without_a_decision_the_openings_run_out(folder):
    match, played = gating_match_of(folder, 2), []
    while parts := next_parts(folder, match, most=3):
        for part in parts:
            played.append(part)
            keep_part(folder, match, part, [2.0, 0.0] * (len(match.parts[part]) // 2))
    assert played == [0, 1, 2, 3]
    facts = finish_gating_match(folder.path, match)
    assert (facts.verdict, facts.games) == ("undecided", 28)
    assert facts.lower < facts.llr < facts.upper
    assert "undecided after 28 games" in str(facts)


def test_the_verdict_does_not_depend_on_how_far_ahead_workers_were(folder):
    """Lost at the end of part 1; a later part in which all is won changes nothing."""
    match = gating_match_of(folder, 2)
    for part, points in enumerate((0.0, 0.0, 2.0)):
        keep_part(folder, match, part, [points] * EACH)
    folder.match_part(match.event, match.name, 0).rename(folder.path / "aside")
    assert next_parts(folder, match, most=2) == [0, 3]
    (folder.path / "aside").rename(folder.match_part(match.event, match.name, 0))
    assert finish_gating_match(folder.path, match).verdict == "reject"


def test_games_against_another_champion_are_not_taken_for_these(folder):
    """Killed in the middle of a gating match, and resumed after somebody has chosen another
    champion."""
    finish(folder, 1, champion=1)
    first = gating_match_of(folder, 3)
    keep_part(folder, first, 0, [2.0] * EACH)
    promote_by_hand(folder, 2, "somebody", "to see")
    second = gating_match_of(folder, 3)
    assert second.opponent == 2
    assert gating_state(folder, second).num_parts == 0


def test_every_gate_has_openings_of_its_own_and_games_are_not_played_again(new_folder):
    folder = new_folder("c", "campaign.iterations=9", *SETTINGS, "promotion.max_openings=8")
    prepare_first_generation(folder)
    for generation in (1, 2, 3):
        shutil.copytree(folder.checkpoint(0), folder.checkpoint(generation))
    finish(folder, 0, champion=1)
    match = gating_match_of(folder, 2)
    play_match_part(folder.path, match, 0)
    path = folder.match_part(match.event, match.name, 0)
    before = path.stat().st_mtime_ns
    assert next_parts(folder, match, most=2) == unplayed_parts(folder, match) == [1]
    for part in (0, 1):
        play_match_part(folder.path, match, part)
    assert path.stat().st_mtime_ns == before
    # Six plies end no game: all are cut.
    facts = finish_gating_match(folder.path, match)
    assert (facts.verdict, facts.truncated, facts.pairs) == ("reject", 16, [0, 0, 8, 0, 0])

    finish(folder, 1, champion=1)
    other = gating_match_of(folder, 3)
    play_match_part(folder.path, replace(other, num_openings=EACH), 0)
    part = json.loads(folder.match_part(other.event, other.name, 0).read_text())
    kept, _ = read_match(GAME.spec, folder.match(match.event, match.name))
    seed = derive_seed(folder.config.campaign.seed, "evaluation")
    evaluated = set(opening_keys(GAME, book_openings(GAME, 8, seed)))
    assert len(set(kept.opening_keys)) == 8
    assert set(kept.opening_keys) != evaluated
    assert not set(part["openings"]["key"]) <= set(kept.opening_keys)


@pytest.mark.parametrize(("setting", "reason"), [
    ("promotion.elo1=-1.0", "promotion.elo1 must be above promotion.elo0 = 0, got -1"),
    ("promotion.max_openings=1001", "promotion.max_openings asks for 1001 openings"),
])
def test_bad_settings(new_folder, setting, reason):
    with pytest.raises(ConfigError, match=reason):
        new_folder("bad", *SETTINGS, setting)
    new_folder("score", 'promotion.rule="score"', "promotion.max_openings=1001")


def test_trees_of_the_gate_are_counted_only_where_games_are_played(new_folder):
    large = ("promotion.simulations=100000", "promotion.openings_each=30")
    with pytest.raises(ConfigError, match="trees of 100000 simulations for 60 games"):
        new_folder("bad", *large)
    new_folder("score", *large, 'promotion.rule="score"')
