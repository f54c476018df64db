"""From the fields of the form to the settings of a new campaign, and of one that is resumed."""

import pytest
from small_campaigns import commit, finish, make_campaign

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.errors import CampaignError, ConfigError
from flows.importing import import_games
from flows.parameters import (
    campaign_to_resume,
    directory_of,
    form_settings,
    new_campaign,
    resumed_with,
)
from flows.tournament import plan_matches, tournament

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")
pytest.importorskip("mlflow")
pytest.importorskip("distributed")


FORM = form_settings(
    iterations=7, games_per_iteration=96, network="small", simulations=24, gpus=[0, 2], workers=4,
    seed=5,
)


def test_every_field_reaches_its_setting():
    config = load_config("gpu", settings=FORM)
    assert config.campaign.iterations == 7
    assert config.campaign.hours == 0, "the preset counts hours"
    assert config.campaign.seed == 5
    assert config.self_play.games_per_iteration == 96
    assert config.net.size == "small"
    assert (config.search.simulations_first, config.search.simulations_last) == (24, 24)
    assert config.execution.gpus == (0, 2)
    assert (config.execution.workers, config.execution.workers_per_device) == (4, 0)


def test_empty_fields_leave_the_preset_as_it_is():
    assert load_config("gpu", settings=form_settings()) == load_config("gpu")


def test_hours_take_the_place_of_iterations():
    assert load_config("smoke", settings=form_settings(hours=0.5)).campaign.hours == 0.5
    with pytest.raises(ConfigError, match=r"iterations = 3 .*hours = 2"):
        form_settings(iterations=3, hours=2.0)


def test_a_campaign_is_found_by_name_or_by_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("CHESS_SNN_HOME", str(tmp_path))
    assert directory_of("nightly", "") == tmp_path / "campaigns" / "nightly"
    assert directory_of("", str(tmp_path / "c")) == tmp_path / "c"
    assert directory_of("", "") is None
    with pytest.raises(ConfigError, match="nightly"):
        directory_of("nightly", str(tmp_path))
    with pytest.raises(ConfigError, match="campaigns/mine"):
        directory_of("", "campaigns/mine")


def test_the_same_form_resumes_its_campaign_as_a_schedule_does(tmp_path):
    config = load_config("gpu", settings=FORM)
    folder = CampaignFolder.create(tmp_path / "c", config)
    assert resumed_with(folder, FORM) == folder


def test_a_resumed_campaign_may_change_its_pace_and_nothing_else(tmp_path):
    folder = CampaignFolder.create(tmp_path / "c", load_config("smoke"))
    changed = resumed_with(folder, form_settings(workers=3))
    assert changed.config.execution.workers == 3
    assert CampaignFolder.open(folder.path) == changed
    with pytest.raises(ConfigError, match=r"campaign\.seed = 0 .*9"):
        resumed_with(folder, form_settings(seed=9, workers=2))
    assert CampaignFolder.open(folder.path) == changed, "nothing was changed"


def test_a_retry_resumes_the_campaign_that_its_run_had_and_no_other(tmp_path):
    folder = CampaignFolder.create(tmp_path / "smoke-001", load_config("smoke"))
    other = CampaignFolder.create(tmp_path / "smoke-002", load_config("smoke"))
    assert campaign_to_resume(folder.path, folder.campaign_id) == folder
    assert campaign_to_resume(folder.path, None) == folder, "a first try with its name"
    assert campaign_to_resume(tmp_path / "new", None) is None
    for path in (other.path, tmp_path / "deleted"):
        with pytest.raises(CampaignError, match=folder.campaign_id):
            campaign_to_resume(path, folder.campaign_id)
    assert not (tmp_path / "deleted").exists()


# Which matches a tournament plays, and what it and an import refuse before they begin.


@pytest.fixture
def folder(tmp_path):
    """A campaign of three generations."""
    made = make_campaign(tmp_path / "campaign")
    commit(made.checkpoint(0))
    for iteration in range(2):
        finish(made, iteration)
    return made


def names(matches):
    return [match.name for match in matches]


def test_every_two_generations_meet_and_each_meets_every_opponent(folder):
    matches = plan_matches(folder, [2, 0, 1, 0], ["random", "greedy", "random"], 8, 10)
    assert names(matches) == [
        "gen-000001@8-gen-000000@8", "gen-000002@8-gen-000000@8", "gen-000002@8-gen-000001@8",
        *(f"gen-{generation:06d}@8-{opponent}"
          for generation in range(3) for opponent in ("random", "greedy")),
    ]
    assert {match.num_games for match in matches} == {20}
    assert len({folder.match(match.event, match.name) for match in matches}) == len(matches)


def test_left_out_the_newest_plays_alone(folder):
    assert names(plan_matches(folder, None, ["random"], 0, 1)) == ["gen-000002-random"]


def test_rounds_of_different_length_do_not_take_each_others_results(folder):
    short, long = (plan_matches(folder, None, ["random"], 8, openings) for openings in (5, 50))
    assert short[0].event != long[0].event


@pytest.mark.parametrize(("generations", "opponents", "reason"), [
    ([7], ["random"], "7.* 2"),
    ([1], [], "generation"),
    ([1], ["nobody"], "'nobody'"),
    ([1], ["minimax:99"], "minimax"),
])
def test_what_cannot_be_played_is_refused(folder, generations, opponents, reason):
    with pytest.raises(ConfigError, match=reason):
        plan_matches(folder, generations, opponents, 8, 1)


def test_a_round_longer_than_the_book_is_refused_before_it_begins(folder):
    with pytest.raises(ConfigError, match="1001"):
        plan_matches(folder, [1], ["random"], 8, 1001)


def test_games_without_a_network_to_start_from_are_refused_before_there_is_a_folder(tmp_path):
    with pytest.raises(ConfigError, match="start_from"):
        new_campaign(tmp_path / "c", "smoke", [], "", with_games=True)
    assert not (tmp_path / "c").exists()


def test_relative_paths_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"directory .*'c'"):
        tournament.fn("c")
    with pytest.raises(ConfigError, match=r"out .*'imported'"):
        import_games.fn(str(tmp_path / "a.pgn"), "imported")
