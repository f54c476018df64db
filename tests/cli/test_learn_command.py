"""``chess-snn games learn`` and ``campaign start --warm-start``: results and refusals."""

import json
import re
import shutil

import pytest
from made_imports import make_import

LEARN = ("games", "learn")
QUICK = ("--batch-size", 64, "--threads", 1)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_import(tmp_path_factory.mktemp("imports") / "some")


@pytest.fixture
def imported(made, tmp_path):
    shutil.copytree(made, tmp_path / "some")
    return tmp_path / "some"


def files(root):
    return {path: path.stat().st_mtime_ns for path in root.rglob("*")}


def test_a_network_is_trained_and_can_be_played(chess_snn, imported, tmp_path):
    command = (*LEARN, "some", "--out", "networks/tiny", *QUICK, "--json-file", "r/train.json")
    done = chess_snn(*command)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^step \d+/\d+  loss \d.* \(policy .*, value .*\)", done.stdout, re.MULTILINE)
    body = json.loads((tmp_path / "r" / "train.json").read_text())
    assert body["points"][0]["step"] == 0
    assert body["points"][-1]["epoch"] == 1
    before = files(tmp_path / "networks")
    assert chess_snn(*command).returncode == 0
    assert files(tmp_path / "networks") == before
    played = chess_snn("match", "networks/tiny:0", "random", "--games", 2, "--max-plies", 4)
    assert played.returncode == 0, played.stderr


@pytest.mark.slow
def test_labelled_games_are_a_dataset(chess_snn, imported, tmp_path):
    untaught = chess_snn("games", "learn", "some", "--out", "teacher", *QUICK,
                         "--set", "supervised.epochs=0")
    assert untaught.returncode == 0, untaught.stderr
    command = ("games", "label", "some", "some", "--out", "labels", "--teacher", "teacher",
               "--simulations", 4, "--workers", 1, "--json-file", "labels.json")
    for is_first in (True, False):
        done = chess_snn(*command)
        assert done.returncode == 0, done.stderr
        body = json.loads((tmp_path / "labels.json").read_text())
        assert bool(body["new_positions"]) is is_first
    done = chess_snn("games", "learn", "labels", "--out", "student", *QUICK)
    assert done.returncode == 0, done.stderr
    refused = chess_snn(*command, "--lines", 2, "--simulations", 5)
    assert refused.returncode == 2
    assert "labels" in refused.stderr


@pytest.mark.slow
def test_two_processes_and_their_options_come_to_the_network_of_one(chess_snn, imported, tmp_path):
    command = (*LEARN, "some", *QUICK, "--set", "training.micro_batch=32", "--precision", "fp32")
    digests = []
    for name, options in (("one", ()), ("two", ("--nproc-per-node", 2, "--backend", "gloo"))):
        done = chess_snn(*command, "--out", name, *options)
        assert done.returncode == 0, done.stderr
        assert re.search(r"^step \d+/\d+  loss", done.stdout, re.MULTILINE)
        manifest = json.loads((tmp_path / name / "MANIFEST.json").read_text())
        digests.append(manifest["meta"]["weights_digest"])
    assert digests[0] == digests[1]
