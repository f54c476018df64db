"""Search over settings: trials as variants, ended early, and gone on with."""

import shutil

import pytest
from made_experiments import ONE_BY_ONE, SMALL, begin, finish, results, run, train_here
from small_campaigns import finish_without_games, make_campaign
from starlette.testclient import TestClient

from chess_snn.experiment import judging, tuning
from chess_snn.experiment.file import Start
from chess_snn.experiment.runs import Run
from chess_snn.web.networks import Networks
from chess_snn.web.server import ExperimentPage, WebSettings, make_app

optuna = pytest.importorskip("optuna")
TRIALS = 3
RANGES = {
    "training.learning_rate": {"low": 1e-3, "high": 1e-1, "log": True},
    "training.batch_size": [32, 64],
}
TUNED = SMALL | {
    "name": "tuned", "seeds": [1], "variants": {"relu": SMALL["variants"]["relu"]},
    "search": {"trials": TRIALS, "ranges": RANGES}, "judge": {"simulations": [2], "games": 2},
}


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A folder with a finished search."""
    return finish(tmp_path_factory.mktemp("tuned"), TUNED)


def proposals(root):
    return {
        name: {setting: value[setting] for setting in RANGES}
        for name, value in results(root)["file"]["variants"].items() if name != "relu"
    }


@pytest.mark.slow
def test_every_trial_is_a_variant_within_the_ranges(tuned):
    found = proposals(tuned)
    assert list(found) == [f"trial-{number}" for number in range(TRIALS)]
    assert len({each["training.learning_rate"] for each in found.values()}) == TRIALS
    for settings in found.values():
        assert 1e-3 <= settings["training.learning_rate"] <= 1e-1
        assert settings["training.batch_size"] in RANGES["training.batch_size"]
    body = results(tuned)
    assert [each["variant"] for each in body["verdicts"]] == list(found)
    assert {each["variant"] for each in body["runs"]} == {"relu", *found}


@pytest.mark.slow
def test_stopped_in_a_trial_it_goes_on_with_the_same_proposals(tuned, tmp_path, monkeypatch):
    root, asked = begin(tmp_path, TUNED), []

    def stop_at_the_third(work, *rest):
        with ONE_BY_ONE:
            asked.append(work)
        if len(asked) == 3:
            raise KeyboardInterrupt
        train_here(work, *rest)

    monkeypatch.setattr(judging, "run_on", stop_at_the_third)
    assert run(root, "run", "small.toml") == 130
    monkeypatch.setattr(judging, "run_on", train_here)
    assert run(root, "run", "small.toml") == 0
    assert proposals(root) == proposals(tuned)
    assert results(root)["matches"] == results(tuned)["matches"]


@pytest.mark.parametrize(("others", "is_hopeless"), [(1.0, True), (0.0, False)])
def test_a_trial_below_the_median_of_the_others_is_ended_early(
    tmp_path, monkeypatch, others, is_hopeless
):
    monkeypatch.setattr(Run, "figures", lambda run: {tuning._FIGURE: 0.5})
    folder = make_campaign(tmp_path / "campaign", "campaign.iterations=4")
    finish_without_games(folder, 0, 1)
    study = optuna.create_study(
        direction="maximize",
        pruner=optuna.pruners.MedianPruner(n_startup_trials=tuning._FIRST_TRIALS),
    )
    for _ in range(tuning._FIRST_TRIALS):
        other = study.ask()
        other.report(others, tuning._LOOKS // 4)
        study.tell(other, others)
    own = Run("trial-4", 1, folder.path, Start(), folder.config)
    assert tuning._Look(study.ask(), own).is_hopeless(own) is is_hopeless


@pytest.mark.parametrize(("change", "reason"), [
    ({"search": {"ranges": {"training.batch_sise": [1, 2]}}}, "batch_size"),
    ({"search": {"ranges": {"training.batch_size": 3}}}, "batch_size"),
    ({"search": {"ranges": {"training.learning_rate": {"low": 0.1, "high": 0.01}}}}, "learning"),
    ({"search": {"ranges": {"training.batch_size": [64, -1]}}}, "batch_size"),
    ({"search": {"trials": 0, "ranges": RANGES}}, "trials"),
    ({"variants": SMALL["variants"]}, "variant"),
    ({"judge": {"games": 0}}, "games"),
    ({"start": {"preset": "smoke-2048"}, "budget": {"minutes": 1}, "settings": {},
      "judge": {"rating_games": 10}, "variants": {"a": {}}}, "ladder"),
])
def test_a_range_that_is_none_is_refused_before_anything_runs(tmp_path, capfd, change, reason):
    root = begin(tmp_path, TUNED | change)
    assert run(root, "run", "small.toml") == 2
    assert reason in capfd.readouterr().err
    assert not (root / "small" / "runs").exists()


@pytest.mark.parametrize("option", ["--race", "--until-decided"])
@pytest.mark.parametrize("body", [TUNED, SMALL | {"judge": {"games": 0, "rating_games": 10}}])
def test_what_looks_after_each_seed_needs_variants_and_matches(tmp_path, option, body):
    root = begin(tmp_path, body)
    assert run(root, "run", "small.toml", option) == 2
    assert not (root / "small").exists()


@pytest.mark.slow
def test_the_page_shows_an_experiment(tuned, tmp_path):
    shutil.copytree(tuned / "small", tmp_path / "small", symlinks=True)
    page = ExperimentPage(tmp_path / "small")
    client = TestClient(
        make_app(Networks(lambda _address: None, (), None), page, WebSettings()),
        base_url="http://127.0.0.1:8642",
    )
    state = client.get("/api/campaign").json()
    assert state["progress"] == 1
    assert "4 runs" in state["line"]
    report = client.get("/report")
    assert report.status_code == 200
    assert "trial-2" in report.text
    (tmp_path / "small" / "results.json").unlink()
    assert client.get("/api/campaign").json()["version"] != state["version"]
    assert client.get("/report").status_code == 409


