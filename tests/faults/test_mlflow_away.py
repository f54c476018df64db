"""A campaign whose MLflow is damaged or away runs to its end, says so, and is recorded later."""

from pathlib import Path

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(7200)]
pytest.importorskip("mlflow")

from campaign_driver import (  # noqa: E402
    SMALL_OPTIONS,
    faults_at,
    finish,
    launch,
    wait_until,
)
from mlflow.tracking import MlflowClient  # noqa: E402
from small_campaigns import SMALL, assert_same_campaign, assert_whole  # noqa: E402

from chess_snn.campaign import CampaignFolder, load_config  # noqa: E402
from chess_snn.flows.server_processes import HOST, running_server  # noqa: E402
from chess_snn.flows.servers import mlflow_spec  # noqa: E402
from chess_snn.ports import free_port  # noqa: E402
from chess_snn.tasks.tracking import (  # noqa: E402
    EXPERIMENT,
    MODEL_NAME,
    champion_of_campaign,
    local_tracking_uri,
)

SETTINGS = (*SMALL, "campaign.iterations=1", "execution.workers=1")


@pytest.mark.fault(6)
@pytest.mark.parametrize("fault", ["damaged database", "unreachable server"])
def test_a_campaign_goes_on_without_mlflow_and_is_recorded_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
):
    monkeypatch.setenv("CHESS_SNN_HOME", str(tmp_path / "home"))
    folder = CampaignFolder.create(tmp_path / "c", load_config(settings=SETTINGS))
    database, log, environment = tmp_path / "home/services/mlflow.db", tmp_path / "log", {}
    if fault == "damaged database":
        database.parent.mkdir(parents=True)
        database.write_bytes(b"not a database" * 100)
    else:
        environment["MLFLOW_TRACKING_URI"] = f"http://{HOST}:{free_port()}"

    finish(launch("resume", str(folder.path), log=log, environment=environment), log)
    assert_whole(folder.path)
    text = log.read_text()
    assert text.count("MLflow cannot be told") == 2  # it runs; it has ended
    # After the iteration, and after the report.
    assert text.count("not recorded in MLflow yet") == 2
    assert "Traceback" not in text

    database.unlink(missing_ok=True)
    finish(launch("resume", str(folder.path), log=log), log)
    assert "recorded 1 of them in MLflow" in log.read_text()
    uri = local_tracking_uri(database.parent)
    client = MlflowClient(tracking_uri=uri, registry_uri=uri)
    (run,) = client.search_runs([client.get_experiment_by_name(EXPERIMENT).experiment_id])
    assert run.info.status == "FINISHED"
    assert len(client.get_metric_history(run.info.run_id, "2_learning/value_loss")) == 1
    alias = champion_of_campaign(folder.campaign_id)  # without a ladder test there is no other
    assert client.get_model_version_by_alias(MODEL_NAME, alias).tags["generation"] == "1"


@pytest.mark.fault(6)
def test_metrics_of_a_server_that_was_away_come_once(tmp_path: Path, undisturbed_small: Path):
    path, log, fired = tmp_path / "c", tmp_path / "log", tmp_path / "fired"
    port, store = free_port(), local_tracking_uri(tmp_path / "mlflow")
    with running_server(mlflow_spec(tmp_path, port, store), start_timeout_s=300.0) as url:
        environment = {"MLFLOW_TRACKING_URI": url}
        process = launch(
            "start", "--dir", str(path), *SMALL_OPTIONS, log=log,
            environment=environment | faults_at(fired, mlflow__recorded="hold"),
        )
        wait_until((fired / "mlflow.recorded").exists, process, log)
    (fired / "mlflow.recorded").unlink()  # the first iteration is recorded, the server is gone
    finish(process, log)
    assert "not recorded in MLflow yet" in log.read_text()
    assert_same_campaign(path, undisturbed_small)

    with running_server(mlflow_spec(tmp_path, port, store), start_timeout_s=300.0):
        finish(launch("resume", str(path), log=log, environment=environment), log)
        assert "recorded 1 of them in MLflow" in log.read_text()
        client = MlflowClient(tracking_uri=url, registry_uri=url)
        (run,) = client.search_runs([client.get_experiment_by_name(EXPERIMENT).experiment_id])
        for name in ("2_learning/value_loss", "3_self_play/games", "5_speed/iteration_s"):
            points = client.get_metric_history(run.info.run_id, name)
            assert [point.step for point in points] == list(range(2)), name
        versions = client.search_model_versions(f"name = '{MODEL_NAME}'")
        assert sorted(version.tags["generation"] for version in versions) == ["1", "2"]
