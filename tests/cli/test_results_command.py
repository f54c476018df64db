"""Tables, JSON and CSV say what the receipts say."""

import csv
import io
import json

import numpy as np
import pytest
import small_campaigns as made
from made_games import made_match

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.viewing.results import result_columns
from chess_snn.data import with_digest
from chess_snn.evaluation.match_files import write_match

COLUMNS = (
    "iteration,generation,champion,progress,elapsed_s,games,positions,white_rate,draw_rate,"
    "black_rate,truncated_rate,plies_mean,games_per_s,positions_per_s,network_share,entropy_ratio,"
    "policy_loss,value_loss,holdout_value_loss_before,holdout_value_loss_after,policy_entropy,"
    "learning_rate,window_positions,score,elo,elo_low,elo_high,conversion_rate,promotion_verdict,"
    "promotion_score,promotion_llr,promotion_games,self_play_s,training_s,evaluation_s,evaluation_hidden_s,gating_match_s,"
    "iteration_s,device_utilisation,device_memory_gib,plies_min,plies_max,"
    "ended_checkmate,ended_stalemate,ended_fifty_moves,ended_threefold_repetition,"
    "ended_insufficient_material,ended_resigned,ended_ply_cap,total_loss,"
    "holdout_policy_loss_after,holdout_policy_accuracy_after,holdout_value_target_loss_after,"
    "holdout_brier_score_after,holdout_decided_accuracy_after,reference_policy_accuracy,"
    "reference_value_loss,spike_rate,ladder_elo,ladder_elo_low,"
    "ladder_elo_high,promotion_elo_ahead,score_random,score_random_low,"
    "score_random_high,score_minimax_2,score_minimax_2_low,score_minimax_2_high,score_earlier,"
    "score_earlier_low,score_earlier_high"
)
"""Scripts rely on these; new ones may come, none may go or change its name."""


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
        "plies_max": max(shard["plies_max"] for shard in shards),
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


def test_column_names_are_what_scripts_know(folder):
    assert ",".join(result_columns(folder.config)) == COLUMNS


def test_json_agrees_with_the_receipts(chess_snn, folder):
    done = chess_snn("results", folder.path, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    body = json.loads(done.stdout)
    assert (body["campaign"], body["id"]) == ("campaign", folder.campaign_id)
    assert body["final_matches"] == []
    assert [list(row) for row in body["iterations"]] == [COLUMNS.split(",")] * 3
    for iteration, row in enumerate(body["iterations"]):
        wanted = expected(folder, iteration)
        assert {name: row[name] for name in wanted} == pytest.approx(wanted)
    assert [row["score"] is None for row in body["iterations"]] == [True, False, True]


def test_csv_agrees_with_json(chess_snn, folder):
    rows = json.loads(chess_snn("results", folder.path, "--json").stdout)["iterations"]
    done = chess_snn("results", folder.path, "--csv")
    assert done.returncode == 0
    table = list(csv.DictReader(io.StringIO(done.stdout)))
    assert done.stdout.splitlines()[0] == COLUMNS
    assert [
        {name: None if cell == "" else float(cell) for name, cell in row.items()} for row in table
    ] == rows


def test_the_table_shows_every_iteration_and_the_generations_evaluated(
    chess_snn, folder, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "240")
    done = chess_snn("results", folder.path)
    assert done.returncode == 0
    learning, strength = done.stdout.split("score (95 % interval)")
    lines = [line.split() for line in learning.splitlines()]
    assert [line[0] for line in lines if line and line[0].isdigit()] == ["0", "1", "2"]
    assert "30/50/20" in lines[-3]
    assert "0.850 (0.750 to 0.950)" in strength
    assert "0.250 (0.150 to 0.350)" in strength
    (evaluated,) = [line for line in strength.splitlines() if line.split()[:1] == ["1"]]
    assert evaluated.endswith("0.750     gen 2 ")


@pytest.mark.parametrize(("last", "iterations"), [(1, [2]), (2, [1, 2]), (9, [0, 1, 2])])
def test_the_last_few(chess_snn, folder, last, iterations):
    done = chess_snn("results", folder.path, "--last", last, "--json")
    assert [row["iteration"] for row in json.loads(done.stdout)["iterations"]] == iterations


@pytest.mark.parametrize("form", [["--json"], ["--csv"], []])
def test_a_file_gets_what_standard_output_would(chess_snn, folder, tmp_path, form):
    printed = chess_snn("results", folder.path, *form).stdout
    done = chess_snn("results", folder.path, *form, "--out", "there.txt")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "there.txt").read_text() == printed


def test_a_campaign_without_finished_iterations_has_the_same_columns(chess_snn, tmp_path):
    folder = made.make_campaign(tmp_path / "new")
    assert chess_snn("results", folder.path, "--csv").stdout == COLUMNS + "\n"
    assert json.loads(chess_snn("results", folder.path, "--json").stdout)["iterations"] == []
    done = chess_snn("results", folder.path)
    assert (done.returncode, done.stdout) == (0, f"{folder.path}: no iteration is finished yet\n")


def test_forfeited_and_void_games_are_shown_where_there_are_any(chess_snn, folder):
    assert "void" not in chess_snn("results", folder.path).stdout
    receipt = folder.receipt(1)
    body = json.loads(receipt.read_text())
    body["matches"][1] |= {"forfeits_a": 0, "forfeits_b": 3, "voided": 2}
    sign(receipt, body)
    for command in (("results",), ("campaign", "status")):
        lines = chess_snn(*command, folder.path).stdout.splitlines()
        assert any("forfeits" in line for line in lines), command
        assert any("of both" in line and "void" in line for line in lines), command
        (row,) = [line.split() for line in lines if "minimax:2" in line and "0-3" in line]
        assert row[row.index("0-3") + 1] in ("2", "│"), command


@pytest.mark.parametrize(("elo", "shown"), [
    ((312.4, 250.0, 380.0), "312 (250 to 380)"), ((312.4, 250.0, None), "312 (250 to inf)"),
    ((None, 250.0, None), "above 250"), ((None, None, -20.0), "below -20"),
])
def test_elo_is_shown_with_its_interval(chess_snn, folder, elo, shown):
    receipt = folder.receipt(1)
    body = json.loads(receipt.read_text())
    body["rating"] = dict(zip(("elo", "elo_low", "elo_high"), elo, strict=True))
    sign(receipt, body)
    folder.receipt(2).unlink()  # a watch begins with the newest iteration
    for command in (("results",), ("campaign", "status"), ("watch", "--once")):
        assert shown in chess_snn(*command, folder.path).stdout, command


def test_players_are_rated_with_intervals(chess_snn, tmp_path):
    folder = CampaignFolder.create(tmp_path / "c", load_config("smoke"))
    scores = [1.0, 1.0, 0.5, 1.0, 0.0, 0.5, 1.0, 0.0] * 5
    match = made_match(np.reshape(scores, (-1, 2)), "gen-000004", "random")
    write_match(folder.match("gen-000004", "random"), match)
    assert "gen-000004" in chess_snn("ratings", "c").stdout
    body = json.loads(chess_snn("ratings", "c", "--json").stdout)
    rows = {row["player"]: row for row in body["players"]}
    assert rows["random"]["elo"] == 0
    rated = rows["gen-000004"]
    assert rated["elo_low"] < rated["elo"] < rated["elo_high"]


@pytest.mark.parametrize(("columns", "most"), [(None, 100), ("60", 60), ("150", 150)])
def test_tables_in_a_pipe_are_too_wide_to_read_bug(folder, chess_snn, monkeypatch, columns, most):
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    lines = chess_snn("results", folder.path).stdout.splitlines()
    assert max(map(len, lines)) <= most
    text = "\n".join(lines)
    for part in ("30/50/20", "entropy", "conversion", "0.850 (0.750 to 0.950)"):
        assert part in text
    assert "…" not in text
