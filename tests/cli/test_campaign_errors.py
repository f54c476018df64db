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
    """A campaign, a folder with something else in it, and bad configuration files."""
    CampaignFolder.create(tmp_path / "made", load_config("smoke"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    (tmp_path / "no.toml").write_text("batch_size = = 3")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "unknown.toml").write_text("[training]\nbatch_sise = 3\n")
    return tmp_path


def assert_refused(done, reason: str) -> None:
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert reason in line
    assert done.stdout == ""


@pytest.mark.parametrize(("arguments", "reason"), [
    ((*START, "--preset", "huge"), "unknown preset 'huge'; known: cpu, cpu-2048"),
    ((*START, "--set", "training.batch_sise=3"), "did you mean training.batch_size?"),
    ((*START, "--set", "trainin.batch_size=3"), "did you mean training?"),
    ((*START, "--set", "training.batch_size=-3"), "training.batch_size must be >= 2, got -3"),
    ((*START, "--set", "training.batch_size=many"), "training.batch_size = 'many'"),
    ((*START, "--set", "training.learning_rate=nan"), "got nan"),
    ((*START, "--set", "campaign.seed=2020-01-01"), "campaign.seed = '2020-01-01'"),
    ((*START, "--set", "training=3"), "training is a group of settings"),
    ((*START, "--set", "training.batch_size"), "--set takes name=value"),
    ((*START, "--set", 'evaluation.opponents=["bob"]'), "unknown player 'bob'; known: random"),
    ((*START, "--set", 'evaluation.opponents=["minimax:99"]'), "minimax depth must be >= 1"),
    ((*START, "--set", 'evaluation.opponents=["uci:/nowhere/fish@9"]'),
     "there is no engine at /nowhere/fish"),
    ((*START, "--set", "campaign.game=go"), "unknown game 'go'; known: chess"),
    ((*START, "--set", "net.size=giant"), "net.size must be one of tiny"),
    ((*START, "--config", "missing.toml"), "cannot read missing.toml: No such file"),
    ((*START, "--config", "full"), "cannot read full: Is a directory"),
    ((*START, "--config", "no.toml"), "no.toml is not TOML"),
    ((*START, "--config", "binary.toml"), "not text in UTF-8"),
    ((*START, "--config", "unknown.toml"), "did you mean training.batch_size?"),
    (("campaign", "start", "--dir", "made"), "holds another campaign"),
    (("campaign", "start", "--dir", "full"), "is not empty"),
    (("campaign", "start", "--dir", "full/thesis.tex/x"), "Not a directory"),
    (("campaign", "start", "--dir", "x" * 300), "File name too long"),
    (("campaign", "resume", "full"), "holds no campaign"),
    (("campaign", "resume", "nowhere"), "holds no campaign"),
    (("campaign", "status", "full"), "holds no campaign"),
    (("ui", "full"), "holds no campaign"),
])
def test_bad_input_is_refused_and_changes_nothing(chess_snn, places, arguments, reason):
    before = fingerprint(places)
    assert_refused(chess_snn(*arguments), reason)
    assert fingerprint(places) == before


def test_a_campaign_is_read_where_its_engines_are_not_installed_bug(chess_snn, places):
    config = load_config("smoke", settings=['evaluation.opponents=["uci:/nowhere/fish@9~25"]'])
    CampaignFolder.create(places / "elsewhere", config)
    done = chess_snn("campaign", "status", "elsewhere")
    assert done.returncode == 0, done.stderr
    assert "0 iterations are finished" in done.stdout


@pytest.mark.parametrize("command", ["status", "resume"])
@pytest.mark.parametrize(("damage", "reason"), [
    (lambda text: text[: text.index("_per_iteration")], "campaign.toml is not TOML"),
    (lambda text: text.replace("[net]", "[nett]"), "unknown setting nett"),
    (lambda text: text.replace("[identity]", "[unity]"), "identity.id"),
    (lambda _: "", "identity.id"),
    (lambda _: "= 3", "campaign.toml is not TOML"),
])
def test_a_damaged_configuration_is_named(chess_snn, places, command, damage, reason):
    file = places / "made" / "campaign.toml"
    text = file.read_text()
    file.write_text(damage(text))
    before = fingerprint(places)
    assert_refused(chess_snn("campaign", command, "made"), reason)
    assert fingerprint(places) == before


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1}', '{"schema": 9}'])
@pytest.mark.parametrize("command", ["status", "resume"])
def test_a_damaged_receipt_is_named(chess_snn, places, command, text):
    receipt = places / "made" / "receipts" / "iter-000000.json"
    receipt.parent.mkdir()
    receipt.write_text(text)
    before = fingerprint(places)
    assert_refused(chess_snn("campaign", command, "made"), "iter-000000.json")
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
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert f"is being written by process {os.getpid()} on " in line


def test_the_installed_command_shows_no_traceback(chess_snn_process, places):
    before = fingerprint(places)
    assert_refused(chess_snn_process(*START, "--preset", "huge"), "unknown preset 'huge'")
    assert fingerprint(places) == before


@pytest.mark.fault(23)
@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_named(chess_snn, places):
    closed = places / "closed"
    closed.mkdir(mode=0o500)
    try:
        assert_refused(chess_snn("campaign", "start", "--dir", "closed/new"), "Permission denied")
    finally:
        shutil.rmtree(closed)


@pytest.mark.fault(23)
def test_a_file_that_cannot_be_read_is_named_bug(chess_snn, places):
    receipt = places / "made" / "receipts" / "iter-000000.json"
    receipt.mkdir(parents=True)
    assert_refused(chess_snn("campaign", "status", "made"), f"{receipt} is not a file")


def test_a_given_server_that_is_away_is_named_before_there_is_a_campaign_bug(
    chess_snn, places, monkeypatch
):
    pytest.importorskip("prefect")
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    before = fingerprint(places)
    assert_refused(chess_snn(*START), "http://127.0.0.1:9/api")
    assert fingerprint(places) == before
