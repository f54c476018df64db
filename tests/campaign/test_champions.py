"""Who is champion after games, after scores, after somebody's choice, and after taking it back."""

import json
from dataclasses import replace

import pytest
from made_games import made_match, scores_of
from small_campaigns import copy_generation
from small_campaigns import finish_without_games as finish

from chess_snn.campaign import read_receipts
from chess_snn.campaign.stages import prepare_first_generation
from chess_snn.campaign.store.receipt_parts import PromotionFacts
from chess_snn.campaign.strength.champions import (
    champion_of,
    champion_to_beat,
    choose_champion,
    past_champions,
    promote_by_hand,
    read_hand_promotions,
    roll_back,
)
from chess_snn.campaign.strength.gating_match import (
    finish_gating_match,
    gating_match_of,
    gating_state,
    next_parts,
)
from chess_snn.campaign.strength.match_games import read_match
from chess_snn.campaign.strength.matches import play_match_part, unplayed_parts
from chess_snn.errors import CampaignError, ConfigError, CorruptDataError, UsageError
from chess_snn.evaluation.match_files import write_match
from chess_snn.evaluation.openings import book_openings, opening_keys
from chess_snn.games import get_game
from chess_snn.rng import derive_seed


def facts(verdict: str) -> PromotionFacts:
    return PromotionFacts(
        candidate=4, champion=2, verdict=verdict, llr=0.0, lower=-3.0, upper=3.0, elo0=0.0,
        elo1=75.0, simulations=2, games=2, wins=1, draws=0, losses=1, truncated=0,
        pairs=[0, 0, 1, 0, 0], score=0.5,
    )


@pytest.fixture
def folder(new_folder):
    """Three iterations; generation 2 is champion."""
    folder = new_folder("c", "campaign.iterations=9")
    for iteration, champion in enumerate((1, 2, 2)):
        finish(folder, iteration, champion)
    return folder


def champion_now(folder) -> int | None:
    return champion_of(folder, read_receipts(folder))


@pytest.mark.parametrize(("promotion", "champion"), [
    (facts("accept"), 4), (facts("reject"), 2), (facts("undecided"), 2), (None, 2),
])
def test_only_an_accepted_candidate_takes_the_place(folder, promotion, champion):
    """However high its score: that is against others."""
    assert choose_champion(folder, 3, 1.0, promotion) == champion


@pytest.mark.parametrize(("score", "before", "margin", "chosen"), [
    (0.5, 0.5, 0.0, 4), (0.49, 0.5, 0.0, 2), (0.54, 0.5, 0.05, 2), (0.56, 0.5, 0.05, 4),
    (0.4, 0.5, -0.2, 4), (None, 0.1, 0.0, 2),
])
def test_scores_decide_where_they_are_to(new_folder, score, before, margin, chosen):
    folder = new_folder("c", 'promotion.rule="score"', f"promotion.margin={margin}",
                        "campaign.iterations=9")
    for iteration, champion in enumerate((1, 2, 2)):
        finish(folder, iteration, champion, before if iteration == 1 else 0.0)
    assert choose_champion(folder, 3, score, None) == chosen


@pytest.mark.parametrize("rule", ["sprt", "score"])
def test_until_one_is_evaluated_the_newest_is_champion(new_folder, rule):
    folder = new_folder("c", f'promotion.rule="{rule}"', "evaluation.every=3",
                        "campaign.iterations=9")
    assert champion_now(folder) is None
    for iteration, score in enumerate((None, None, 0.1)):
        assert champion_to_beat(folder, iteration) is None
        champion = choose_champion(folder, iteration, score, None)
        assert champion == iteration + 1
        finish(folder, iteration, champion, score)
    assert champion_to_beat(folder, 3) == 3
    assert choose_champion(folder, 3, None, None) == 3


def test_a_choice_by_hand_lasts_until_a_candidate_beats_it(folder):
    choice = promote_by_hand(folder, 3, "ada", "plays endings better")
    assert read_hand_promotions(folder) == [choice]
    assert (choice.num_finished, choice.action) == (3, "promote")
    assert champion_now(folder) == champion_to_beat(folder, 3) == 3
    assert choose_champion(folder, 3, 0.5, facts("reject")) == 3
    finish(folder, 3, champion=4)
    assert champion_now(folder) == 4
    assert past_champions(folder) == [1, 2, 3, 4]


def test_rolling_back_goes_one_champion_back_each_time(folder):
    promote_by_hand(folder, 3, "ada", "better")
    assert [roll_back(folder, "ada", "worse").generation for _ in range(2)] == [2, 1]
    assert champion_now(folder) == 1
    with pytest.raises(CampaignError):
        roll_back(folder, "ada", "worse")
    finish(folder, 3, champion=4)
    assert past_champions(folder) == [1, 4]
    assert roll_back(folder, "ada", "too soon").generation == 1


@pytest.mark.parametrize("generation", [0, 2, 4])
def test_who_cannot_be_chosen(folder, generation):
    """Without a receipt, or champion already."""
    with pytest.raises(CampaignError, match=f"generation {generation}"):
        promote_by_hand(folder, generation, "ada", "why not")
    assert read_hand_promotions(folder) == []


@pytest.mark.parametrize(("who", "why", "named"), [
    ("ada", "sch\udcf6ner", "--why"), ("j\udcf6rg", "better", "--who"),
])
def test_a_reason_that_could_not_be_read_again_is_refused_bug(folder, who, why, named):
    for choose in (lambda: promote_by_hand(folder, 3, who, why),
                   lambda: roll_back(folder, who, why)):
        with pytest.raises(UsageError, match=rf"{named} .*\\udcf6"):
            choose()
    assert read_hand_promotions(folder) == []


@pytest.mark.parametrize(("lost", "named"), [(0, 0), (1, 1)])
def test_a_lost_choice_does_not_hide_those_after_it_bug(folder, lost, named):
    promote_by_hand(folder, 3, "ada", "better")
    promote_by_hand(folder, 1, "ada", "better still")
    promote_by_hand(folder, 3, "ada", "no, it was not")
    folder.hand_promotion(lost).unlink()
    for read in (champion_now, past_champions, lambda f: promote_by_hand(f, 1, "ada", "well")):
        with pytest.raises(CorruptDataError, match=rf"by-hand-000{named}\.json"):
            read(folder)


def test_other_files_beside_choices_are_no_choices(folder):
    choice = promote_by_hand(folder, 3, "ada", "better")
    path = folder.hand_promotion(0)
    path.with_name("by-hand-0000 copy.json").write_text(path.read_text())
    assert read_hand_promotions(folder) == [choice]


# Candidates against champions: who plays whom, when it ends, what is kept of it.


GAME = get_game("chess")
EACH = 4
SETTINGS = (
    "promotion.max_openings=14", f"promotion.openings_each={EACH}", "promotion.elo0=0.0",
    "promotion.elo1=200.0",
)
"""Eight pairs of the same points decide, four do not."""


@pytest.fixture
def one_champion(new_folder):
    """Generation 1 is the champion, and generation 2 is to play it."""
    one_champion = new_folder("c", "campaign.iterations=9", *SETTINGS)
    finish(one_champion, 0, champion=1)
    return one_champion


def keep_part(one_champion, match, part, points: list[float]) -> None:
    """Pretend that the candidate made so many points with each of the part's openings."""
    openings = match.parts[part]
    assert len(points) == len(openings)
    result = made_match(
        scores_of(points), *match.players, openings=openings
    )
    write_match(one_champion.match_part(match.event, match.name, part), result)


def test_the_first_evaluated_generation_and_one_chosen_by_hand_are_champions_without_games(
    new_folder
):
    one_champion = new_folder("c", "campaign.iterations=9", "evaluation.every=2")
    assert gating_match_of(one_champion, 1) is None, "not evaluated"
    finish(one_champion, 0, champion=1, score=None)
    assert gating_match_of(one_champion, 2) is None, "the champion was not evaluated"
    finish(one_champion, 1, champion=2)
    assert gating_match_of(one_champion, 3) is None
    finish(one_champion, 2, champion=2, score=None)
    match = gating_match_of(one_champion, 4)
    assert (match.generation, match.opponent) == (4, 2)
    promote_by_hand(one_champion, 1, "somebody", "curious")
    assert gating_match_of(one_champion, 4).opponent == 1, "though it was not evaluated"


def test_no_games_are_played_where_scores_decide(new_folder):
    one_champion = new_folder("c", 'promotion.rule="score"')
    finish(one_champion, 0, champion=1)
    assert gating_match_of(one_champion, 2) is None


def test_the_budget_is_that_of_the_evaluation(one_champion):
    match = gating_match_of(one_champion, 2)
    assert match.players == ("gen-000002@2", "gen-000001@2")
    assert match.parts == [range(0, 4), range(4, 8), range(8, 12), range(12, 14)]


@pytest.mark.parametrize(("points", "verdict"), [(2.0, "accept"), (0.0, "reject")])
def test_a_clear_match_ends_early_and_keeps_the_games_that_count(one_champion, points, verdict):
    match = gating_match_of(one_champion, 2)
    assert next_parts(one_champion, match, most=2) == [0, 1]
    # Both workers have played, and a third part is there as if there had been three.
    for part in range(3):
        keep_part(one_champion, match, part, [points] * EACH)
    state = gating_state(one_champion, match)
    assert (state.num_parts, state.is_over) == (2, True), "the third part says nothing any more"
    assert next_parts(one_champion, match, most=2) == []

    facts = finish_gating_match(one_champion.path, match)
    assert (facts.verdict, facts.candidate, facts.champion) == (verdict, 2, 1)
    assert (facts.games, facts.score) == (16, points / 2)
    assert facts.pairs == ([0, 0, 0, 0, 8] if points else [8, 0, 0, 0, 0])
    assert facts.wins + facts.draws + facts.losses + facts.truncated == facts.games
    assert facts.llr >= facts.upper if verdict == "accept" else facts.llr <= facts.lower
    (kept,) = one_champion.match(match.event, match.name).parent.iterdir()
    assert kept.name == "champion-000001.json"
    assert read_match(GAME.spec, kept)[0].num_games == 16
    assert finish_gating_match(one_champion.path, match) == facts
    assert next_parts(one_champion, match, most=2) == []


def test_without_a_decision_the_openings_run_out(one_champion):
    match, played = gating_match_of(one_champion, 2), []
    while parts := next_parts(one_champion, match, most=3):
        for part in parts:
            played.append(part)
            keep_part(one_champion, match, part, [2.0, 0.0] * (len(match.parts[part]) // 2))
    assert played == [0, 1, 2, 3]
    facts = finish_gating_match(one_champion.path, match)
    assert (facts.verdict, facts.games) == ("undecided", 28)
    assert facts.lower < facts.llr < facts.upper


def test_the_verdict_does_not_depend_on_how_far_ahead_workers_were(one_champion):
    """Lost at the end of part 1; a later part in which all is won changes nothing."""
    match = gating_match_of(one_champion, 2)
    for part, points in enumerate((0.0, 0.0, 2.0)):
        keep_part(one_champion, match, part, [points] * EACH)
    one_champion.match_part(match.event, match.name, 0).rename(one_champion.path / "aside")
    assert next_parts(one_champion, match, most=2) == [0, 3]
    (one_champion.path / "aside").rename(one_champion.match_part(match.event, match.name, 0))
    assert finish_gating_match(one_champion.path, match).verdict == "reject"


def test_every_gate_has_openings_of_its_own_and_games_are_not_played_again(new_folder):
    one_champion = new_folder("c", "campaign.iterations=9", *SETTINGS, "promotion.max_openings=8")
    prepare_first_generation(one_champion)
    for generation in (1, 2, 3):
        copy_generation(one_champion, 0, generation)
    finish(one_champion, 0, champion=1)
    match = gating_match_of(one_champion, 2)
    play_match_part(one_champion.path, match, 0)
    path = one_champion.match_part(match.event, match.name, 0)
    before = path.stat().st_mtime_ns
    assert next_parts(one_champion, match, most=2) == unplayed_parts(one_champion, match) == [1]
    for part in (0, 1):
        play_match_part(one_champion.path, match, part)
    assert path.stat().st_mtime_ns == before
    # Six plies end no game: all are cut.
    facts = finish_gating_match(one_champion.path, match)
    assert (facts.verdict, facts.truncated, facts.pairs) == ("reject", 16, [0, 0, 8, 0, 0])

    finish(one_champion, 1, champion=1)
    other = gating_match_of(one_champion, 3)
    play_match_part(one_champion.path, replace(other, num_openings=EACH), 0)
    part = json.loads(one_champion.match_part(other.event, other.name, 0).read_text())
    kept, _ = read_match(GAME.spec, one_champion.match(match.event, match.name))
    seed = derive_seed(one_champion.config.campaign.seed, "evaluation")
    evaluated = set(opening_keys(GAME, book_openings(GAME, 8, seed)))
    assert len(set(kept.opening_keys)) == 8
    assert set(kept.opening_keys) != evaluated
    assert not set(part["openings"]["key"]) <= set(kept.opening_keys)


def test_trees_of_the_gate_are_counted_only_where_games_are_played(new_folder):
    large = (
        "evaluation.simulations=100000", "evaluation.num_openings=1", "promotion.openings_each=30"
    )
    with pytest.raises(ConfigError, match="100000"):
        new_folder("bad", *large)
    new_folder("score", *large, 'promotion.rule="score"')


def test_games_against_another_champion_are_not_taken_for_these(one_champion):
    """Killed in the middle of a gating match, and resumed after somebody has chosen another
    champion."""
    finish(one_champion, 1, champion=1)
    first = gating_match_of(one_champion, 3)
    keep_part(one_champion, first, 0, [2.0] * EACH)
    promote_by_hand(one_champion, 2, "somebody", "to see")
    second = gating_match_of(one_champion, 3)
    assert second.opponent == 2
    assert gating_state(one_champion, second).num_parts == 0


def test_a_choice_that_is_no_json_is_not_to_be_deleted_bug(folder):
    promote_by_hand(folder, 3, "ada", "better")
    folder.hand_promotion(0).write_text("{")
    with pytest.raises(CorruptDataError, match="restore"):
        champion_now(folder)
