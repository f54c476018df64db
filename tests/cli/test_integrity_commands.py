"""``chess-snn verify`` and ``chess-snn gc``: tables, JSON, exit codes."""

import json
import shutil

from chess_snn.campaign import campaign_lock
from chess_snn.campaign.store.notes import Removed, note_removal


def test_a_whole_campaign_is_said_to_be_whole(chess_snn, folder):
    done = chess_snn("verify", "campaign")
    assert done.returncode == 0

    body = json.loads(chess_snn("verify", "campaign", "--json").stdout)
    assert body["is_whole"]
    assert body["checked"]["shard"] == 4
    assert body["findings"] == body["repairs"] == []


def test_damage_is_named_repaired_and_the_exit_code_is_1(chess_snn, folder):
    folder.shard(0, 1).write_bytes(b"")
    (folder.checkpoint(1) / "trainer.json").unlink()
    done = chess_snn("verify", "campaign", "--json")
    assert done.returncode == 1
    findings = json.loads(done.stdout)["findings"]
    assert [(f["kind"], f["state"], f["is_damage"]) for f in findings] == [
        ("shard", "damaged", True), ("checkpoint", "damaged", True),
    ]
    done = chess_snn("verify", "campaign", "--repair")
    assert done.returncode == 1
    assert not folder.shard(0, 1).exists()
    assert chess_snn("verify", "campaign").returncode == 0
    status = chess_snn("campaign", "status", "campaign").stdout
    assert "Corrupt and quarantined: 3 artifacts" in status


def test_repair_keeps_away_from_a_campaign_that_runs(chess_snn, folder):
    folder.shard(0, 1).write_bytes(b"")
    with campaign_lock(folder):
        assert chess_snn("verify", "campaign").returncode == 1
        done = chess_snn("verify", "campaign", "--repair")
    assert done.returncode == 2
    assert "[campaign.locked]" in done.stderr
    assert folder.shard(0, 1).exists()


def test_gc_shows_first_and_removes_when_told(chess_snn, folder):
    before = sorted(folder.path.rglob("*"))
    done = chess_snn("gc", "campaign")
    assert done.returncode == 0
    assert sorted(folder.path.rglob("*")) == before

    body = json.loads(chess_snn("gc", "campaign", "--json").stdout)
    assert not body["is_removed"]
    assert {entry["path"] for entry in body["disposable"]} >= {
        "games/iter-000000", "games/iter-000001",
    }
    assert body["bytes"] == sum(entry["bytes"] for entry in body["disposable"])

    kept = [word for kind in ("games", "checkpoints", "quarantine") for word in ("--keep", kind)]
    assert json.loads(chess_snn("gc", "campaign", "--json", *kept).stdout)["disposable"] == []
    with campaign_lock(folder):
        assert chess_snn("gc", "campaign", "--yes").returncode == 2
    done = chess_snn("gc", "campaign", "--yes")
    assert done.returncode == 0
    assert not folder.shard(0, 0).exists()


def test_what_reads_a_campaign_copes_with_what_was_removed(chess_snn, folder):
    before = chess_snn("campaign", "status", "campaign", "--csv").stdout
    chess_snn("gc", "campaign", "--yes")
    notice = "Removed by `chess-snn gc`: the games of 2 iterations"
    status = chess_snn("campaign", "status", "campaign")
    assert status.returncode == 0
    assert notice in status.stdout
    results = chess_snn("campaign", "status", "campaign", "--csv")
    assert results.stdout == before
    assert notice in results.stderr
    for command in ("campaign status campaign --ratings", "models list campaign"):
        assert chess_snn(*command.split()).returncode == 0
    games = chess_snn("games", "stats", "campaign")
    assert games.returncode == 2
    assert "chess-snn gc" in games.stderr
    assert chess_snn("verify", "campaign").returncode == 0


def test_a_network_that_was_removed_is_refused_by_name_bug(refused, folder):
    note_removal(folder, [Removed("checkpoints/gen-000001", 1000, None)])
    shutil.rmtree(folder.checkpoint(1))
    for command in (["models", "show", "campaign@1"], ["play", "--model", "campaign@1"],
                    ["models", "export", "campaign@1", "--out", "exported"]):
        assert refused(*command).endswith("[campaign.removed]")
    assert refused("models", "show", "campaign@7").endswith("[campaign]")
