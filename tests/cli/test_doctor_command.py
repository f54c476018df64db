"""`chess-snn doctor` prints a line a finding, and its exit code says whether any is bad."""

import json
import re

import pytest

LEVELS = {"ok", "note", "broken"}


@pytest.mark.slow
def test_a_line_each_and_the_same_as_json(chess_snn, tmp_path):
    told = chess_snn("doctor")
    as_json = json.loads(chess_snn("doctor", "--json").stdout)
    assert {row["level"] for row in as_json} <= LEVELS
    subjects = [row["subject"] for row in as_json]
    for wanted in ("Python", "packages", "disk", "kernel cache", "port 4200", "Stockfish"):
        assert wanted in subjects
        assert any(line[7:].startswith(wanted) for line in told.stdout.splitlines())
    assert (told.returncode == 1) == ("broken" in {row["level"] for row in as_json})
    assert not (tmp_path / "home").exists(), "it changes nothing"


@pytest.mark.slow
def test_a_device_that_plays_has_a_line_with_its_paces(chess_snn):
    *_, trial = json.loads(chess_snn("doctor", "--play", "--device", "cpu", "--json").stdout)
    assert (trial["subject"], trial["level"]) == ("CPU plays", "ok")
    for figure in ("evaluations/s", "samples/s", "GiB"):
        assert re.search(rf"[1-9][\d,.]* {figure}|0\.[1-9] {figure}", trial["fact"]), trial["fact"]


def test_a_device_that_does_not_exist_is_one_line(refused):
    assert "GPU 99" in refused("doctor", "--play", "--device", "cuda:99")
