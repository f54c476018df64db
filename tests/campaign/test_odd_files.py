"""Folders, pipes, links, odd names and damaged notes: told, and nothing lost."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from small_campaigns import finish, idle_rebuilder, make_campaign
from stored_files import copy_campaign

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.integrity.rebuild import MOST_READINGS, repair_campaign
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.store.notes import (
    Removed,
    note_removal,
    read_notes,
    read_removals,
    write_note,
)
from chess_snn.campaign.store.plans import Extension, read_plan, write_plan
from chess_snn.campaign.store.typed_json import from_json
from chess_snn.data import read_json
from chess_snn.errors import BeyondRepairError, CorruptDataError, DamagedFolderError
from chess_snn.games import get_game
from chess_snn.training import load_trainer

ODD_THINGS: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to nowhere": lambda path: path.symlink_to("/nowhere/x"),
    "a link to zeros": lambda path: path.symlink_to("/dev/zero"),
}
SMALL_FILES = (
    "receipts/iter-000001.json", "plans/iter-000001.json", "matches/gen-000001/random.json",
    "matches/gen-000001/conversion.json",
)


@pytest.fixture
def stored(tmp_path: Path) -> CampaignFolder:
    return copy_campaign(tmp_path)


@pytest.mark.fault(10)
@pytest.mark.parametrize(
    ("name", "make"), [*zip((*SMALL_FILES, SMALL_FILES[0]), ODD_THINGS.values(), strict=True)],
    ids=ODD_THINGS,
)
def test_what_is_no_file_is_damage_and_set_aside_bug(
    stored: CampaignFolder, name: str, make: Callable[[Path], object]
) -> None:
    path = stored.path / name
    path.unlink()
    make(path)
    with pytest.raises(CorruptDataError, match=path.name):
        read_json(path)
    findings = verify_campaign(stored)
    assert [finding.path for finding in findings.damage] == [name]
    (repair,) = repair_campaign(stored, findings)
    assert repair.is_repaired, repair.text
    assert verify_campaign(stored).damage == []


@pytest.mark.fault(10, 11)
def test_what_is_no_manifest_is_damage_and_hides_no_other_bug(stored: CampaignFolder) -> None:
    shard = stored.shard(0, 0)
    shard.unlink()
    os.mkfifo(shard)
    weights = stored.checkpoint(1) / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    findings = verify_campaign(stored)
    assert {finding.path for finding in findings.damage} == {
        "games/iter-000000/shard-0000", "checkpoints/gen-000001",
    }


def test_a_campaign_whose_path_is_not_utf_8_is_whole_bug(stored: CampaignFolder) -> None:
    moved = os.fsdecode(os.fsencode(stored.path.parent) + b"/caf\xe9")
    shutil.move(stored.path, moved)
    folder = CampaignFolder.open(Path(moved))
    assert verify_campaign(folder).found == []
    assert load_trainer(folder.checkpoint(1), get_game("chess")).steps_done > 0


def test_receipts_that_are_gone_altogether_are_missed_bug(stored: CampaignFolder) -> None:
    more_plans(stored, 5)
    shutil.rmtree(stored.path / "receipts")
    findings = verify_campaign(stored)
    assert [(f.kind, f.path, f.state) for f in findings.damage] == [
        ("receipt", f"receipts/iter-00000{number}.json", "lost") for number in range(2)
    ]


def more_plans(folder: CampaignFolder, num_plans: int) -> None:
    """Pretend that so many iterations had begun."""
    for number in range(2, num_plans):
        write_plan(folder, replace(read_plan(folder, 1), iteration=number))


def test_a_stray_receipt_is_one_finding_bug(stored: CampaignFolder) -> None:
    shutil.copy(stored.receipt(1), stored.receipt(20261122))
    findings = verify_campaign(stored)
    assert [finding.path for finding in findings.damage] == ["receipts/iter-20261122.json"]


# Notes of what was set aside, and of what was removed: nothing makes a damaged one again.


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": VERSION}'])
def test_a_damaged_note_is_not_to_be_deleted_bug(new_folder, text):
    folder = new_folder("c")
    notes = {
        note_removal(folder, [Removed("games/iter-000000", 1000, None)]): read_removals,
        write_note(folder, folder.shard(0, 0), "quarantined", "other bytes"): read_notes,
    }
    for path, read in notes.items():
        version = json.loads(path.read_text())["schema"]
        path.write_text(text.replace("VERSION", str(version)))
        with pytest.raises(CorruptDataError, match=path.name):
            read(folder)


# Decisions on rebuilding come before anything is made.


@pytest.mark.fault(11)
def test_a_generation_whose_games_were_removed_is_not_trained_on_nothing_bug(
    tmp_path: Path,
) -> None:
    folder = make_campaign(tmp_path / "c")
    finish(folder, 0)
    note_removal(folder, [Removed("games/iter-000000", 1, None)])
    for path in (folder.shard(0, 0).parent, folder.checkpoint(1)):
        shutil.rmtree(path)
    with pytest.raises(BeyondRepairError, match="gen-000001"):
        idle_rebuilder(folder, []).rebuild(DamagedFolderError("it is gone", folder.checkpoint(1)))


@pytest.mark.fault(10)
def test_what_is_whole_here_and_read_otherwise_elsewhere_ends_bug(tmp_path: Path) -> None:
    folder = copy_campaign(tmp_path)
    told, readings = list[str](), 0

    def read() -> None:
        nonlocal readings
        readings += 1
        raise DamagedFolderError("other bytes on box-b", folder.shard(0, 1))

    with pytest.raises(BeyondRepairError, match=r"shard-0001 .*other bytes on box-b"):
        idle_rebuilder(folder, told).run(read)
    assert readings == MOST_READINGS + 1
    assert len(set(told)) == 1
    assert "other bytes on box-b" in told[0]


@pytest.mark.fault(10)
def test_many_who_met_what_was_rebuilt_since_just_try_again(tmp_path: Path) -> None:
    folder, told = copy_campaign(tmp_path), list[str]()
    rebuilder = idle_rebuilder(folder, told)
    for _ in range(2 * MOST_READINGS):
        rebuilder.rebuild(DamagedFolderError("other bytes", folder.shard(0, 1)))
    assert told == []


@pytest.mark.parametrize(("change", "fault"), [
    ({"surplus": 1}, "^surplus: unknown$"),
    ({"length": {"iterations": 3, "hours": 0.0, "surplus": 1}}, r"^length\.surplus: unknown$"),
    ({"length": {"hours": 0.0}}, r"^length\.iterations: "),
    ({"progress": 1}, None),  # a whole number is a number
    ({"progress": "1"}, "^progress: "),
])
def test_a_field_that_a_record_may_not_have_is_named(
    change: dict[str, object], fault: str | None
) -> None:
    body = {"length": {"iterations": 3, "hours": 0.0}, "progress": 0.5, "created": "now"} | change
    if fault is None:
        from_json(Extension, body)
        return
    with pytest.raises(ValueError, match=fault):
        from_json(Extension, body)
