"""Whatever a file of a campaign says, no path that follows from it leaves the folder it lies in.

Manifests themselves: tests/data/test_manifest.py (``..``, absolute paths, links).
"""

import json
import os
import re
from dataclasses import asdict
from pathlib import Path

import pytest
import small_campaigns

from chess_snn.campaign import CampaignFolder, campaign_lock, read_receipts
from chess_snn.campaign.store.folder import CONFIG_FILE
from chess_snn.campaign.store.plans import read_plan
from chess_snn.campaign.strength.champions import HandPromotion, champion_of, read_hand_promotions
from chess_snn.data import with_digest, write_json
from chess_snn.data.plain_files import open_in_place
from chess_snn.errors import CampaignError, ChessSnnError, CorruptDataError, UsageError
from chess_snn.pgn.folder import IMPORT_FILE, ImportFolder, ImportSource

OUTSIDE = ["../../outside", "/outside", "..", "a/../../../outside", "\0", "gen-1\n", ""]


@pytest.fixture
def campaign(tmp_path):
    folder = small_campaigns.make_campaign(tmp_path / "c")
    small_campaigns.finish(folder, 0)
    return folder


def edit(path: Path, *keys: str, value: object) -> None:
    body = json.loads(path.read_text())
    part = body
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    if body.pop("digest", None) is not None:
        body = with_digest(body)
    path.write_text(json.dumps(body))


@pytest.mark.parametrize("name", [
    "campaign.toml", "campaign.lock", "campaign.log", "report.html", "games", "checkpoints",
    "receipts", "quarantine", "anything", "games/iter-000000", "receipts/iter-000000.json",
    "services", "services/prefect.db", "services/prefect-home/deep/profiles.toml",
])
def test_a_campaign_with_a_link_is_not_opened(campaign, tmp_path, name):
    path = campaign.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.rename(tmp_path / "outside")
    path.symlink_to(tmp_path / "outside")
    with pytest.raises(UsageError, match=re.escape(f"{path} is a link")):
        CampaignFolder.open(campaign.path)


@pytest.mark.parametrize("name", [
    "campaign.lock", "campaign.log", "receipts/pipe", "services/live.json",
])
def test_a_campaign_with_a_pipe_is_not_opened_for_it_would_be_waited_for(campaign, name):
    (campaign.path / name).parent.mkdir(exist_ok=True)
    os.mkfifo(campaign.path / name)
    with pytest.raises(UsageError, match=name):
        CampaignFolder.open(campaign.path)


def test_the_folder_of_a_campaign_may_be_a_link_itself(campaign, tmp_path):
    (tmp_path / "here").symlink_to(campaign.path)
    assert CampaignFolder.open(tmp_path / "here").campaign_id == campaign.campaign_id


def test_an_import_with_a_link_is_not_opened(tmp_path):
    folder = ImportFolder.create(tmp_path / "i", ImportSource("a.pgn", "0123456789ab", 1000))
    (tmp_path / "outside").mkdir()
    folder.shard(0).parent.parent.symlink_to(tmp_path / "outside")
    with pytest.raises(UsageError, match="i/games"):
        ImportFolder.open(folder.path)


@pytest.mark.parametrize("make", [
    os.mkfifo, Path.mkdir, lambda path: path.symlink_to("elsewhere"),
    lambda path: path.hardlink_to(path.with_name("elsewhere")),
], ids=["a pipe", "a folder", "a link", "another name"])
def test_a_file_that_is_written_in_place_is_a_plain_file_with_one_name(campaign, make):
    """Also where something takes the place of the lock after the campaign was opened."""
    elsewhere = campaign.path / "elsewhere"
    elsewhere.write_text("not ours")
    make(campaign.lock_file)
    with pytest.raises(CampaignError, match=r"campaign\.lock"), \
            campaign_lock(campaign):
        pass
    for flags in (os.O_RDWR, os.O_WRONLY | os.O_APPEND):
        with pytest.raises(OSError, match=r"campaign\.lock"):
            open_in_place(campaign.lock_file, flags)
    assert elsewhere.read_text() == "not ours"


@pytest.mark.parametrize("keys", [
    ("champion",), ("training", "generation"), ("iteration",), ("plan", "iteration"),
])
def test_numbers_of_a_receipt_are_numbers(campaign, keys):
    for value in OUTSIDE:
        edit(campaign.receipt(0), *keys, value=value)
        with pytest.raises(CorruptDataError, match=r"iter-000000\.json"):
            read_receipts(campaign)


def test_numbers_of_a_plan_and_a_choice_are_numbers(campaign):
    choice = HandPromotion(1, 1, "promote", "me", "why", "2026-01-01T00:00:00+00:00")
    path = campaign.hand_promotion(0)
    write_json(path, with_digest({"schema": 2} | asdict(choice)))
    assert champion_of(campaign, read_receipts(campaign)) == 1
    for value in (*OUTSIDE, -1, 1.5, True):
        edit(path, "generation", value=value)
        with pytest.raises(CorruptDataError, match="by-hand-"):
            read_hand_promotions(campaign)
        edit(campaign.plan(0), "iteration", value=value)
        with pytest.raises(CorruptDataError, match=r"plans/iter-000000\.json"):
            read_plan(campaign, 0)


def test_the_identity_of_a_campaign_is_32_hexadecimal_digits(campaign):
    path = campaign.path / CONFIG_FILE
    text = path.read_text()
    for value in (*OUTSIDE, "x' OR '1'='1", "G" * 32, 5):
        path.write_text(text.replace(f'"{campaign.campaign_id}"', json.dumps(value)))
        with pytest.raises((CampaignError, ChessSnnError)):
            CampaignFolder.open(campaign.path)


def test_an_import_has_its_games_in_its_own_folder(tmp_path):
    folder = ImportFolder.create(tmp_path / "i", ImportSource("a.pgn", "0123456789ab", 1000))
    assert folder.shard(0).is_relative_to(tmp_path / "i")
    for value in (*OUTSIDE, "/../../../../outside", "0123456789AB", 7):
        edit(folder.path / IMPORT_FILE, "content", value=value)
        with pytest.raises(CorruptDataError, match=r"import\.content"):
            ImportFolder.open(folder.path)


@pytest.mark.parametrize("name", ["../../outside", "/outside", "..", "a/b", "uci:/bin/x@1", "\0"])
def test_the_name_of_a_player_is_no_path(campaign, name):
    for path in (campaign.match("gen-000001", name), campaign.match_part("final", name, 0)):
        assert path.resolve().parent.parent == (campaign.path / "matches").resolve()
