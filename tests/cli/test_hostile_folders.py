"""Campaigns and networks from elsewhere: one line for each, and nothing outside is touched."""

from pathlib import Path

import pytest
from stored_files import copy_campaign


@pytest.fixture
def folder(tmp_path):
    return copy_campaign(tmp_path)


@pytest.mark.parametrize(("name", "command"), [
    ("quarantine", "gc campaign --yes"),
    ("games", "gc campaign --yes --keep games"),
    ("matches/gen-000001", "verify campaign --repair"),
    ("campaign.lock", "campaign extend campaign --iterations 9"),
    ("campaign.log", "results campaign"),
    ("report.html", "report campaign"),
    ("services", "watch campaign --once"),
])
def test_what_a_link_leads_to_is_neither_written_nor_deleted_bug(
    refused, folder, tmp_path, name, command
):
    outside, place = tmp_path / "outside", folder.path / name
    outside.mkdir()
    (outside / "precious").write_text("mine")
    if place.exists():
        place.rename(tmp_path / "before")
    place.symlink_to(outside / "precious" if Path(name).suffix else outside)
    assert f"{place} is a link" in refused(*command.split())
    assert (outside / "precious").read_text() == "mine"
    assert len(list(outside.iterdir())) == 1


def test_weights_larger_than_the_memory_are_one_line(refused, tmp_path):
    with (tmp_path / "weights.safetensors").open("wb") as file:
        file.truncate(1 << 45)
    assert "memory" in refused("analyse", "--model", "weights.safetensors")
