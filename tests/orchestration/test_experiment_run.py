"""An experiment in MLflow: one run, however often it is recorded, with its campaigns below it."""

import json

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("mlflow")


from chess_snn.tasks.tracking import EXPERIMENT, TrackingError, local_tracking_uri  # noqa: E402
from chess_snn.tasks.tracking.campaign_run import CAMPAIGN_ID_TAG  # noqa: E402
from chess_snn.tasks.tracking.experiment_run import record_experiment  # noqa: E402
from chess_snn.tasks.tracking.store import open_store  # noqa: E402


def results(mean=0.1):
    verdict = {
        "variant": "small", "simulations": 16, "is_equal_time": False, "mean": mean, "low": None,
        "high": 0.3, "num_seeds": 2,
    }
    return {
        "id": "0123456789abcdef", "name": "batch size",
        "file": {"budget": {"games": 320}, "variants": {"small": {"training.batch_size": 64}}},
        "runs": [{"campaign_id": "c1"}, {"campaign_id": ""}],
        "verdicts": [verdict, verdict | {"is_equal_time": True}],
        "rows": [{
            "variant": "small", "seed": 1, "simulations": 16, "is_equal_time": False, "elo": 400.0,
        }],
    }


@pytest.mark.slow
def test_an_experiment_is_one_run_with_its_verdicts_and_its_campaigns_below_it(tmp_path):
    uri, folder = local_tracking_uri(tmp_path / "services"), tmp_path / "batch"
    folder.mkdir()
    files = [folder / "results.json"]
    files[0].write_text(json.dumps(results()))
    client = open_store(uri)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    child = client.create_run(experiment.experiment_id, tags={CAMPAIGN_ID_TAG: "c1"})
    run_id = record_experiment(uri, results(), files)
    assert record_experiment(uri, results(), files) == run_id
    tags = client.get_run(child.info.run_id).data.tags
    assert tags["mlflow.parentRunId"] == run_id
    run = client.get_run(run_id)
    assert (run.info.run_name, run.info.status) == ("batch size", "FINISHED")
    metrics = run.data.metrics
    assert metrics["small/mean_at_16"] == metrics["small/mean_equal_time"] == 0.1
    assert metrics["small-1/elo_at_16"] == 400.0
    assert not any("low" in name for name in metrics)
    assert len(client.get_metric_history(run_id, "small/mean_at_16")) == 1
    assert run.data.params["variants.small.training.batch_size"] == "64"
    stored = {path.name: path for path in (tmp_path / "services").rglob("*.*")}
    assert json.loads(stored["results.json"].read_text())["id"] == results()["id"]
    assert record_experiment(uri, results(mean=0.2), files) == run_id  # other results
    assert client.get_run(run_id).data.metrics["small/mean_at_16"] == 0.2


def test_a_store_that_is_away_is_a_tracking_error(tmp_path):
    (tmp_path / "mlflow.db").write_text("no database")
    with pytest.raises(TrackingError, match=r"mlflow\.db failed"):
        record_experiment(
            f"sqlite:///{tmp_path / 'mlflow.db'}", results(), [tmp_path / "results.json"]
        )
