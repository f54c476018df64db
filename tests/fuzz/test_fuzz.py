"""Every parser under its corpus and a few damaged inputs; and a fuzzer that finds what is planted.

The full run is `make fuzz`; its hundred thousand inputs are the slow test below.
"""

import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fuzzing import ACCEPTED, CORPUS, REFUSED, FoundError, Target, fuzz, keep
from guards import HangError, Mailbox, bounded_inputs
from mutation import change_value, json_values, octets, to_json, words
from targets import TARGETS, shares

from chess_snn.errors import ChessSnnError

ROOT = Path(__file__).parents[2]
QUICK_INPUTS = 2000
"""Of all parsers together; the corpus is tried in any case."""
MANY_INPUTS = 100_000


NOTATIONS = ("fen", "uci-line", "uci-session", "pgn-game", "pgn-text", "pgn-file")


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.fault(20)) if name in NOTATIONS else name
    for name in TARGETS
])
def test_no_input_crashes_or_is_half_accepted(name):
    inputs = shares(QUICK_INPUTS, list(TARGETS))[name]
    report = fuzz(TARGETS[name], inputs, seed=0)
    assert report.inputs >= inputs
    assert report.accepted > 0, "the seeds are valid"


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_none_of_a_hundred_thousand_inputs_does():
    done = subprocess.run(
        [sys.executable, "tests/fuzz", "--inputs", str(MANY_INPUTS), "--seed", "1"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = re.search(r"([\d,]+) inputs to (\d+) parsers", done.stdout)
    assert int(told[1].replace(",", "")) >= MANY_INPUTS
    assert int(told[2]) == len(TARGETS)


def test_the_corpus_is_of_parsers_that_are_fuzzed_and_small():
    assert {folder.name for folder in CORPUS.iterdir()} <= TARGETS.keys()
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < 1 << 20


def planted(attempt):
    return Target("planted", attempt, octets(), lambda: [b"a valid input"])


def crash(data):
    if b"\0" in data:
        raise IndexError("planted")
    return ACCEPTED


def accept_by_half(data):
    assert data == data.strip(), "planted"
    return ACCEPTED


def refuse_in_two_lines(data):
    if b'"' in data:
        raise ChessSnnError("planted\nand more")
    return REFUSED


@pytest.mark.parametrize("attempt", [crash, accept_by_half, refuse_in_two_lines])
def test_what_is_planted_is_found_with_its_input(attempt):
    with pytest.raises(FoundError) as found:
        fuzz(planted(attempt), 20_000, seed=1)
    with pytest.raises((IndexError, AssertionError, ChessSnnError)):
        attempt(found.value.data)


def test_the_same_seed_gives_the_same_inputs_and_another_one_others():
    def inputs(seed):
        tried = []
        fuzz(planted(lambda data: tried.append(data) or ACCEPTED), 200, seed)
        return tried

    assert inputs(1) == inputs(1)
    assert inputs(1) != inputs(2)


def test_an_input_that_reaches_a_new_place_is_mutated_further():
    """Three octets, each of which is told from outside, are found one after the other."""
    def attempt(data):
        depth = next((k for k, part in enumerate((b"{", b"{}", b"{};")) if part not in data), 3)
        if depth == 3:
            raise ZeroDivisionError("reached")
        return ACCEPTED._replace(shape=depth)

    with pytest.raises(FoundError, match="ZeroDivisionError"):
        fuzz(planted(attempt), 60_000, seed=1)


def test_a_loop_without_end_is_ended_and_its_input_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("guards.LIMIT_S", 0.2)
    mailbox = Mailbox(tmp_path / "mailbox")

    def loop(data):
        deadline = time.process_time() + 30
        while data and time.process_time() < deadline:
            pass
        return ACCEPTED

    with bounded_inputs(mailbox) as watch, pytest.raises(FoundError, match=HangError.__name__):
        fuzz(planted(loop), 1, seed=1, on_input=watch)
    assert Mailbox.read(tmp_path / "mailbox") == b"a valid input"


def test_a_process_that_dies_is_a_failure_with_its_input(tmp_path):
    program = (
        "import os, sys; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path; from guards import Mailbox\n"
        "Mailbox(Path(sys.argv[1])).put(b'the last one'); os.abort()"
    )
    folder = Path(__file__).parent
    died = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "mailbox", folder, folder.parent], check=False,
        capture_output=True,
    )
    assert died.returncode < 0
    assert Mailbox.read(tmp_path / "mailbox") == b"the last one"


def test_mutations_keep_most_of_a_structure():
    stream = random.Random(1)
    seed = to_json({"a": [1, 2, {"b": "text"}], "c": 0.5})
    change, still_json = json_values(), 0
    for _ in range(300):
        text = change(stream, seed, b"")
        try:
            change_value(stream, json.loads(text))
        except (ValueError, RecursionError):
            continue
        still_json += 1
    assert still_json > 250
    kept = [words([b"x"])(stream, b"one two three four", b"") for _ in range(300)]
    assert sum(b"one" in text for text in kept) > 150


def test_an_input_is_kept_under_its_own_name(tmp_path, monkeypatch):
    monkeypatch.setattr("fuzzing.CORPUS", tmp_path)
    first = keep(planted(crash), b"x")
    assert first == keep(planted(crash), b"x")
    assert first.read_bytes() == b"x"
