"""Counts in messages, and the first words of notes."""

import re
from pathlib import Path

import pytest

from chess_snn.campaign.viewing.events import WorkerProgress, WorkersProgress
from chess_snn.wording import counted

GOLDEN = Path(__file__).with_name("messages.golden")
ROOT = Path(__file__).parents[1]
LANGUAGES = {".py", ".cu", ".h", ".js", ".css"}
A_NOTE = re.compile(r'\s*(?:r?"""|#|//|/\*)\s*')


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


# A note begins with a noun or a verb: "Of each step." and "What a step needs." are no sentences.


def notes_without_a_subject(text: str) -> list[str]:
    """Lines on which a docstring or a block of comments begins with `Of` or `What`."""
    lines = text.splitlines()
    begins = [A_NOTE.match(line) for line in lines]
    return [
        line.strip() for before, at, line in zip([None, *begins], begins, lines, strict=False)
        if at and line[at.end():].startswith(("Of ", "What "))
        and (before is None or '"' in at[0])
    ]


@pytest.mark.parametrize(("text", "number"), [
    ('x = 1\n"""Of a step."""', 1), ("def f():\n    # What it needs.\n    pass", 1),
    ("// Of all.", 1), ("/* What is there. */", 1),
    ("# A step needs it.\n# What follows is not new.", 0),
    ('"""Steps. What they need."""', 0), ('text = "Of a step"', 0),
])
def test_a_note_without_a_subject_is_found(text, number):
    assert len(notes_without_a_subject(text)) == number


def test_no_note_begins_with_of_or_what():
    files = [
        path for folder in ("benchmarks", "chess_snn", "docs", "flows", "tasks", "tests")
        for path in (ROOT / folder).rglob("*") if path.suffix in LANGUAGES
    ]
    assert len(files) > 400, "the search for sources found too few"
    found = {
        str(path.relative_to(ROOT)): notes for path in files
        if (notes := notes_without_a_subject(path.read_text()))
    }
    assert found == {}
