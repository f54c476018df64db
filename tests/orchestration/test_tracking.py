"""A real MLflow, on SQLite and behind a server: nothing twice, nothing pickled, nothing lost."""

import json
import logging
import math
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("mlflow")
pytest.importorskip("prefect")

import pandas as pd  # noqa: E402
from mlflow import pyfunc  # noqa: E402
from mlflow.artifacts import download_artifacts  # noqa: E402
from mlflow.exceptions import MlflowException  # noqa: E402
from mlflow.tracking import MlflowClient  # noqa: E402
from mlflow_stores import made_version, own_store, prepare_store  # noqa: E402

from chess_snn.campaign import CampaignFolder, load_config  # noqa: E402
from chess_snn.campaign.store.origin import Origin  # noqa: E402
from chess_snn.errors import CorruptDataError  # noqa: E402
from chess_snn.flows.server_processes import HOST, ServerSpec, running_server  # noqa: E402
from chess_snn.flows.servers import mlflow_spec  # noqa: E402
from chess_snn.games import get_game  # noqa: E402
from chess_snn.nets import (  # noqa: E402
    load_network,
    make_evaluator,
    network_digest,
)
from chess_snn.ports import free_port  # noqa: E402
from chess_snn.tasks.record import open_tracker, tracked_run  # noqa: E402
from chess_snn.tasks.tracking import (  # noqa: E402
    MODEL_NAME,
    TrackingError,
    local_tracking_uri,
    registry,
    tracking_uri,
)
from chess_snn.tasks.tracking.campaign_run import (  # noqa: E402
    campaign_pages,
    registered_version,
)
from chess_snn.tasks.tracking.recorder import CampaignTracker  # noqa: E402
from chess_snn.tasks.tracking.registry import model_id_of  # noqa: E402

START_FEN = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
MATED_FEN = "7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"
MATE_IN_TWO_FEN = "7k/8/5K2/8/8/8/8/R7 w - - 0 1"
START_FEN_ROW = pd.DataFrame({"fen": [START_FEN]})
METRICS = {"train/loss": 3.25, "self_play/draw_rate": 0.5}


@pytest.fixture
def uri(empty_store, tmp_path, monkeypatch) -> str:
    return own_store(empty_store, tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def registered(empty_store, weights, tmp_path_factory) -> Iterator[str]:
    """A store with one version, which is only read."""
    with pytest.MonkeyPatch.context() as patch:
        uri = own_store(empty_store, tmp_path_factory.mktemp("registered"), patch)
        version = made_version(0, weights)
        CampaignTracker(uri, campaign()).record_iteration(0, METRICS, version, weights)
        yield uri


@pytest.fixture
def folder(tmp_path) -> CampaignFolder:
    return CampaignFolder.create(tmp_path / "campaign", load_config("smoke"))


def campaign(campaign_id: str = "4f0c", name: str = "first light") -> CampaignFolder:
    """One whose folder is not there, and is not looked at."""
    return CampaignFolder(Path("/campaigns", name), campaign_id, load_config("smoke"))


def client(uri: str) -> MlflowClient:
    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def history(uri: str, run_id: str, metric: str) -> list[tuple[int, float]]:
    rows = client(uri).get_metric_history(run_id, metric)
    return sorted((row.step, row.value) for row in rows)


def load_served(uri: str, alias: str) -> pyfunc.PyFuncModel:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", uri)
        return pyfunc.load_model(f"models:/{MODEL_NAME}@{alias}")


def stored_files(uri: str, alias: str) -> Path:
    source = client(uri).get_model_version_by_alias(MODEL_NAME, alias).source
    return Path(download_artifacts(artifact_uri=source, tracking_uri=uri))


@pytest.mark.slow
def test_importing_the_package_does_not_import_mlflow():
    code = "import sys, chess_snn.tasks.tracking; print('mlflow' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_an_iteration_is_recorded_once(uri):
    tracker = CampaignTracker(uri, campaign())
    assert tracker.record_iteration(0, METRICS)
    assert tracker.record_iteration(1, {"train/loss": 3.0})
    assert not tracker.record_iteration(0, {"train/loss": 9.0})
    resumed = CampaignTracker(uri, campaign())
    assert resumed.run_id == tracker.run_id
    assert resumed.recorded_iterations == {0, 1}
    assert not resumed.record_iteration(1, {"train/loss": 3.0})
    assert history(uri, tracker.run_id, "train/loss") == [(0, 3.25), (1, 3.0)]
    assert history(uri, tracker.run_id, "self_play/draw_rate") == [(0, 0.5)]


@pytest.mark.parametrize(("name", "stored"), [
    ("evaluation/score_uci_/opt//sf (2)/./sf@9", "evaluation/score_uci_/opt/sf _2_/sf_9"),
    ("evaluation/score_uci_/" + 300 * "x", ("evaluation/score_uci_/" + 300 * "x")[:250]),
])
def test_whatever_an_opponent_is_called_its_score_is_stored_bug(uri, name, stored):
    tracker = CampaignTracker(uri, campaign())
    assert tracker.record_iteration(0, METRICS | {name: 0.25})
    assert history(uri, tracker.run_id, stored) == [(0, 0.25)]


def test_a_value_that_is_not_finite_is_named_and_left_out(uri, caplog):
    tracker = CampaignTracker(uri, campaign())
    with caplog.at_level(logging.WARNING):
        tracker.record_iteration(7, METRICS | {"grad": math.inf, "elo": math.nan})
    assert "elo, grad" in caplog.text
    assert history(uri, tracker.run_id, "grad") == []
    assert history(uri, tracker.run_id, "train/loss") == [(7, 3.25)]


def test_a_moved_campaign_keeps_its_run_and_a_copy_gets_its_own(uri, folder, tmp_path, weights):
    original = CampaignTracker(uri, folder)
    original.record_iteration(0, METRICS, made_version(0, weights), weights)
    original.promote(0)
    copy = CampaignFolder.open(shutil.copytree(folder.path, tmp_path / "copy"))
    with pytest.raises(TrackingError):
        campaign_pages(uri, copy, "http://host:5000")  # the original's run is not the copy's
    copied = CampaignTracker(uri, copy)
    assert copied.run_id != original.run_id
    assert copied.recorded_iterations == set()
    assert client(uri).get_run(copied.run_id).data.tags["chess_snn.copy_of"] == original.run_id
    copied.record_iteration(0, METRICS, made_version(0, weights), weights)
    copied.promote(0)
    own = client(uri).get_model_version_by_alias(MODEL_NAME, f"champion-{folder.campaign_id[:8]}")
    assert own.run_id == original.run_id, "the copy has another alias"
    assert registered_version(uri, copy, 0) is not None

    shutil.move(folder.path, tmp_path / "moved")
    moved = CampaignTracker(uri, CampaignFolder.open(tmp_path / "moved"))
    assert moved.run_id == original.run_id
    assert client(uri).get_run(moved.run_id).info.run_name == "moved"
    assert CampaignTracker(uri, copy).run_id == copied.run_id


def test_the_run_of_a_fork_stands_below_that_of_its_parent(uri, folder, tmp_path):
    parent = CampaignTracker(uri, folder)
    known = Origin(
        "somewhere", "d1", campaign=folder.name, campaign_id=folder.campaign_id, forked_at=2
    )
    for name, origin, link in (
        ("fork", known, "mlflow.parentRunId"),
        ("start", replace(known, forked_at=None), "chess_snn.parent_run"),
    ):
        made = CampaignFolder.create(tmp_path / name, folder.config, origin)
        tags = client(uri).get_run(CampaignTracker(uri, made).run_id).data.tags
        assert tags[link] == parent.run_id
        assert tags["chess_snn.origin"] == origin.describe()


def test_links_lead_to_the_run_and_to_all_models(uri):
    run_id = CampaignTracker(uri, campaign()).run_id
    run = client(uri).get_run(run_id)
    base = f"http://host:5000/#/experiments/{run.info.experiment_id}/runs"
    training = "workflowType=machine_learning"
    assert campaign_pages(uri, campaign(), "http://host:5000") == {
        "runs": f"{base}?{training}",
        "curves": f"{base}/{run_id}/model-metrics?{training}",
        "report": f"{base}/{run_id}/artifacts/report.html?{training}",
        "models": f"http://host:5000/#/models/chess-snn?{training}",
    }


def test_a_campaign_elsewhere_is_not_taken_for_one_that_was_moved(uri, folder, tmp_path):
    """Whether the folder of a run on another machine is still there cannot be asked."""
    first = CampaignTracker(uri, folder)
    client(uri).set_tag(first.run_id, "chess_snn.folder", "another-machine:/campaigns/a")
    assert CampaignTracker(uri, folder).run_id != first.run_id


CREATE_STORE = """
import sys
from chess_snn.campaign import CampaignFolder
from pathlib import Path
from chess_snn.tasks.tracking import tracking_uri
from chess_snn.tasks.tracking.recorder import CampaignTracker
print(CampaignTracker(tracking_uri(), CampaignFolder.open(Path(sys.argv[1]))).run_id)
"""


@pytest.mark.slow
def test_campaigns_that_begin_at_the_same_time_share_a_new_store(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("CHESS_SNN_HOME", str(tmp_path / "home"))
    folders = [
        CampaignFolder.create(tmp_path / name, load_config("smoke")).path for name in "abcd"
    ]
    processes = [
        subprocess.Popen([sys.executable, "-c", CREATE_STORE, path], stdout=subprocess.PIPE)
        for path in folders
    ]
    runs = {process.communicate(timeout=120)[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    assert len(runs) == 4


def test_the_run_ends_as_the_campaign_did_and_runs_again_when_resumed(uri, folder):
    run_id = open_tracker(folder).run_id
    for error in (None, ValueError, KeyboardInterrupt, None):
        with (
            nullcontext() if error is None else pytest.raises(error),
            tracked_run(folder, pytest.fail),
        ):
            assert client(uri).get_run(run_id).info.status == "RUNNING"
            if error is not None:
                raise error
        status = {None: "FINISHED", ValueError: "FAILED", KeyboardInterrupt: "KILLED"}[error]
        assert client(uri).get_run(run_id).info.status == status
    assert client(uri).get_run(run_id).data.params["net.size"] == "tiny"


def test_the_description_ends_with_the_newest_flow_run_and_keeps_what_it_had(uri, folder):
    tracker = open_tracker(folder)
    client(uri).set_tag(tracker.run_id, "mlflow.note.content", "A copy.")
    for number in (1, 2):
        with tracked_run(folder, pytest.fail, f"[run](http://prefect/{number})"):
            pass
    note = client(uri).get_run(tracker.run_id).data.tags["mlflow.note.content"]
    assert note.startswith("A copy.\n\n")
    assert note.endswith("[run](http://prefect/2)")


def test_the_configuration_becomes_dotted_parameters_of_legal_length(uri):
    many = {f"key{i}": i for i in range(150)}
    configuration = {"net": {"size": "tiny", "shape": [1, 2]}, "long": "x" * 10_000, "many": many}
    tracker = CampaignTracker(uri, campaign(), configuration=configuration)
    CampaignTracker(uri, campaign(), configuration=configuration | {"net": {"size": "base"}})
    params = client(uri).get_run(tracker.run_id).data.params
    assert params["net.size"] == "tiny", "MLflow keeps a parameter's first value"
    assert params["net.shape"] == "[1, 2]"
    assert len(params["long"]) == 6000
    assert params["long"].endswith("x…[cut]")
    assert len(params) == 153


def test_every_checkpoint_is_one_version_with_tags_and_aliases(uri, weights):
    tracker = CampaignTracker(uri, campaign())
    for generation in (0, 1, 0):
        tracker.record_iteration(
            generation, METRICS, made_version(generation, weights), weights
        )
    tracker.promote(0)
    versions = client(uri).search_model_versions(f"name = '{MODEL_NAME}'")
    assert sorted(found.tags["generation"] for found in versions) == ["0", "1"]
    candidate = client(uri).get_model_version_by_alias(MODEL_NAME, "candidate")
    champion = client(uri).get_model_version_by_alias(MODEL_NAME, "champion")
    assert (candidate.tags["generation"], champion.tags["generation"]) == ("1", "0")
    assert champion.tags == {
        "generation": "0", "campaign_id": "4f0c", "campaign": "first light",
        "elo": "210.4", "elo_low": "150.0", "elo_high": "301.0", "games": "60",
        "search_budget": "16", "scale": "ladder 1",
    }
    assert champion.description.startswith("# first light, generation 0")
    model = client(uri).get_logged_model(model_id_of(candidate))
    assert model.name == "gen-000001"
    digest = network_digest(load_network(weights))
    assert (model.params["net.size"], model.params["weights_digest"]) == ("tiny", digest)
    assert {metric.key: metric.value for metric in model.metrics}["train/loss"] == 3.25


def test_campaigns_of_one_store_take_the_champion_from_each_other_bug(uri, weights):
    for campaign_id in ("4f0c", "77aa"):
        tracker = CampaignTracker(uri, campaign(campaign_id, "one of two"))
        version = made_version(0, weights, campaign="one of two", campaign_id=campaign_id)
        tracker.record_iteration(0, METRICS, version, weights)
        tracker.promote(0)
    for campaign_id in ("4f0c", "77aa"):
        found = client(uri).get_model_version_by_alias(MODEL_NAME, f"champion-{campaign_id}")
        assert found.tags["campaign_id"] == campaign_id


def test_losses_by_step_are_recorded_with_their_iteration_and_once(uri):
    tracker = CampaignTracker(uri, campaign())
    points = [{"step": float(step), "total_loss": 1 / step} for step in range(1, 1200)]
    assert tracker.record_iteration(0, METRICS, steps=points)
    assert not CampaignTracker(uri, campaign()).record_iteration(0, METRICS, steps=points)
    stored = history(uri, tracker.run_id, "2_learning/step_total_loss")
    assert stored == [(step, pytest.approx(1 / step)) for step in range(1, 1200)]


def test_files_of_the_run_are_replaced(uri, tmp_path):
    tracker = CampaignTracker(uri, campaign())
    for text in ("old", "new"):
        (tmp_path / "files").mkdir(exist_ok=True)
        (tmp_path / "files" / "results.csv").write_text(text)
        tracker.keep_files(tmp_path / "files")
    run = client(uri).get_run(tracker.run_id)
    assert run.info.artifact_uri.startswith("mlflow-artifacts:/")
    (kept,) = (tmp_path / "home/services/mlartifacts").rglob("results.csv")
    assert kept.read_text() == "new"
    assert run.info.run_id in str(kept)


def test_a_checkpoint_that_is_not_the_network_of_its_receipt_is_not_registered(uri, weights):
    tracker = CampaignTracker(uri, campaign())
    with pytest.raises(CorruptDataError):
        tracker.record_iteration(0, METRICS, made_version(1, digest="of another"), weights)
    assert client(uri).search_model_versions(f"name = '{MODEL_NAME}'") == []
    assert CampaignTracker(uri, campaign()).recorded_iterations == set()


def test_only_a_recorded_generation_can_be_promoted(uri):
    with pytest.raises(TrackingError):
        CampaignTracker(uri, campaign()).promote(4)


def test_supervised_training_is_recorded_once_with_its_games(uri):
    games = {
        "name": "lichess.pgn", "digest": "d" * 32, "path": "/imports/lichess", "games": 12,
        "positions": 800,
    }
    points = [{"step": 0, "holdout_policy_loss": 3.4}, {"step": 40, "policy_loss": 2.5}]
    tracker = CampaignTracker(uri, campaign())
    assert tracker.record_supervised(points[:1], games) == 1
    assert CampaignTracker(uri, campaign()).record_supervised(points, games) == 1
    assert tracker.record_supervised(points, games) == 0
    assert history(uri, tracker.run_id, "2_learning/pretraining_holdout_policy_loss") == [(0, 3.4)]
    assert history(uri, tracker.run_id, "2_learning/pretraining_policy_loss") == [(40, 2.5)]
    (found,) = client(uri).get_run(tracker.run_id).inputs.dataset_inputs
    assert (found.dataset.name, found.dataset.digest) == ("lichess.pgn", "d" * 32)
    assert json.loads(found.dataset.source) == {"uri": "/imports/lichess"}
    assert json.loads(found.dataset.profile) == {"games": 12, "positions": 800}
    assert {tag.key: tag.value for tag in found.tags} == {"mlflow.data.context": "supervised"}


def test_the_stored_model_answers_like_the_network_it_was_made_of(registered, weights):
    answer, = load_served(registered, "candidate").predict(pd.DataFrame({"fen": [START_FEN]}))

    game = get_game("chess")
    batch = game.allocate(1)
    evaluation = make_evaluator(load_network(weights), precision="fp32").evaluate(
        game.planes(batch.state), batch.legal_actions, batch.num_legal
    )
    best = evaluation.legal_logits[0].argmax()
    assert answer["best_move"] == game.format_action(batch.state[0], batch.legal_actions[0, best])
    assert answer["wdl_stm"] == pytest.approx(evaluation.wdl_stm[0].tolist(), abs=1e-6)
    assert len(answer["policy"]) == 20
    assert sum(answer["policy"].values()) == pytest.approx(1)
    assert answer["error"] is None
    json.dumps(answer)


def test_the_stored_model_searches_and_draws_moves_as_it_is_asked(registered):
    served = load_served(registered, "candidate")
    positions = pd.DataFrame({"fen": [MATE_IN_TWO_FEN, MATED_FEN, START_FEN]})
    alone = served.predict(positions)
    searched = served.predict(positions, params={"simulations": 200})
    assert searched[0]["value_stm"] > alone[0]["value_stm"] + 0.3, "it sees the mate"
    assert searched[0]["wdl_stm"] == alone[0]["wdl_stm"]
    assert sum(searched[0]["policy"].values()) == pytest.approx(1, abs=1e-4)
    assert searched == served.predict(positions, params={"simulations": 200})
    assert "checkmate" in searched[1]["error"] == alone[1]["error"]
    drawn = {
        served.predict(START_FEN_ROW, params={"temperature": 2.0, "seed": seed})[0]["best_move"]
        for seed in range(8)
    }
    assert len(drawn) > 1
    assert drawn <= set(alone[2]["policy"])
    for wrong in ({"simulations": -1}, {"temperature": -0.5}):
        with pytest.raises(MlflowException):
            served.predict(positions, params=wrong)


def test_bad_and_finished_positions_are_named_and_the_others_answered(registered):
    fens = ["nonsense", START_FEN, "8/8/8/8/8/8/8/8 w - - 0 1", MATED_FEN]
    nonsense, start, kingless, mated = load_served(registered, "candidate").predict({"fen": fens})
    assert "nonsense" in nonsense["error"]
    assert "8/8/8/8/8/8/8/8" in kingless["error"]
    assert start["error"] is None
    assert start["best_move"]
    assert [row["fen"] for row in (nonsense, start, kingless, mated)] == fens
    assert nonsense["policy"] is kingless["wdl_stm"] is mated["best_move"] is None


def test_nothing_stored_is_a_pickle_and_nothing_lands_in_the_working_folder(uri, weights, tmp_path):
    tracker = CampaignTracker(uri, campaign())
    tracker.record_iteration(0, METRICS, made_version(0, weights), weights)
    stored = stored_files(uri, "candidate")
    names = {str(path.relative_to(stored)) for path in stored.rglob("*") if path.is_file()}
    assert names == {
        "MLmodel", "conda.yaml", "input_example.json", "python_env.yaml",
        *(f"artifacts/network/{name}" for name in (
            "MANIFEST.json", "README.md", "model.toml", "weights.safetensors",
        )),
        "requirements.txt", "served_model.py", "serving_input_example.json",
    }
    assert (stored / "artifacts/network/weights.safetensors").read_bytes() == weights.read_bytes()
    assert stored.is_relative_to(tmp_path / "home" / "services" / "mlartifacts")
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_a_clone_that_is_not_installed_registers_models_bug(uri, weights, monkeypatch):
    def version_of(package):
        if package == "chess-snn":
            raise PackageNotFoundError(package)
        return "1.2+cpu"

    monkeypatch.setattr(registry, "version", version_of)
    CampaignTracker(uri, campaign()).record_iteration(0, METRICS, made_version(0, weights), weights)
    stored = stored_files(uri, "candidate")
    assert {"chess-snn", "torch==1.2"} <= set((stored / "requirements.txt").read_text().split())


@pytest.mark.parametrize("damage", ["a folder", "noise"])
def test_an_unusable_database_is_said_at_once(tmp_path, monkeypatch, damage):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    if damage == "a folder":
        (tmp_path / "mlflow.db").mkdir()
    else:
        (tmp_path / "mlflow.db").write_bytes(b"not a database" * 100)
    begun = time.monotonic()
    with pytest.raises(TrackingError, match=r"mlflow\.db"):
        prepare_store(local_tracking_uri(tmp_path))
    assert time.monotonic() - begun < 5


@pytest.mark.slow
def test_a_campaign_runs_without_its_store_and_is_recorded_later_bug(folder, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("CHESS_SNN_HOME", str(folder.path))
    folder.services.mkdir()
    database = folder.services / "mlflow.db"
    database.write_bytes(b"not a database" * 100)
    warnings, ran = [], []
    uri = tracking_uri()
    with tracked_run(folder, warnings.append):
        ran.append(True)
    assert ran
    assert len(warnings) == 2
    assert all("mlflow.db" in text for text in warnings)
    database.unlink()
    tracker = open_tracker(folder)
    assert tracker.record_iteration(0, METRICS)
    assert history(uri, tracker.run_id, "train/loss") == [(0, 3.25)]


@pytest.mark.fault(6)
@pytest.mark.slow
def test_a_server_that_goes_away_delays_the_curves_and_nothing_else(tmp_path, weights):
    port = free_port()
    store = local_tracking_uri(tmp_path)
    with running_server(mlflow_spec(tmp_path, port, store), start_timeout_s=90.0) as url:
        uri = prepare_store(url)
        assert uri == url
        tracker = CampaignTracker(uri, campaign())
        tracker.record_iteration(0, METRICS, made_version(0, weights), weights)
    begun = time.monotonic()
    with pytest.raises(TrackingError, match=r"http://127\.0\.0\.1"):
        tracker.record_iteration(1, METRICS, made_version(1, weights), weights)
    assert time.monotonic() - begun < 20
    with running_server(mlflow_spec(tmp_path, port, store), start_timeout_s=90.0):
        assert tracker.record_iteration(1, METRICS, made_version(1, weights), weights)
        assert tracker.recorded_iterations == {0, 1}
        assert history(uri, tracker.run_id, "train/loss") == [(0, 3.25), (1, 3.25)]
        assert len(client(uri).search_model_versions(f"name = '{MODEL_NAME}'")) == 2
        stored = client(uri).get_model_version_by_alias(MODEL_NAME, "candidate").source
        assert stored.startswith("mlflow-artifacts:")


@pytest.mark.slow
def test_mlflow_serves_the_registered_model_over_http(registered, tmp_path):
    port = free_port()
    spec = ServerSpec(
        name="model server",
        command=[
            sys.executable, "-m", "mlflow", "models", "serve", "--env-manager", "local",
            "--model-uri", f"models:/{MODEL_NAME}@candidate", "--host", HOST, "--port", str(port),
        ],
        environment={"MLFLOW_TRACKING_URI": registered, "PATH": path_with_our_programs()},
        url=f"http://{HOST}:{port}/invocations", health_url=f"http://{HOST}:{port}/health",
        log_file=tmp_path / "serve.log",
    )
    with running_server(spec, start_timeout_s=120) as url:
        good, bad = post(url, {"dataframe_split": {"columns": ["fen"],
                                                   "data": [[START_FEN], ["nonsense"]]}})
        listed, = post(url, {"inputs": {"fen": [START_FEN]}})
    assert len(good["policy"]) == 20
    assert good["best_move"] == listed["best_move"]
    assert "nonsense" in bad["error"]


def path_with_our_programs() -> str:
    """`mlflow models serve` looks for `uvicorn` there, as it is in an activated environment."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def post(url: str, body: dict) -> list[dict]:
    request = urllib.request.Request(
        url, data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    return json.load(urllib.request.urlopen(request))["predictions"]
