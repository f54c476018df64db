"""Is a campaign whole? Whatever is changed in a stored one is found, and named."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from signed_files import edit
from stored_shards import damage as damage_file

from chess_snn.campaign import CampaignFolder, campaign_lock, read_receipt, write_receipt
from chess_snn.campaign.integrity.rebuild import repair_campaign
from chess_snn.campaign.integrity.verify import Findings, verify_campaign
from chess_snn.campaign.store.notes import (
    Removed,
    note_removal,
    read_notes,
    write_note,
)
from chess_snn.campaign.strength.match_games import match_files
from chess_snn.data import read_shard, write_shard


@pytest.fixture
def folder(stored_campaign: CampaignFolder) -> CampaignFolder:
    return stored_campaign


def states(findings: Findings) -> dict[str, str]:
    return {finding.path: finding.state for finding in findings.found}


def fingerprint(folder: CampaignFolder) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.stat().st_ino) for path in folder.path.rglob("*")
    }


def test_a_whole_campaign_is_whole_and_left_as_it_is(folder: CampaignFolder) -> None:
    # A half-written file is not looked at.
    (folder.path / "games" / "iter-000001" / ".tmp-shard-0002@here-1-00000000").mkdir()
    (folder.checkpoint(0).parent / ".tmp-gen-000003@here-1-00000000").mkdir()
    before, told = fingerprint(folder), []
    findings = verify_campaign(folder, on_progress=lambda done, total: told.append((done, total)))
    assert findings.is_whole
    assert findings.found == []
    assert told == [(done, 7) for done in range(1, 8)], "four shards and three checkpoints"
    games = [read_shard(folder.shard(i, s))[0] for i in (0, 1) for s in (0, 1)]
    assert findings.num_games == sum(records.num_games for records in games)
    assert findings.num_positions == sum(records.num_positions for records in games)
    assert fingerprint(folder) == before


@pytest.mark.slow
def test_many_shards_are_looked_at_by_several_processes(folder: CampaignFolder) -> None:
    """Shards of an iteration that has no receipt; one of them is damaged."""
    records, manifest = read_shard(folder.shard(0, 0))
    for number in range(300):
        if number == 0:
            write_shard(folder.shard(2, 0), records, dict(manifest.meta))
        else:
            shutil.copy(folder.shard(2, 0), folder.shard(2, number))
    damage_file(folder.shard(2, 150))
    alone, together = (verify_campaign(folder, num_workers=n) for n in (1, 2))
    for findings in (alone, together):
        assert states(findings) == {"games/iter-000002/shard-0150": "damaged"}
        assert findings.checked["shard"] == 304
        assert findings.num_games == 12 + 299 * 3


@pytest.mark.parametrize(("damage", "expected"), [
    (lambda f: f.shard(0, 1).unlink(), {"games/iter-000000/shard-0001": "lost"}),
    (lambda f: shutil.rmtree(f.checkpoint(1)), {"checkpoints/gen-000001": "lost"}),
    (lambda f: shutil.rmtree(f.checkpoint(0)), {"checkpoints/gen-000000": "lost"}),
    (lambda f: f.receipt(0).unlink(), {"receipts/iter-000000.json": "lost"}),
    (lambda f: f.receipt(1).write_text("{"), {"receipts/iter-000001.json": "damaged"}),
    (lambda f: f.plan(1).write_text("{}"), {"plans/iter-000001.json": "unknown version"}),
    (lambda f: f.plan(1).unlink(), {"plans/iter-000001.json": "lost"}),
    (lambda f: edit(f.plan(1), elapsed_s=11.0), {"plans/iter-000001.json": "differs"}),
    (lambda f: f.match("gen-000001", "random").unlink(),
     {"matches/gen-000001/random.json": "lost"}),
    (lambda f: f.match("gen-000001", "conversion").write_text("["),
     {"matches/gen-000001/conversion.json": "damaged"}),
    (lambda f: edit(f.match("final", "random-0"), wins=2, losses=0, draws=0, truncated=0,
                    score=1.0),
     {"matches/final/random-0.json": "damaged"}),
], ids=[
    "shard lost", "checkpoint lost", "first lost", "receipt lost", "receipt damaged",
    "plan of no version", "plan lost", "plan differs", "match lost", "conversion damaged",
    "match figures",
])
def test_what_is_damaged_is_named(folder: CampaignFolder, damage, expected) -> None:
    damage(folder)
    findings = verify_campaign(folder)
    assert not findings.is_whole
    assert states(findings) == expected


def test_a_receipt_is_compared_with_what_it_names(folder: CampaignFolder) -> None:
    body = json.loads(folder.receipt(1).read_text())
    shards, training = body["shards"], body["training"]
    shards[0]["statistics"]["positions"] += 1
    shards[1]["statistics"]["white_wins"] += 1
    training["weights_digest"] = "0" * 64
    body["matches"][0]["score"] = 0.123
    edit(folder.receipt(1), shards=shards, training=training, matches=body["matches"])
    findings = verify_campaign(folder)
    assert states(findings) == {
        "games/iter-000001/shard-0000": "differs", "games/iter-000001/shard-0001": "differs",
        "checkpoints/gen-000002": "differs",
        f"matches/gen-000002/{body['matches'][0]['name']}.json": "differs",
    }
    text = {finding.path: finding.text for finding in findings.found}
    assert "white_wins" in text["games/iter-000001/shard-0001"]
    assert "weights_digest" in text["checkpoints/gen-000002"]


def test_all_that_a_receipt_says_of_matches_is_compared_bug(folder: CampaignFolder) -> None:
    """Beside those of its evaluation: the gating match, won positions and the ladder test."""
    receipt = read_receipt(folder, 1)
    promotion = receipt.promotion
    assert promotion is not None
    gating_match, conversion, ladder_test = (
        folder.match("gen-000002", name)
        for name in (f"champion-{promotion.champion:06d}", "conversion", "climb")
    )
    edit(conversion, won=2)
    edit(ladder_test, num_games=6)
    lost_one = replace(promotion, losses=promotion.losses + 1)
    write_receipt(folder, replace(receipt, promotion=lost_one))
    findings = verify_campaign(folder)
    names = [
        path.relative_to(folder.path).as_posix() for path in (gating_match, conversion, ladder_test)
    ]
    assert states(findings) == dict.fromkeys(names, "differs")
    text = {finding.path: finding.text for finding in findings.found}
    assert [text[name].partition(" ")[0] for name in names] == ["losses", "won", "num_games"]

    for path in (gating_match, conversion, ladder_test):
        path.unlink()
    assert states(verify_campaign(folder)) == dict.fromkeys(names, "lost")


def test_a_note_that_cannot_be_read_hides_no_other_bug(folder: CampaignFolder) -> None:
    note_removal(folder, [Removed("games/iter-000001", 1000, None)])
    shutil.rmtree(folder.shard(1, 0).parent)
    note = write_note(folder, folder.shard(0, 1), "quarantined", "other bytes")
    note.write_text("{")
    folder.shard(0, 1).unlink()
    findings, notes = verify_campaign(folder), set(folder.quarantine.iterdir())
    assert states(findings) == {
        folder.name_of(note): "damaged", "games/iter-000001": "removed",
        "games/iter-000000/shard-0001": "lost",
    }
    repairs = {repair.path: repair for repair in repair_campaign(folder, findings)}
    assert not any(repair.is_repaired for repair in repairs.values())
    assert set(folder.quarantine.iterdir()) == notes, "nothing is noted that may be noted already"


def test_a_note_of_what_no_campaign_has_is_told_bug(folder: CampaignFolder) -> None:
    """Notes have no digest: one flipped bit, and it speaks of another place."""
    note = write_note(folder, folder.shard(1, 1), "quarantined", "other bytes")
    note.write_text(note.read_text().replace("games/", "gamer/"))
    findings = verify_campaign(folder)
    assert states(findings)["gamer/iter-000001/shard-0001"] == "quarantined"


def test_clocks_of_a_shard_that_was_played_again_are_its_own(folder: CampaignFolder) -> None:
    receipt = read_receipt(folder, 0)
    first, *others = receipt.shards
    later = replace(first.statistics, seconds=first.statistics.seconds + 5.0)
    write_receipt(folder, replace(receipt, shards=[replace(first, statistics=later), *others]))
    assert verify_campaign(folder).found == []


def test_games_of_a_shard_that_cannot_have_been_played_are_found(folder: CampaignFolder) -> None:
    """With a manifest that agrees: digests alone do not tell."""
    records, manifest = read_shard(folder.shard(1, 0))
    actions = records.actions.copy()
    actions[0] = 0 if actions[0] else 1
    folder.shard(1, 0).unlink()
    changed = records.__class__(**{
        name: getattr(records, name) for name in records.__dataclass_fields__
    } | {"actions": actions})
    write_shard(folder.shard(1, 0), changed, dict(manifest.meta))
    (finding,) = verify_campaign(folder).damage
    assert finding.path == "games/iter-000001/shard-0000"
    assert "game 0: " in finding.text


def test_an_illegal_move_of_a_match_is_found(folder: CampaignFolder) -> None:
    path = max(match_files(folder), key=lambda file: json.loads(file.read_text())["mean_plies"])
    body = json.loads(path.read_text())
    games = body["per_game"]
    number = int(np.argmax(games["plies"]))
    assert games["plies"][number] > 0
    moves = bytearray(games["moves"][number].encode())
    moves[:2] = b"AA" if moves[:2] != b"AA" else b"//"
    games["moves"][number] = moves.decode()
    edit(path, per_game=games)
    (finding,) = verify_campaign(folder).damage
    assert finding.path == path.relative_to(folder.path).as_posix()
    assert f"game {number}" in finding.text


def test_what_was_removed_on_purpose_is_accounted_for(folder: CampaignFolder) -> None:
    note_removal(folder, [
        Removed("games/iter-000001", 1000, None),
        Removed("checkpoints/gen-000001", 1000, "2026-01-01T00:00:00+00:00"),
    ])
    shutil.rmtree(folder.shard(1, 0).parent)
    shutil.rmtree(folder.checkpoint(1))
    findings = verify_campaign(folder)
    assert findings.is_whole
    assert states(findings) == {
        "games/iter-000001": "removed", "checkpoints/gen-000001": "removed",
    }


def test_repair_sets_damage_aside_and_the_rest_is_whole(folder: CampaignFolder) -> None:
    folder.shard(0, 0).write_bytes(b"")
    (folder.checkpoint(2) / "trainer.json").write_bytes(b"")
    folder.match("final", "random-0").write_text("{")
    folder.shard(1, 1).unlink()
    with campaign_lock(folder):
        repairs = repair_campaign(folder, verify_campaign(folder))
    assert all(repair.is_repaired for repair in repairs)
    assert len(repairs) == 4
    for name in (folder.shard(0, 0), folder.checkpoint(2), folder.match("final", "random-0")):
        assert not name.exists()
    notes = {note.path: note for note in read_notes(folder)}
    assert "shard-0000" in notes["games/iter-000000/shard-0000"].why

    findings = verify_campaign(folder)
    assert findings.is_whole
    assert set(states(findings).values()) == {"quarantined"}
    assert len(findings.found) == 4


@pytest.mark.parametrize("damage", [lambda path: path.write_text(""), Path.unlink])
def test_a_plan_is_restored_from_its_receipt(folder: CampaignFolder, damage) -> None:
    plan = read_receipt(folder, 0).plan
    damage(folder.plan(0))
    assert len(repair_campaign(folder, verify_campaign(folder))) == 1
    assert json.loads(folder.plan(0).read_text())["progress_last"] == plan.progress_last
    assert verify_campaign(folder).found == []


@pytest.mark.parametrize("damage", [lambda path: path.write_text("{"), Path.unlink])
def test_what_repair_cannot_mend_is_left_and_told(folder: CampaignFolder, damage) -> None:
    """A receipt whose games are gone, and one that does not fit what it names."""
    note_removal(folder, [Removed("games/iter-000000", 1000, None)])
    shutil.rmtree(folder.shard(0, 0).parent)
    damage(folder.receipt(0))
    body = json.loads(folder.receipt(1).read_text())
    body["training"]["weights_digest"] = "0" * 64
    edit(folder.receipt(1), training=body["training"])
    notes = read_notes(folder)
    repairs = repair_campaign(folder, verify_campaign(folder))
    assert {repair.path: repair.is_repaired for repair in repairs} == {
        "receipts/iter-000000.json": False, "checkpoints/gen-000002": False,
    }
    assert read_notes(folder) == notes
    assert not verify_campaign(folder).is_whole
