"""One damaged file of a campaign: views name it, and show all else."""

import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.strength.champions import promote_by_hand
from chess_snn.campaign.strength.match_games import match_files
from chess_snn.cli.main import app
from chess_snn.report.facts import gather
from chess_snn.report.page import report_html

SECTIONS = {"strength", "learning", "table", "games", "spikes"}


def sections_of(html: str) -> set[str]:
    return set(re.findall(r'<section[^>]* id="(\w+)"', html))


def damaged_copies(whole: CampaignFolder, place: Path, files: list[Path]) -> list[Path]:
    """Copies of a campaign; in each another one of these files is cut in half."""
    copies = []
    for number, file in enumerate(files):
        copy = place / str(number)
        shutil.copytree(whole.path, copy)
        damaged = copy / file.relative_to(whole.path)
        damaged.write_bytes(damaged.read_bytes()[: damaged.stat().st_size // 2])
        copies.append(damaged)
    return copies


def finals_of(folder: CampaignFolder) -> list[Path]:
    return [path for path in match_files(folder) if path.parent.name == "final"]


def test_a_report_names_a_damaged_match_and_shows_the_rest(tmp_path, chess_campaign):
    final, other = finals_of(chess_campaign)[0], match_files(chess_campaign)[0]
    assert final != other
    for damaged in damaged_copies(chess_campaign, tmp_path, [final, other]):
        html = report_html(CampaignFolder.open(damaged.parents[2]))
        assert sections_of(html) == SECTIONS
        assert str(damaged) in html


def test_a_report_names_a_damaged_choice_of_a_champion(tmp_path, chess_campaign):
    folder = CampaignFolder.open(shutil.copytree(chess_campaign.path, tmp_path / "chosen"))
    promote_by_hand(folder, 3 - gather(folder).champion, "A", "a test")
    (choice,) = (folder.path / "promotions").glob("*.json")
    choice.write_bytes(b"")
    html = report_html(folder)
    assert sections_of(html) == SECTIONS
    assert str(choice) in html


@pytest.mark.parametrize("command", [
    ["campaign", "status"], ["campaign", "status", "--json"], ["campaign", "status", "--csv"],
    ["watch", "--once"],
])
def test_commands_name_a_damaged_final_match_and_show_the_others(
    tmp_path, chess_campaign, command
):
    finals = finals_of(chess_campaign)
    (damaged,) = damaged_copies(chess_campaign, tmp_path, finals[:1])
    directory = str(damaged.parents[2])
    shown = CliRunner().invoke(app, [*command, directory])
    assert shown.exit_code == 0, shown.output
    assert damaged.name in shown.output.replace("\n", "")
    if "--json" in command:
        assert len(json.loads(shown.stdout)["final_matches"]) == len(finals) - 1
