"""A small study from end to end: its results, its pictures, and how it goes on."""

import json
import shutil
import signal
from xml.etree import ElementTree

import pytest
from made_studies import SMALL, begin, run, run_process

from chess_snn.data import read_manifest
from chess_snn.failpoints import DIRECTORY_VARIABLE, VARIABLE

NAMES = ("ticks-1", "relu", "slow")
PLOTS = ("elo-spikes.svg", "elo-energy.svg", "elo-time.svg")


def results(root):
    return json.loads((root / "out" / "study.json").read_text())


def written(root):
    return {path: path.lstat().st_mtime_ns for path in (root / "out").rglob("*") if path.is_file()}


def weights(root):
    return {
        name: read_manifest(root / "out" / "networks" / name).meta["weights_digest"]
        for name in NAMES
    }


def rated_games(root):
    """Those with budgets that were asked for; an equal time depends on the clock."""
    return [
        (row["variant"], row["simulations"], row["opponents"])
        for row in results(root)["rows"] if row["is_budget"]
    ]


def test_every_network_is_rated_with_each_budget_and_in_equal_time(studied):
    rows = results(studied)["rows"]
    for name in NAMES:
        own = [row for row in rows if row["variant"] == name]
        assert [row["simulations"] for row in own if row["is_budget"]] == [2]
        assert sum(row["is_equal_time"] for row in own) == 1
        for row in own:
            assert row["rating_games"] == 10
            assert row["elo_low"] is not None or row["elo_high"] is not None
            assert row["ms_per_move_least"] <= row["ms_per_move_measured"]
            assert row["spikes_per_evaluation"] > 0
            assert row["evaluations_per_move"] > 1
            if not row["is_budget"]:
                assert row["is_equal_time"]


def test_both_models_of_energy_stand_in_every_row(studied):
    body = results(studied)
    assert {"convention", "fair"} == body["energy_models"].keys()
    for row in body["rows"]:
        for model in body["energy_models"]:
            energies = row[f"{model}_model_pj"]
            executions = set(energies["move"])
            is_baseline = row["variant"] == "relu"
            assert ("spiking" in executions) is not is_baseline
            assert ("int8" in executions) is is_baseline
            for name in executions:
                assert energies["move"][name] == pytest.approx(
                    energies["position"][name] * row["evaluations_per_move"]
                )
    names = [key for row in body["rows"] for key in row if "energy" in key or "_pj" in key]
    assert names
    assert all("model" in name for name in names)


def test_networks_learn_from_the_same_positions(studied):
    body = results(studied)
    assert [network["name"] for network in body["networks"]] == list(NAMES)
    assert {network["losses"]["steps"] for network in body["networks"]} == {
        body["networks"][0]["losses"]["steps"]
    }
    assert body["networks"][0]["losses"]["steps"] > 0
    assert body["games"]["games"] == 36
    for network in body["networks"]:
        assert network["losses"]["policy_loss"] > 0
        assert network["losses"]["value_loss"] > 0


def test_each_network_meets_the_first_one(studied):
    matches = results(studied)["matches"]
    found = {(match["variant"], match["is_equal_time"]) for match in matches}
    assert {name for name, _ in found} == {"relu", "slow"}
    for match in matches:
        assert (match["against"], match["against_simulations"]) == ("ticks-1", 2)
        assert match["num_games"] == 2


@pytest.mark.parametrize("name", PLOTS)
def test_plots_have_every_network(studied, name):
    root = ElementTree.parse(studied / "out" / name).getroot()
    texts = [element.text or "" for element in root.iter() if element.tag.endswith("text")]
    for network in NAMES:
        assert any(network in text for text in texts), network
    circles = sum(element.tag.endswith("circle") for element in root.iter())
    assert circles >= len(NAMES)
    axes = [text for text in texts if text.startswith("µJ")]
    assert len(axes) == (2 if name == "elo-energy.svg" else 0)
    assert all("(model)" in axis for axis in axes)


def test_repeated_it_changes_nothing_and_prints_the_tables(studied, capfd):
    before = written(studied)
    capfd.readouterr()
    assert run(studied, *SMALL) == 0
    assert written(studied) == before
    printed = capfd.readouterr().out
    for text in (*NAMES, "Elo", "95 % interval", "45 nm", "fair", "(model)", "measured", "spikes"):
        assert text in printed
    tables = [line for line in printed.splitlines() if any(f" {name} " in line for name in NAMES)]
    assert len(tables) >= 3 * len(NAMES) - 1
    assert max(map(len, tables)) <= 80


@pytest.mark.slow
def test_killed_between_two_parts_it_goes_on(studied, tmp_path):
    begin(tmp_path)
    (tmp_path / "fired").mkdir()
    # A network commits a checkpoint on the way, and the one in the end: the second network's.
    environment = {
        VARIABLE: "checkpoint.renamed@4=kill", DIRECTORY_VARIABLE: str(tmp_path / "fired"),
    }
    assert run_process(tmp_path, environment, *SMALL) == -signal.SIGKILL
    before = written(tmp_path)
    assert (tmp_path / "out" / "networks" / "relu" / "weights.safetensors") in before
    assert any(path.parent.name == "ratings" for path in before)
    assert not (tmp_path / "out" / "study.json").exists()
    assert run(tmp_path, *SMALL) == 0
    after = written(tmp_path)
    gone = [path for path in before if path not in after]
    assert all(".unfinished" in str(path) for path in gone)
    assert all(after[path] == before[path] for path in before if path not in gone)
    assert weights(tmp_path) == weights(studied)
    assert rated_games(tmp_path) == rated_games(studied)


@pytest.mark.parametrize(("changes", "reason"), [
    (("--ticks", "1,2"), "variants.ticks-2."),
    (("--simulations", "2,4"), "simulations = [2]"),
    (("--set", "training.learning_rate=0.5"), "training.learning_rate"),
    (("--games", "other"), "games = "),
])
def test_another_request_is_refused(studied, tmp_path, capfd, changes, reason):
    shutil.copytree(studied, tmp_path / "copy", symlinks=True)
    plan = tmp_path / "copy" / "out" / "plan.json"
    plan.write_text(plan.read_text().replace(str(studied), str(tmp_path / "copy")))
    command = list(SMALL)
    if changes[0] in command and changes[0] != "--set":
        command[command.index(changes[0]) + 1] = changes[1]
    else:
        command += changes
    capfd.readouterr()
    before = written(tmp_path / "copy")
    assert run(tmp_path / "copy", *command) == 2
    assert reason in capfd.readouterr().err
    assert written(tmp_path / "copy") == before


@pytest.mark.slow
def test_minutes_choose_the_newest_games(tmp_path):
    begin(tmp_path)
    command = [part for part in SMALL if part != "--relu"]
    command[command.index("--match-games") + 1] = "0"
    assert run(tmp_path, *command, "--minutes-per-network", "0.0001", "--no-equal-time") == 0
    body = results(tmp_path)
    assert body["games"]["games"] == 12
    assert body["training"]["samples_per_s"]["ticks-1"] > 0
    assert not any(row["is_equal_time"] for row in body["rows"])
    assert body["matches"] == []
