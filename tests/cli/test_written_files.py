"""Files that a user names are written anywhere but among a campaign's own."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from chess_snn.campaign.store.folder import CONFIG_FILE, campaign_around
from chess_snn.cli.options import check_writable
from chess_snn.errors import UsageError


def content(folder):
    return {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("command", "option"), [
    (("games", "export", "campaign", "--out", "campaign/campaign.toml"), "--out"),
    (("games", "show", "campaign", "--svg", "campaign/checkpoints/board.svg"), "--svg"),
    (("match", "random", "random", "--pgn", "campaign/games.pgn"), "--pgn"),
    (("match", "random", "random", "--json-file", "campaign/matches/new/x.json"), "--json-file"),
    (("rate", "campaign", "--out", "campaign/plans/new"), "--out"),
])
def test_no_file_of_a_campaign_is_written_over_bug(refused, folder, tmp_path, command, option):
    (tmp_path / "linked").symlink_to(folder.path / "receipts")
    before = content(folder)
    line = refused(*command)
    assert str(folder.path) in line
    assert option in line
    assert content(folder) == before


def test_a_game_at_a_terminal_is_not_saved_in_a_campaign_bug(chess_snn, folder, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("save campaign/game.pgn\nquit\n"))
    assert chess_snn("play", "--model", "greedy", "--ascii").returncode == 0
    assert not (folder.path / "game.pgn").exists()


def test_files_beside_a_campaign_are_written_over_as_ever(chess_snn, folder, tmp_path):
    (tmp_path / "games.pgn").write_text("older")
    inside_and_out = folder.path / "receipts" / ".." / ".." / "games.pgn"
    assert chess_snn("games", "export", "campaign", "--out", inside_and_out).returncode == 0
    assert (tmp_path / "games.pgn").read_text().startswith("[Event")


def test_a_configuration_for_campaigns_to_be_makes_no_campaign_of_its_folder(tmp_path):
    settings = tmp_path / CONFIG_FILE
    settings.write_text("[campaign]\niterations = 3\n")
    check_writable(tmp_path / "results.csv", "--out")
    settings.write_text("[identity\n")  # a campaign's that is damaged
    with pytest.raises(UsageError, match=r"results\.csv"):
        check_writable(tmp_path / "results.csv", "--out")


def test_links_in_a_ring_lie_in_no_campaign(tmp_path):
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    assert campaign_around(tmp_path / "ring" / "games.pgn") is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_answer_that_cannot_be_written_is_one_line_bug():
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "chess_snn", "--version"], stdout=full, stderr=subprocess.PIPE,
            text=True, timeout=120, check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1
