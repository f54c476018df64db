"""Who is champion after games, after scores, after somebody's choice, and after taking it back."""


import pytest
from small_campaigns import finish_without_games as finish

from chess_snn.campaign import read_receipts
from chess_snn.campaign.store.receipts import PromotionFacts
from chess_snn.campaign.strength.champions import (
    champion_of,
    champion_to_beat,
    choose_champion,
    past_champions,
    promote_by_hand,
    read_hand_promotions,
    roll_back,
)
from chess_snn.errors import CampaignError, CorruptDataError, UsageError


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
    with pytest.raises(CampaignError, match="generation 1"):
        roll_back(folder, "ada", "worse")
    finish(folder, 3, champion=4)
    assert past_champions(folder) == [1, 4]
    assert roll_back(folder, "ada", "too soon").generation == 1


def test_a_campaign_without_champions_has_none_to_go_back_to(new_folder):
    with pytest.raises(CampaignError):
        roll_back(new_folder("c"), "ada", "worse")


@pytest.mark.parametrize(("generation", "reason"), [
    (0, "generation 0 of .* those of finished iterations are 1 to 3"),
    (4, "generation 4 of .* those of finished iterations are 1 to 3"),
    (2, "generation 2 of .* is the champion already"),
])
def test_who_cannot_be_chosen(folder, generation, reason):
    with pytest.raises(CampaignError, match=reason):
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


def test_a_choice_that_is_no_json_is_not_to_be_deleted_bug(folder):
    promote_by_hand(folder, 3, "ada", "better")
    folder.hand_promotion(0).write_text("{")
    with pytest.raises(CorruptDataError, match="restore"):
        champion_now(folder)
