"""Bad input is one line on standard error and exit code 2, and changes nothing on the disk."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from chess_snn.campaign import CampaignFolder, campaign_lock, load_config

START = ("campaign", "start", "--dir", "new")


def fingerprint(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(root)): (
            path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b""
        )
        for path in sorted(root.rglob("*"))
    }


@pytest.fixture
def places(tmp_path):
    """A folder with a campaign in it."""
    CampaignFolder.create(tmp_path / "made", load_config("smoke"))
    return tmp_path


def only_line(done) -> str:
    """All that a refused command has said."""
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    return line


def test_a_campaign_is_read_where_its_engines_are_not_installed_bug(chess_snn, places):
    config = load_config("smoke", settings=['evaluation.opponents=["uci:/nowhere/fish@9~25"]'])
    CampaignFolder.create(places / "elsewhere", config)
    done = chess_snn("campaign", "status", "elsewhere")
    assert done.returncode == 0, done.stderr


def test_a_name_that_is_too_long_is_refused(refused, places):
    name = 300 * "x"
    assert name in refused("campaign", "start", "--dir", name)


@pytest.mark.parametrize("command", ["status", "resume"])
@pytest.mark.parametrize(("damage", "reason"), [
    (lambda text: text[: text.index("_per_iteration")], "campaign.toml"),
    (lambda text: text.replace("[net]", "[nett]"), "nett"),
    (lambda _: "", "identity.id"),
])
def test_a_damaged_configuration_is_named(refused, places, command, damage, reason):
    file = places / "made" / "campaign.toml"
    text = file.read_text()
    file.write_text(damage(text))
    before = fingerprint(places)
    assert reason in refused("campaign", command, "made")
    assert fingerprint(places) == before


@pytest.mark.parametrize("text", ["", '{"schema": 9}'])
@pytest.mark.parametrize("command", [
    ("campaign", "status"), ("campaign", "resume"), ("watch", "--once"),
], ids=" ".join)
def test_a_damaged_receipt_is_named(refused, places, command, text):
    receipt = places / "made" / "receipts" / "iter-000000.json"
    receipt.parent.mkdir()
    receipt.write_text(text)
    before = fingerprint(places)
    assert "iter-000000.json" in refused(*command, "made")
    assert fingerprint(places) == before


@pytest.mark.fault(16)
@pytest.mark.orchestration
@pytest.mark.slow
def test_a_campaign_that_is_being_written_is_left_to_its_writer(chess_snn_process, places):
    pytest.importorskip("prefect")
    folder = CampaignFolder.open(places / "made")
    with campaign_lock(folder):
        before = fingerprint(places)
        done = chess_snn_process("campaign", "resume", "made")
        assert fingerprint(places) == before
    assert (done.returncode, str(os.getpid()) in done.stderr) == (2, True)


@pytest.mark.slow
def test_the_installed_command_shows_no_traceback(chess_snn_process, places):
    before = fingerprint(places)
    assert "'huge'" in only_line(chess_snn_process(*START, "--preset", "huge"))
    assert fingerprint(places) == before


@pytest.mark.fault(23)
@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_named(refused, places):
    closed = places / "closed"
    closed.mkdir(mode=0o500)
    try:
        assert "closed/new" in refused("campaign", "start", "--dir", "closed/new")
    finally:
        shutil.rmtree(closed)


@pytest.mark.fault(23)
def test_a_file_that_cannot_be_read_is_named_bug(refused, places):
    receipt = places / "made" / "receipts" / "iter-000000.json"
    receipt.mkdir(parents=True)
    assert str(receipt) in refused("campaign", "status", "made")


def test_a_given_server_that_is_away_is_named_before_there_is_a_campaign_bug(
    refused, places, monkeypatch
):
    pytest.importorskip("prefect")
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    before = fingerprint(places)
    assert "http://127.0.0.1:9/api" in refused(*START)
    assert fingerprint(places) == before
