"""Whichever bit of a small file is flipped: it is refused, and never read as something else."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stored_files import copy_campaign

from chess_snn.campaign import CampaignFolder, read_receipt
from chess_snn.campaign.integrity.rebuild import repair_campaign
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.store.plans import read_plan
from chess_snn.campaign.strength.champions import read_hand_promotions
from chess_snn.campaign.strength.gating_match import gating_state
from chess_snn.campaign.strength.match_games import read_match
from chess_snn.campaign.strength.match_schedule import ScheduledMatch
from chess_snn.campaign.strength.reports import CONVERSION_REPORTS
from chess_snn.data import check_shard, read_manifest
from chess_snn.data.manifest import MANIFEST_NAME
from chess_snn.errors import CorruptDataError
from chess_snn.games import get_game

pytestmark = pytest.mark.fault(10)

SLOW = [pytest.mark.slow, pytest.mark.timeout(1800)]
SPEC = get_game("chess").spec
Reader = Callable[[CampaignFolder], object]

SMALL_FILES: dict[str, Reader] = {
    "plans/iter-000000.json": lambda folder: read_plan(folder, 0),
    "receipts/iter-000001.json": lambda folder: read_receipt(folder, 1),
    "promotions/by-hand-0000.json": read_hand_promotions,
    "matches/gen-000001/random.json":
        lambda folder: read_match(SPEC, folder.match("gen-000001", "random")),
    "matches/gen-000001/conversion.json":
        lambda folder: CONVERSION_REPORTS.read(folder.match("gen-000001", "conversion")),
    "games/iter-000000/shard-0000": lambda folder: check_shard(folder.shard(0, 0)),
    f"checkpoints/gen-000001/{MANIFEST_NAME}":
        lambda folder: read_manifest(folder.checkpoint(1)),
}
"""Readers of files, by the path in a campaign."""


@pytest.fixture
def stored(tmp_path: Path) -> CampaignFolder:
    return copy_campaign(tmp_path)


def flips(content: bytes, step: int) -> Iterator[bytes]:
    """``content`` with one bit flipped, each ``step``-th in turn."""
    for place in range(0, 8 * len(content), step):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        yield bytes(flipped)


@pytest.mark.parametrize("step", [211, pytest.param(1, marks=SLOW)])
@pytest.mark.parametrize("name", SMALL_FILES)
def test_every_flipped_bit_is_found(stored: CampaignFolder, name: str, step: int) -> None:
    path, read = stored.path / name, SMALL_FILES[name]
    content = path.read_bytes()
    read(stored)
    unnoticed = []
    for number, flipped in enumerate(flips(content, step)):
        path.write_bytes(flipped)
        try:
            read(stored)
        except CorruptDataError:
            continue
        unnoticed.append(number)
    assert unnoticed == []
    path.write_bytes(content)
    read(stored)


def swap(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert content.count(old) >= 1
    path.write_bytes(content.replace(old, new, 1))


def test_a_plan_with_another_figure_is_restored_from_its_receipt(stored: CampaignFolder) -> None:
    path, sound = stored.plan(1), read_plan(stored, 1)
    swap(path, b'"progress_first": 1.0', b'"progress_first": 0.9')
    with pytest.raises(CorruptDataError):
        read_plan(stored, 1)
    findings = verify_campaign(stored)
    assert [finding.path for finding in findings.damage] == ["plans/iter-000001.json"]
    (repair,) = repair_campaign(stored, findings)
    assert repair.is_repaired, repair.text
    assert read_plan(stored, 1) == sound
    assert verify_campaign(stored).damage == []


def test_a_part_of_a_match_with_another_result_decides_nothing(stored: CampaignFolder) -> None:
    match = ScheduledMatch(
        "gen-000002", "champion-000000", generation=2, opponent=0, simulations=2, num_openings=2
    )
    part = stored.match_part(match.event, match.name, 0)
    part.write_bytes(stored.match("gen-000001", "random").read_bytes())
    gating_state(stored, match)
    content = part.read_bytes()
    assert b"ply_cap" in content
    swap(part, b"0.5", b"0.0")
    with pytest.raises(CorruptDataError):
        gating_state(stored, match)
    findings = verify_campaign(stored)
    assert [finding.path for finding in findings.damage] == [stored.name_of(part)]
    (repair,) = repair_campaign(stored, findings)
    assert repair.is_repaired
    assert not part.exists()
