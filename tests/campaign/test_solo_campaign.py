"""A campaign of a one-player game, 2048: settings, receipts, results, audit, the same twice."""

import json

import pytest
from small_campaigns import MICRO_2048

from chess_snn.campaign import load_config, read_receipts
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.models.references import model_of_campaign
from chess_snn.campaign.strength.match_schedule import final_matches
from chess_snn.campaign.strength.matches import read_final_matches
from chess_snn.campaign.strength.ratings import rate_campaign
from chess_snn.campaign.viewing.alarms import find_alarms
from chess_snn.campaign.viewing.lines import iteration_line, match_line
from chess_snn.campaign.viewing.results import iteration_columns, result_rows, results_csv
from chess_snn.cli.console import table_of
from chess_snn.cli.dashboard import matches_table
from chess_snn.data import read_shard
from chess_snn.errors import ConfigError, UsageError
from chess_snn.games import get_game

OPPONENTS = ["random", "expectimax:1", "earlier"]


@pytest.fixture
def folder(campaign_2048):
    return campaign_2048


def test_receipts_have_points_and_nothing_of_two_players(folder):
    for receipt in read_receipts(folder):
        row, statistics = result_rows(folder, [receipt])[0], receipt.statistics
        assert [match.name for match in receipt.matches] == OPPONENTS
        assert receipt.conversion is None
        assert not [name for name in row if "draw_rate" in name or "white" in name]
        assert row["points_low"] < row["points"] <= row["points_best"]
        assert row["reached_2048"] == 0.0
        for match in receipt.matches:
            ahead = match.points.ahead
            assert ahead.low <= ahead.mean <= ahead.high
        assert row["self_play_points"] > 0
        assert sum(statistics.milestone_counts.values()) == statistics.ordinary_games
        own = {match.points.a.mean for match in receipt.matches}
        assert len(own) == 1, "the candidate's games differ between matches on the same seeds"


def test_a_gate_tells_how_many_points_the_candidate_is_ahead(folder):
    played = read_receipts(folder)[1].promotion
    assert played.verdict in {"accept", "reject"}
    assert played.points_ahead.low <= played.points_ahead.mean <= played.points_ahead.high
    assert "points" in str(played)


def test_final_matches_are_with_and_without_search(folder):
    assert [match.name for match in final_matches(folder)] == [
        "expectimax:1-0", "expectimax:1-8", "earlier-8",
    ]
    for match in read_final_matches(folder):
        assert match.points.a.games == 2
        assert "points" in match_line(match)


def test_results_have_a_column_for_each_figure(folder):
    rows = result_rows(folder, read_receipts(folder))
    columns = results_csv(folder, rows).splitlines()[0].split(",")
    assert all(sorted(row) == sorted(columns) for row in rows)
    assert {"points", "points_low", "self_play_points", "reached_2048", "ended_no_moves"} <= set(
        columns
    )
    assert "ended_checkmate" not in columns
    assert "draw_rate" not in columns
    assert results_csv(folder, rows).count("\n") == 3
    json.dumps(rows, allow_nan=False)
    assert "points" in iteration_line(rows[0])
    for place in ("status", "learning", "strength"):
        shown = iteration_columns(folder.config, place)
        assert "points" in shown
        assert table_of("t", rows, shown).row_count == 2
    assert matches_table("t", read_final_matches(folder)).row_count == 3


def test_every_game_and_match_passes_the_audit(folder):
    found = verify_campaign(folder)
    assert found.found == []
    assert found.num_match_games > 0


def test_players_are_rated_by_the_seeds_they_won(folder):
    rated = rate_campaign(folder)
    assert {"random", "expectimax:1"} <= set(rated.ratings.players)
    assert rated.ratings.of("expectimax:1").score > 0.5


def test_nobody_wins_a_recorded_game(folder):
    for shard in sorted((folder.path / "games").glob("*/*")):
        records, _ = read_shard(shard)
        assert not records.outcomes_white.any()
        assert not records.cut_values_white.any()


def test_falling_points_raise_an_alarm():
    falling = [{"points": value} for value in (900, 1000, 1100, 700, 600, 500)]
    assert [alarm.name for alarm in find_alarms(falling)] == ["points falling"]
    assert not find_alarms(falling[:3])


@pytest.mark.parametrize(("change", "named"), [
    ("self_play.practice_share_first=0.1", "self_play.practice_share_first"),
    ("self_play.mismatch_share_last=0.1", "self_play.mismatch_share_last"),
    ("evaluation.ladder_test=true", "evaluation.ladder_test"),
    ('evaluation.openings="book"', "random"),
    ('evaluation.opponents=["minimax:2"]', "2048"),
    ('evaluation.opponents=["stockfish@10"]', "chess"),
    ('supervised.games="somewhere"', "supervised.games"),
])
def test_settings_that_need_two_players_are_refused_by_name(change, named):
    with pytest.raises(ConfigError, match=named):
        load_config(settings=[*MICRO_2048, change])


def test_a_network_of_another_game_is_refused(folder):
    with pytest.raises(UsageError, match="2048"):
        model_of_campaign(folder.path).load(get_game("chess"))
