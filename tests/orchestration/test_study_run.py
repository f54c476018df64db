"""A study in MLflow: one run, however often it is recorded, with every network's figures."""

import json
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("mlflow")

from mlflow.tracking import MlflowClient  # noqa: E402

from chess_snn.tasks.tracking import EXPERIMENT, TrackingError, local_tracking_uri  # noqa: E402
from chess_snn.tasks.tracking.study_run import record_study  # noqa: E402

COST = {"position": {"spiking": 5.0}, "move": {"spiking": 50.0}}


def results(elo=400.0):
    row = {
        "variant": "ticks-4", "simulations": 16, "is_budget": True, "is_equal_time": False,
        "elo": elo, "elo_low": None, "elo_high": elo + 100, "spikes_per_evaluation": 7.0,
        "evaluations_per_move": 10.0, "ms_per_move_measured": 3.0,
        "ms_per_evaluation_measured": 0.3, "convention_model_pj": COST, "fair_model_pj": COST,
    }
    return {
        "id": "0123456789abcdef", "version": "0.1", "games": {"positions": 100},
        "request": {"seed": 1, "variants": {"ticks-4": ["net.ticks=4"], "base": []}},
        "energy_models": {"convention": "a model", "fair": "another model"},
        "networks": [{"name": "ticks-4", "losses": {"policy_loss": 2.5, "brier_score": None}}],
        "rows": [row, row | {"simulations": 12, "is_budget": False, "is_equal_time": True}],
        "matches": [{
            "variant": "ticks-4", "simulations": 16, "is_budget": True, "is_equal_time": False,
            "score": 0.5, "score_low": 0.4, "score_high": 0.6, "likelihood_of_superiority": 0.5,
        }],
    }


@pytest.mark.slow
def test_a_study_is_one_run_with_its_figures_and_files(tmp_path):
    uri, folder = local_tracking_uri(tmp_path / "services"), tmp_path / "spikes"
    folder.mkdir()
    files = [folder / "study.json", folder / "elo.svg"]
    files[0].write_text(json.dumps(results()))
    files[1].write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    run_id = record_study(uri, results(), files)
    assert record_study(uri, results(), files) == run_id
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.info.run_name, run.info.status) == ("spikes", "FINISHED")
    metrics = run.data.metrics
    assert metrics["ticks-4/elo_at_16"] == metrics["ticks-4/elo_equal_time"] == 400.0
    assert metrics["ticks-4/simulations_equal_time"] == 12
    assert metrics["ticks-4/fair_model_pj_per_move_at_16"] == 50.0
    assert metrics["ticks-4/convention_model_pj_per_position_at_16"] == 5.0
    assert metrics["ticks-4/policy_loss"] == 2.5
    assert metrics["ticks-4/match_score_at_16"] == 0.5
    assert not any("elo_low" in name or "brier" in name for name in metrics)
    assert len(client.get_metric_history(run_id, "ticks-4/elo_at_16")) == 1
    assert run.data.params["variant.ticks-4"] == "net.ticks=4"
    assert run.data.params["variant.base"] == "none"
    stored = {path.name: path for path in (tmp_path / "services").rglob("*.*")}
    assert json.loads(stored["study.json"].read_text())["id"] == results()["id"]
    assert ElementTree.parse(stored["elo.svg"]).getroot().tag.endswith("svg")

    assert record_study(uri, results(elo=500.0), files) == run_id  # other results, the same study
    assert client.get_run(run_id).data.metrics["ticks-4/elo_at_16"] == 500.0


def test_a_store_that_is_away_is_a_tracking_error(tmp_path):
    (tmp_path / "mlflow.db").write_text("no database")
    with pytest.raises(TrackingError, match=r"mlflow\.db failed"):
        record_study(f"sqlite:///{tmp_path / 'mlflow.db'}", results(), [tmp_path / "study.json"])
