"""Small experiments from end to end: results, pages, and how they go on."""

import json
import random
import shutil
import signal
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from made_experiments import (
    NAMES,
    PLAYED,
    SEEDS,
    SMALL,
    begin,
    results,
    run,
    start_process,
    train_here,
)
from made_imports import make_import

from chess_snn.campaign.configuration.loading import format_toml
from chess_snn.experiment import judging
from chess_snn.experiment.file import read_experiment

SHIPPED = sorted((Path(__file__).parents[2] / "experiments").glob("*.toml"))
PLOTS = ("differences.svg", "elo-spikes.svg", "elo-energy.svg", "elo-time.svg")
UNTIMED = ("games", "positions", "policy_loss", "generation", "draw_rate")


def written(root):
    return {
        path: path.lstat().st_mtime_ns for path in (root / "small").rglob("*") if path.is_file()
        and path.name != ".lock"
    }


def test_every_variant_has_a_verdict_with_each_budget_and_in_equal_time(finished):
    body = results(finished)
    found = {(each["variant"], each["is_equal_time"]) for each in body["verdicts"]}
    assert found == {(name, equal) for name in NAMES[1:] for equal in (False, True)}
    for verdict in body["verdicts"]:
        own = [
            match for match in body["matches"]
            if (match["variant"], match["is_equal_time"]) == (
                verdict["variant"], verdict["is_equal_time"])
        ]
        assert [match["seed"] for match in own] == list(SEEDS)
        assert all((match["against"], match["num_games"]) == ("lif", 2) for match in own)
        mean = sum(match["score"] - 0.5 for match in own) / len(own)
        assert verdict["mean"] == pytest.approx(mean)
        assert verdict["low"] <= mean <= verdict["high"]
        assert verdict["num_seeds"] == len(SEEDS)


def test_every_run_has_figures_and_costs_by_all_models(finished):
    body = results(finished)
    assert {(each["variant"], each["seed"]) for each in body["runs"]} == {
        (name, seed) for name in NAMES for seed in SEEDS}
    steps = {each["figures"]["step"] for each in body["runs"]}
    assert len(steps) == 1
    assert steps.pop() > 0
    for row in body["rows"]:
        assert row["rating_games"] == 10
        assert row["elo_low"] is not None or row["elo_high"] is not None
        assert row["ms_per_move_least"] <= row["ms_per_move_measured"]
        assert row["spikes_per_evaluation"] > 0
        for model in ("convention", "fair", "chip"):
            energies = row[f"{model}_model_pj"]
            assert ("spiking" in energies["move"]) is (row["variant"] != "relu")
            for name, energy in energies["move"].items():
                assert energy == pytest.approx(
                    energies["position"][name] * row["evaluations_per_move"]
                )


@pytest.mark.parametrize("name", PLOTS)
def test_plots_have_every_variant(finished, name):
    root = ElementTree.parse(finished / "small" / name).getroot()
    texts = [element.text or "" for element in root.iter() if element.tag.endswith("text")]
    for variant in NAMES[1:]:
        assert any(variant in text for text in texts), variant
    assert sum(element.tag.endswith("circle") for element in root.iter()) >= len(NAMES)
    axes = [text for text in texts if text.startswith("µJ")]
    assert len(axes) == (3 if name == "elo-energy.svg" else 0)
    assert all("(model)" in axis for axis in axes)


def test_repeated_it_does_nothing_again_and_shows_the_tables(finished, capfd):
    before = written(finished)
    assert run(finished, "run", "small.toml") == 0
    after = written(finished)
    assert {path for path in before if after[path] != before[path]} <= {
        finished / "small" / name for name in (*PLOTS, "results.json", "report.html")}
    capfd.readouterr()
    assert run(finished, "show", "small") == 0
    printed = capfd.readouterr().out
    for name in NAMES[1:]:
        assert name in printed
    assert run(finished, "show", "small", "--json") == 0
    assert json.loads(capfd.readouterr().out) == results(finished)
    assert run(finished, "report", "small", "--out", "page.html", group=()) == 0
    page = (finished / "page.html").read_text()
    assert page == (finished / "small" / "report.html").read_text()
    assert page.count("<svg") == len(PLOTS)
    assert all(f"relu-{seed}" in page for seed in SEEDS)


@pytest.mark.parametrize(("change", "reason"), [
    ({"seeds": [1, 3]}, "seeds"), ({"judge": {"games": 4}}, "judge.games"),
    ({"variants": SMALL["variants"] | {"relu": {"net.size": "1x8"}}}, "net.activation"),
])
def test_another_file_is_refused(finished, tmp_path, capfd, change, reason):
    shutil.copytree(finished, tmp_path / "copy", symlinks=True)
    root = tmp_path / "copy"
    judge = SMALL["judge"] | change.pop("judge", {})
    (root / "small.toml").write_text(format_toml(SMALL | change | {"judge": judge}))
    before = written(root)
    assert run(root, "run", "small.toml") == 2
    assert reason in capfd.readouterr().err
    assert written(root) == before


def test_a_folder_with_something_else_is_left_alone(tmp_path, capfd):
    root = begin(tmp_path)
    (root / "small").mkdir()
    (root / "small" / "diary.txt").touch()
    assert run(root, "run", "small.toml") == 2
    assert [path.name for path in (root / "small").iterdir()] == ["diary.txt"]
    assert "--out" in capfd.readouterr().err


def test_a_new_file_can_be_checked_but_is_never_written_over(tmp_path):
    assert run(tmp_path, "new", "mine.toml") == 0
    assert run(tmp_path, "new", "mine.toml") == 2
    assert run(tmp_path, "check", "mine.toml") == 0


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--until-decided", "--race"])
def test_seeds_come_one_by_one(tmp_path, monkeypatch, capfd, option):
    root = begin(tmp_path, SMALL | {"seeds": [1, 2], "judge": {"simulations": [2], "games": 10}})
    monkeypatch.setattr(judging, "run_on", train_here)
    assert run(root, "run", "small.toml", option) == 0
    printed = capfd.readouterr().out
    assert "1 seed:" in printed
    assert "2 seeds:" in printed
    assert [each["num_seeds"] for each in results(root)["verdicts"]] == [2]


def test_results_that_come_with_the_program_are_of_their_file(tmp_path, monkeypatch):
    make_import(tmp_path / "labels")  # the dataset of those that begin with one
    monkeypatch.chdir(tmp_path)
    for file in SHIPPED:
        experiment = read_experiment(file)
        kept = file.with_suffix("") / judging.FILE
        if kept.exists():
            assert json.loads(kept.read_text())["experiment"] == experiment.to_json(), file.stem


def untimed(root):
    """Figures that depend on no clock."""
    body = results(root)
    figures = [
        {name: each["figures"][name] for name in UNTIMED} for each in body["runs"]
    ]
    return figures, body["matches"], body["verdicts"]


@pytest.mark.slow
@pytest.mark.orchestration
@pytest.mark.timeout(1800)
def test_killed_again_and_again_it_finds_the_same(tmp_path):
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    for root in (undisturbed, killed):
        root.mkdir()
        begin(root, PLAYED)
    assert start_process(undisturbed, "run", "small.toml").wait(timeout=900) == 0
    rng = random.Random(1)
    for _ in range(3):
        child = start_process(killed, "run", "small.toml")
        time.sleep(rng.uniform(10, 40))
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert start_process(killed, "run", "small.toml").wait(timeout=900) == 0
    assert untimed(killed) == untimed(undisturbed)
