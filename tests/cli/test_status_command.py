"""Tables, JSON and CSV say what the receipts say."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
import small_campaigns as made
from made_games import made_match

from chess_snn.campaign import CampaignFolder, load_config, read_receipts
from chess_snn.campaign.viewing.lines import learnt_lines
from chess_snn.data import with_digest
from chess_snn.evaluation.match_files import write_match

COLUMNS = Path(__file__).parent.parent / "data" / "columns.txt"


def sign(receipt, body):
    """Write ``body`` as a campaign does, with its digest."""
    unsigned = {key: value for key, value in body.items() if key != "digest"}
    receipt.write_text(json.dumps(with_digest(unsigned)))


@pytest.fixture
def folder(tmp_path):
    folder = made.make_campaign(tmp_path / "campaign")
    for iteration in range(3):
        made.finish(folder, iteration)
    return folder


def expected(folder, iteration: int) -> dict[str, float]:
    """Some of a row, by hand from the receipt's bare JSON."""
    body = json.loads(folder.receipt(iteration).read_text())
    shards = [shard["statistics"] for shard in body["shards"]]
    games = sum(shard["games"] for shard in shards)
    positions = sum(shard["positions"] for shard in shards)
    matches = {match["name"]: match for match in body["matches"]}
    random = matches.get("random", {})
    return {
        "iteration": iteration,
        "champion": body["champion"],
        "progress": body["plan"]["progress_last"],
        "games": games,
        "positions": positions,
        "white_rate": sum(shard["white_wins"] for shard in shards) / games,
        "truncated_rate": sum(shard["terminations"]["ply_cap"] for shard in shards) / games,
        "plies_mean": positions / games,
        "ended_ply_cap": sum(shard["terminations"]["ply_cap"] for shard in shards) / games,
        "ended_stalemate": 0.0,
        "positions_per_s": positions / body["seconds"]["self_play"],
        "policy_loss": body["training"]["metrics"]["policy_loss"],
        "holdout_value_loss_after": body["training"]["metrics"]["holdout_value_loss_after"],
        "score": body["score"],
        "score_random": random.get("score"),
        "score_random_high": random.get("score_high"),
        "score_minimax_2_low": matches.get("minimax:2", {}).get("score_low"),
        "conversion_rate": body["conversion"] and body["conversion"]["rate"],
        "training_s": body["seconds"]["training"],
        "iteration_s": body["seconds"]["iteration"],
    }


def test_column_names_are_what_scripts_know(chess_snn, folder):
    """The names are in the golden file; new ones may come, none may go or change."""
    header = chess_snn("campaign", "status", folder.path, "--csv").stdout.splitlines()[0]
    assert header.split(",") == COLUMNS.read_text().split()


def test_json_agrees_with_the_receipts(chess_snn, folder):
    done = chess_snn("campaign", "status", folder.path, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    body = json.loads(done.stdout)
    assert (body["campaign"], body["id"]) == ("campaign", folder.campaign_id)
    assert body["final_matches"] == []
    assert [list(row) for row in body["rows"]] == [COLUMNS.read_text().split()] * 3
    for iteration, row in enumerate(body["rows"]):
        wanted = expected(folder, iteration)
        assert {name: row[name] for name in wanted} == pytest.approx(wanted)
    assert [row["score"] is None for row in body["rows"]] == [True, False, True]


def test_csv_agrees_with_json(chess_snn, folder):
    rows = json.loads(chess_snn("campaign", "status", folder.path, "--json").stdout)["rows"]
    done = chess_snn("campaign", "status", folder.path, "--csv")
    assert done.returncode == 0
    table = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [
        {name: None if cell == "" else float(cell) for name, cell in row.items()} for row in table
    ] == rows


def test_a_campaign_without_finished_iterations_has_the_same_columns(chess_snn, tmp_path):
    folder = made.make_campaign(tmp_path / "new")
    header = ",".join(COLUMNS.read_text().split())
    assert chess_snn("campaign", "status", folder.path, "--csv").stdout == header + "\n"
    assert json.loads(chess_snn("campaign", "status", folder.path, "--json").stdout)["rows"] == []
    assert chess_snn("campaign", "status", folder.path).returncode == 0


def test_forfeited_and_void_games_are_shown_where_there_are_any(chess_snn, folder):
    assert "forfeits" not in chess_snn("campaign", "status", folder.path).stdout
    receipt = folder.receipt(1)
    body = json.loads(receipt.read_text())
    body["matches"][1] |= {"forfeits_a": 0, "forfeits_b": 3, "voided": 2}
    sign(receipt, body)
    lines = chess_snn("campaign", "status", folder.path).stdout.splitlines()
    assert any("forfeits" in line for line in lines)
    (row,) = [line.split() for line in lines if "minimax:2" in line and "0-3" in line]
    assert row[row.index("0-3") + 1] in ("2", "│")


@pytest.mark.parametrize(("elo", "shown"), [
    ((312.4, 250.0, 380.0), "312 (250 to 380)"), ((312.4, 250.0, None), "312 (250 to inf)"),
    ((None, 250.0, None), "above 250"), ((None, None, -20.0), "below -20"),
])
def test_elo_is_shown_with_its_interval(chess_snn, folder, elo, shown):
    receipt = folder.receipt(1)
    body = json.loads(receipt.read_text())
    body["rating"] = dict(zip(("elo", "elo_low", "elo_high"), elo, strict=True)) | {
        "player": "gen-000002", "num_games": 60, "score": 0.7,
    }
    sign(receipt, body)
    folder.receipt(2).unlink()  # a watch begins with the newest iteration
    for command in (("campaign", "status"), ("watch", "--once")):
        assert shown in chess_snn(*command, folder.path).stdout, command


def test_players_are_rated_with_intervals(chess_snn, tmp_path):
    folder = CampaignFolder.create(tmp_path / "c", load_config("smoke"))
    scores = [1.0, 1.0, 0.5, 1.0, 0.0, 0.5, 1.0, 0.0] * 5
    match = made_match(np.reshape(scores, (-1, 2)), "gen-000004", "random")
    write_match(folder.match("gen-000004", "random"), match)
    assert "gen-000004" in chess_snn("campaign", "status", "c", "--ratings").stdout
    body = json.loads(chess_snn("campaign", "status", "c", "--ratings", "--json").stdout)
    rows = {row["player"]: row for row in body["players"]}
    assert rows["random"]["elo"] == 0
    rated = rows["gen-000004"]
    assert rated["elo_low"] < rated["elo"] < rated["elo_high"]


@pytest.mark.parametrize("options", [("--csv", "--json"), ("--csv", "--ratings")])
def test_formats_that_exclude_each_other(refused, folder, options):
    assert "--csv" in refused("campaign", "status", folder.path, *options)


def test_it_ends_with_what_was_learnt(folder, played_campaign, chess_snn):
    (line,), newest = learnt_lines(read_receipts(folder)), read_receipts(folder)[-1]
    assert all(f"{match.player_b} with {match.score:.2f}" in line for match in newest.matches)
    assert learnt_lines([]) == []
    (line,) = learnt_lines(read_receipts(played_campaign))
    assert line in " ".join(chess_snn("campaign", "status", played_campaign.path).stdout.split())
