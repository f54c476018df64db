"""Campaigns and networks from elsewhere: one line for each, and nothing outside is touched."""

from pathlib import Path

import pytest


@pytest.mark.parametrize(("name", "command"), [
    ("quarantine", "gc campaign --yes"),
    ("games", "gc campaign --yes --keep games"),
    ("matches/gen-000001", "verify campaign --repair"),
    ("campaign.lock", "campaign extend campaign --iterations 9"),
    ("campaign.log", "campaign status campaign"),
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
    assert str(place) in refused(*command.split())
    assert (outside / "precious").read_text() == "mine"
    assert len(list(outside.iterdir())) == 1


@pytest.mark.parametrize("name", ["campaign.toml", "receipts/iter-000001.json"])
def test_files_larger_than_the_memory_are_refused_by_their_size(refused, folder, name):
    with (folder.path / name).open("r+b") as file:
        file.truncate(1 << 43)
    assert name in refused("campaign", "status", "campaign")


def test_weights_larger_than_the_memory_are_one_line(refused, tmp_path):
    with (tmp_path / "weights.safetensors").open("wb") as file:
        file.truncate(1 << 43)
    assert "memory" in refused("analyse", "startpos", "--model", "weights.safetensors")


NAME = "evil\x1b[31m\x1b]0;title\x07\r\x9b2J\u202e"
"""Would colour, clear and overwrite a terminal, and turn the direction of its text."""


@pytest.mark.parametrize("command", [
    "campaign status", "verify", "gc", "watch --once", "models list", "models show",
    "games show", "games stats", "report", "campaign status --ratings",
    "campaign extend --iterations 1",
])
def test_a_name_does_not_reach_the_terminal_as_commands_bug(chess_snn, folder, tmp_path, command):
    folder.receipt(0).unlink()  # so that notices are printed too
    folder.path.rename(tmp_path / NAME)
    name, *rest = command.split()
    group = [rest.pop(0)] if name in {"campaign", "models", "games"} else []
    done = chess_snn(name, *group, NAME, *rest)
    printed = done.stdout + done.stderr
    assert printed
    assert all(c.isprintable() or c == "\n" for c in printed), printed


def test_names_as_long_as_they_may_be_and_others_in_a_folder_are_harmless(chess_snn, folder):
    (folder.path / ("n" * 255)).write_text("")
    (folder.path / "games" / ("n" * 255)).mkdir()
    (folder.path / "GAMES").mkdir()
    deep = folder.path.joinpath("games", *("d" * 100 for _ in range(30)))
    deep.mkdir(parents=True)
    assert chess_snn("verify", "campaign").returncode == 0
    assert chess_snn("gc", "campaign", "--yes").returncode == 0
    assert deep.is_dir()


@pytest.mark.parametrize("command", [
    "games stats campaign", "games export campaign", "games label campaign --out labels",
    "campaign fork campaign --at 2 --dir fork --set campaign.iterations=3",
])
def test_a_shard_that_lost_its_manifest_is_not_passed_over_bug(refused, folder, command):
    folder.shard(0, 1).write_bytes(folder.shard(0, 1).read_bytes()[:-9])
    assert "shard-0001" in refused(*command.split(), may_print=True)


def test_a_lost_receipt_is_said_wherever_iterations_are_shown_bug(chess_snn, folder):
    folder.receipt(0).unlink()
    for command in (("campaign", "status"), ("watch", "--once")):
        done = chess_snn(*command, "campaign")
        assert "receipts/iter-000000.json" in done.stdout + done.stderr
    assert chess_snn("report", "campaign").returncode == 0
    assert "receipts/iter-000000.json" in (folder.path / "report.html").read_text()
