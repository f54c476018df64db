"""Counts in messages."""

import re
from pathlib import Path

import pytest

from chess_snn.campaign.viewing.events import WorkerProgress, WorkersProgress
from chess_snn.wording import counted

GOLDEN = Path(__file__).with_name("messages.golden")


@pytest.mark.parametrize(("number", "noun", "text"), [
    (1, "game", "1 game"), (0, "game", "0 games"), (2, "match", "2 matches"),
    (12_345, "position", "12,345 positions"), (7, "ply", "7 plies"), (2, "day", "2 days"),
])
def test_a_noun_follows_its_number(number, noun, text):
    assert counted(number, noun) == text


def test_no_message_has_several_of_one():
    nouns = "games|iterations|generations|shards|plies|moves|ticks|workers|steps|simulations"
    assert re.findall(rf"\b1 (?:{nouns})\b", GOLDEN.read_text()) == []


def test_a_pace_is_said_before_the_first_game_bug():
    idle = WorkerProgress("box/cpu-0", "a processor", "", 0, 0.0, 0.1, 0.5, 1 << 29, None)
    assert str(idle) == "box/cpu-0: 0.5 cores, 0.5 GiB"
    assert str(WorkersProgress((idle, idle))) == "2 workers: 1.0 cores"
