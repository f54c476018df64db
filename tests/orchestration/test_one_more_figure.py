"""One more figure of an iteration is one row: everything that shows figures takes it from there."""

import json

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow]
pytest.importorskip("mlflow")
pytest.importorskip("prefect")

from mlflow.tracking import MlflowClient  # noqa: E402
from mlflow_stores import prepare_store  # noqa: E402
from stored_files import copy_campaign  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from chess_snn.campaign.viewing import figures  # noqa: E402
from chess_snn.campaign.viewing.figure import Figure  # noqa: E402
from chess_snn.cli.main import app  # noqa: E402
from chess_snn.report.page import report_html  # noqa: E402
from chess_snn.tasks.record import record_at_rest  # noqa: E402
from chess_snn.web.server import CampaignPage  # noqa: E402

TOY = Figure(
    "speed", "toy", "toys", ".2f", lambda receipt: receipt.iteration + 7.25,
    places=("status", "learning"), heading="toys made", chart="Toys",
)


def test_a_row_of_the_table_reaches_mlflow_status_report_and_page(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("CHESS_SNN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(figures, "_FIGURES", (*figures._FIGURES, TOY))
    folder = copy_campaign(tmp_path)
    uri = prepare_store()
    record_at_rest(folder)
    client = MlflowClient(tracking_uri=uri)
    (experiment,) = (found for found in client.search_experiments() if found.name != "Default")
    (run,) = client.search_runs([experiment.experiment_id])
    recorded = client.get_metric_history(run.info.run_id, "5_speed/toy")
    assert {point.step: point.value for point in recorded} == {0: 7.25, 1: 8.25}
    status = CliRunner().invoke(app, ["campaign", "status", str(folder.path)])
    assert all(word in status.output for word in ("toys made", "7.25", "8.25"))
    status = CliRunner().invoke(app, ["campaign", "status", str(folder.path), "--json"])
    assert [row["toy"] for row in json.loads(status.stdout)["rows"]] == [7.25, 8.25]
    for page in (report_html(folder), CampaignPage(folder.path).report()):
        assert all(word in page for word in ("toys made", "Toys", "8.25"))
