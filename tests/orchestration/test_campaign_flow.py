"""A small campaign as a user runs it: what is in its folder, in Prefect and in MLflow after it."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.timeout(300)]
psutil = pytest.importorskip("psutil")
pytest.importorskip("prefect")
pytest.importorskip("mlflow")

from mlflow.tracking import MlflowClient  # noqa: E402
from prefect.client.orchestration import SyncPrefectClient, get_client  # noqa: E402
from prefect.client.schemas.filters import LogFilter, LogFilterTaskRunId  # noqa: E402
from prefect.client.schemas.objects import Artifact, FlowRun, State, TaskRun  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from chess_snn import __version__ as chess_snn_version  # noqa: E402
from chess_snn.campaign import CampaignFolder, read_receipts  # noqa: E402
from chess_snn.campaign.store.folder import REPORT  # noqa: E402
from chess_snn.campaign.strength.matches import read_final_matches  # noqa: E402
from chess_snn.campaign.viewing.figure import GROUPS  # noqa: E402
from chess_snn.campaign.viewing.figures import metrics_of  # noqa: E402
from chess_snn.cli.main import app  # noqa: E402
from chess_snn.data import verify_folder  # noqa: E402
from chess_snn.flows.links import artifact_key  # noqa: E402
from chess_snn.flows.servers import PREFECT_DATABASE, prefect_server  # noqa: E402
from chess_snn.report.page import report_html  # noqa: E402
from chess_snn.tasks.compute import WAITING  # noqa: E402
from chess_snn.tasks.tracking import EXPERIMENT, MODEL_NAME, local_tracking_uri  # noqa: E402
from chess_snn.tasks.tracking.recorder import ALARMS_TAG  # noqa: E402
from chess_snn.tasks.tracking.registry import model_id_of  # noqa: E402

NUM_ITERATIONS = 2
NUM_SHARDS = 4
NUM_WORKERS = 2
SETTINGS = (
    f"campaign.iterations={NUM_ITERATIONS}", f"execution.workers={NUM_WORKERS}", "net.size=tiny",
    f"self_play.games_per_iteration={4 * NUM_SHARDS}", "self_play.games_per_shard=4",
    "self_play.max_plies_first=6", "self_play.max_plies_last=8", "search.simulations_first=2",
    "search.simulations_last=4", "training.batch_size=32", "evaluation.num_openings=1",
    "evaluation.max_plies=6", 'evaluation.opponents=["random", "greedy", "greedy~25"]',
    "evaluation.won_positions=2", "evaluation.final_openings=1", "evaluation.final_simulations=2",
    "evaluation.ladder_test=true", "evaluation.ladder_test_games=2",
    "promotion.max_openings=3", "promotion.openings_each=1",
)
FINAL_NAMES = ("random-0", "random-2", "greedy-2", "earlier-2")
METRICS = (
    "1_strength/score", "1_strength/score_random",
    "1_strength/score_greedy~25", "1_strength/score_earlier", "1_strength/conversion_rate",
    "1_strength/ladder_simulations",
    "2_learning/total_loss", "2_learning/value_loss", "2_learning/policy_loss",
    "2_learning/holdout_value_loss_after", "2_learning/reference_policy_accuracy",
    "3_self_play/draw_rate", "3_self_play/plies_mean", "4_spikes/spike_rate",
    "5_speed/games_per_s", "5_speed/positions_per_s", "5_speed/samples_per_s",
    "5_speed/self_play_s", "5_speed/iteration_s",
    "6_devices/ranks",
)


@dataclass(frozen=True)
class Finished:
    folder: CampaignFolder
    home: Path
    output: str
    survivors: list[str]


def chess_snn(*arguments: str) -> subprocess.CompletedProcess:
    command = [str(Path(sys.executable).with_name("chess-snn")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)


def processes_of(directory: Path) -> list[str]:
    """Command lines of living processes that hold a file in ``directory`` or name it."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join([*process.cmdline(), process.cwd(), *process.environ().values()])
            if str(directory) in words and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {words[:200]}")
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            continue
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Finished:
    home = tmp_path_factory.mktemp("home")
    directory = tmp_path_factory.mktemp("flow") / "small-campaign"
    settings = [f"--set={setting}" for setting in SETTINGS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CHESS_SNN_HOME", str(home))
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        done = chess_snn("campaign", "start", "--dir", str(directory), *settings)
        survivors = processes_of(directory)
    assert done.returncode == 0, done.stdout + done.stderr
    return Finished(CampaignFolder.open(directory), home, done.stdout, survivors)


def test_no_process_is_left(finished):
    assert finished.survivors == []


def test_the_terminal_says_what_was_learned_and_what_to_do_next(finished):
    lines = finished.output.splitlines()
    for number, share in enumerate(("50%", "100%")):
        (line,) = [x for x in lines if x.startswith(f"iteration {number} ({share} ")]
        assert "score" in line
    # Six plies end no game: the window is tiny, and that is told once when it is new.
    assert sum(x.startswith("ALARM replay starving since iteration 0") for x in lines) == 2
    assert f"chess-snn ui {finished.folder.path}" in finished.output


def test_everything_committed_is_whole(finished):
    folder = finished.folder
    receipts = read_receipts(folder)
    assert [receipt.iteration for receipt in receipts] == list(range(NUM_ITERATIONS))
    for iteration, receipt in enumerate(receipts):
        assert len(receipt.shards) == NUM_SHARDS
        assert receipt.statistics.games == 4 * NUM_SHARDS
        assert receipt.training.generation == iteration + 1
        assert [match.name for match in receipt.matches] == [
            "random", "greedy", "greedy~25", "earlier"
        ]
        assert receipt.conversion.won <= 32
        for shard in range(NUM_SHARDS):
            verify_folder(folder.shard(iteration, shard))
    for generation in range(NUM_ITERATIONS + 1):
        verify_folder(folder.checkpoint(generation))
    assert not list(folder.path.rglob(".tmp-*"))


@dataclass(frozen=True)
class Recorded:
    """Records of Prefect about it."""

    flow_runs: list[FlowRun]
    flow_names: dict[UUID, str]
    task_runs: list[TaskRun]
    artifacts: list[Artifact]
    lines: dict[UUID, list[str]]
    """Lines of the log of each task run."""
    alarms: list[dict]
    """Events of the campaign's alarms."""
    states: dict[str, list[State]]
    """States of each self-play task run, by its name, in order."""
    graphs: dict[str, dict[str, set[str]]]
    """The runs that lead to each run, by its name, as the page of each flow run draws them."""


@pytest.fixture(scope="module")
def recorded(finished) -> Recorded:
    with prefect_server(finished.folder.services), get_client(sync_client=True) as client:
        flow_runs = client.read_flow_runs()
        names = {run.flow_id: client.read_flow(run.flow_id).name for run in flow_runs}
        task_runs = client.read_task_runs()
        ours = LogFilter(task_run_id=LogFilterTaskRunId(any_=[run.id for run in task_runs]))
        lines: dict[UUID, list[str]] = {}
        for log in client.read_logs(ours, limit=200):
            lines.setdefault(log.task_run_id, []).append(log.message)
        found = client.request(
            "POST", "/events/filter",
            json={"filter": {"event": {"prefix": ["chess-snn.alarm."]}}},
        )
        states = {
            run.name: sorted(
                client.read_task_run_states(run.id), key=lambda state: state.timestamp
            )
            for run in task_runs if run.name.startswith("self_play")
        }
        graphs = {run.name: graph_of(client, run) for run in flow_runs}
        return Recorded(
            flow_runs, names, task_runs, client.read_artifacts(), lines, found.json()["events"],
            states, graphs,
        )


def graph_of(client: SyncPrefectClient, run: FlowRun) -> dict[str, set[str]]:
    answer = client.request("GET", f"/flow_runs/{run.id}/graph-v2")
    nodes = dict(answer.json()["nodes"])
    return {
        node["label"]: {nodes[parent["id"]]["label"] for parent in node["parents"]}
        for node in nodes.values()
    }


@pytest.mark.slow
def test_a_generation_is_evaluated_while_the_next_iteration_plays(finished, recorded):
    tasks = {run.name: run for run in recorded.task_runs}
    assert tasks["promote-0"].end_time <= tasks["promote-1"].start_time
    for iteration in range(1, NUM_ITERATIONS):
        begun_s = finished.folder.plan(iteration).stat().st_mtime
        assert begun_s < finished.folder.checkpoint(iteration).stat().st_mtime, "begun by training"
        network_there = tasks[f"train-{iteration - 1}"].end_time
        assert all(
            run.start_time >= network_there for name, run in tasks.items()
            if name.startswith(f"self_play-{iteration}-")
        )
    seconds = [receipt.seconds for receipt in read_receipts(finished.folder)]
    assert 0 < seconds[0].evaluation_hidden <= seconds[0].evaluation
    assert seconds[-1].evaluation_hidden == 0
    assert all(s.iteration >= s.self_play + s.training + s.evaluation for s in seconds)


def test_self_play_tasks_run_only_while_a_worker_runs_them(finished, recorded):
    for iteration in range(NUM_ITERATIONS):
        runs = [run for run in recorded.task_runs if run.name.startswith(f"self_play-{iteration}-")]
        waited = [
            run.name for run in runs
            if WAITING in [state.message for state in recorded.states[run.name]]
        ]
        assert len(waited) >= NUM_SHARDS - NUM_WORKERS
        for run in runs:
            *_, running, completed = recorded.states[run.name]
            assert (running.name, completed.name) == ("Running", "Completed")
            assert run.start_time == running.timestamp
        begun = sorted(run.start_time.timestamp() for run in runs)
        written = sorted(
            finished.folder.shard(iteration, shard).stat().st_mtime for shard in range(NUM_SHARDS)
        )
        # The clock of files may lag, never lead: each shard was written before its worker was free.
        for later, earlier in zip(begun[NUM_WORKERS:], written, strict=False):
            assert later > earlier, "more tasks are Running than there are workers"


def test_the_graph_of_an_iteration_has_an_edge_wherever_data_flows(recorded):
    """The gating match stood alone."""
    graph = recorded.graphs["iteration-1"]
    assert graph["train-1"] == {f"self_play-1-{shard}" for shard in range(NUM_SHARDS)}
    assert graph["evaluate-2"] == {"train-1"}
    assert graph["gating_match-2"] >= {"evaluate-2"}
    assert graph["promote-1"] >= {"train-1", "evaluate-2", "gating_match-2"}
    assert graph["record-1"] >= {"promote-1"}
    assert [name for name, parents in graph.items() if not parents] == [
        name for name in graph if name.startswith("self_play")
    ]


def test_the_graph_of_a_campaign_shows_which_iteration_waits_for_which(finished, recorded):
    graph = recorded.graphs[finished.folder.name]
    assert graph["iteration / iteration-0"] == set()
    assert graph["iteration / iteration-1"] == {"iteration / iteration-0"}
    assert graph["evaluate_final"] >= {"iteration / iteration-1"}
    assert graph["report"] >= {"evaluate_final"}
    assert graph["record-1"] >= {"report"}
    inputs = {each.input_type for run in recorded.task_runs
              for sources in run.task_inputs.values() for each in sources}
    assert inputs == {"task_run"}, "Prefect's page of task runs stays empty with any flow run"


def test_its_progress_is_an_artifact(finished, recorded):
    (progress,) = [artifact for artifact in recorded.artifacts if artifact.type == "progress"]
    assert progress.data == 100.0
    told = re.search(rf"^{NUM_WORKERS} workers: (\d+) games", progress.description, re.MULTILINE)
    assert told is not None, progress.description
    assert int(told[1]) >= NUM_ITERATIONS * NUM_SHARDS * 4
    (campaign,) = [run for run in recorded.flow_runs if run.parent_task_run_id is None]
    assert progress.flow_run_id == campaign.id


def test_each_task_says_in_its_log_what_it_did_and_where(finished, recorded):
    (receipt, _) = read_receipts(finished.folder)
    said = {run.name: " ".join(recorded.lines[run.id]) for run in recorded.task_runs
            if run.id in recorded.lines}
    for shard in range(NUM_SHARDS):
        line = said[f"self_play-0-{shard}"]
        assert re.search(r"/cpu-\d on .+: 4 games \(.*\), .* plies each, ", line)
    assert re.search(r"/cpu-\d on .*: generation 1 after .* 1 rank, ", said["train-0"])
    assert f"value {receipt.training.metrics['value_loss']:.3f}" in said["train-0"]
    match = receipt.matches[0]
    assert f"random {match.score_text}" in said["evaluate-1"]
    assert "generation 2" in said["gating_match-2"]
    assert "generation 1" in said["promote-0"]


def test_each_iteration_has_a_table(finished, recorded):
    tables = [artifact for artifact in recorded.artifacts if artifact.type == "table"]
    iterations = {run.id for run in recorded.flow_runs if run.parent_task_run_id is not None}
    assert {table.flow_run_id for table in tables} == iterations
    assert {table.key for table in tables} == {artifact_key(finished.folder)}
    for table in tables:
        figures = {row["figure"]: row["value"] for row in json.loads(table.data)}
        assert int(figures["games"]) == 4 * NUM_SHARDS
        assert f"chess-snn ui {finished.folder.path}" in table.description


def test_the_report_is_written_and_linked(finished, recorded):
    path = finished.folder.path / REPORT
    assert path.read_text() == report_html(finished.folder)
    assert str(path) in finished.output
    assert f"chess-snn web --model {finished.folder.path}" in finished.output
    (link,) = [
        artifact for artifact in recorded.artifacts if artifact.key.endswith("-report")
    ]
    assert str(path) in link.data
    assert "file:" not in link.data, "a browser refuses it from a page"
    assert f"chess-snn ui {finished.folder.path}" in link.data, "there is no MLflow server"


def test_a_new_alarm_is_one_event_related_to_the_flow_run(finished, recorded):
    (event,) = recorded.alarms
    assert event["event"] == "chess-snn.alarm.replay-starving"
    assert event["resource"]["prefect.resource.id"] == (
        f"chess-snn.campaign.{finished.folder.campaign_id}"
    )
    assert event["payload"]["since_iteration"] == 0
    assert event["payload"]["directory"] == str(finished.folder.path)
    (campaign,) = [run for run in recorded.flow_runs if run.parent_task_run_id is None]
    assert f"prefect.flow-run.{campaign.id}" in [
        related["prefect.resource.id"] for related in event["related"]
    ]
    assert campaign.name == finished.folder.name


def test_prefect_shows_every_run_completed(recorded):
    flows = Counter((recorded.flow_names[r.flow_id], r.state_name) for r in recorded.flow_runs)
    iterations = {run.id for run in recorded.flow_runs if run.parent_task_run_id is not None}
    tasks = {
        flow_run: Counter(
            (run.name.split("-")[0], run.state_name)
            for run in recorded.task_runs if run.flow_run_id == flow_run
        )
        for flow_run in iterations
    }
    assert flows == {
        ("campaign", "Completed"): 1, ("iteration", "Completed"): NUM_ITERATIONS
    }
    assert len(tasks) == NUM_ITERATIONS
    for counts in tasks.values():
        assert counts - Counter({("gating_match", "Completed"): 1}) == {
            ("self_play", "Completed"): NUM_SHARDS,
            **{(name, "Completed"): 1 for name in ("train", "evaluate", "promote", "record")},
        }
    num_matches = sum(counts["gating_match", "Completed"] for counts in tasks.values())
    assert num_matches == NUM_ITERATIONS - 1


def test_only_flow_runs_have_the_tag_of_the_campaign_bug(finished, recorded):
    """Prefect asks its server for a place before each task run with a tag."""
    tag = f"campaign:{finished.folder.campaign_id}"
    assert all(tag in run.tags for run in recorded.flow_runs)
    iterations = {run.id for run in recorded.flow_runs if run.parent_task_run_id is not None}
    assert [run.name for run in recorded.task_runs if run.flow_run_id in iterations and run.tags] \
        == []


@pytest.fixture(scope="module")
def tracking(finished) -> MlflowClient:
    uri = local_tracking_uri(finished.home / "services")
    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def test_mlflow_has_one_finished_run_with_a_point_an_iteration(finished, tracking):
    experiment = tracking.get_experiment_by_name(EXPERIMENT)
    (run,) = tracking.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    assert (run.data.params["net.size"], run.data.params["net.channels"]) == ("tiny", "32")
    receipts = read_receipts(finished.folder)
    for name in METRICS:
        stored = tracking.get_metric_history(run.info.run_id, name.replace("~", "_"))
        points = [(point.step, point.value) for point in stored]
        expected = [
            (receipt.iteration, pytest.approx(metrics_of(finished.folder.config, receipt)[name]))
            for receipt in receipts
        ]
        assert points == expected, name
    busy = tracking.get_metric_history(run.info.run_id, "6_devices/device_utilisation")
    assert busy, "two seconds pass in an iteration"
    assert all(0 < point.value <= 1 for point in busy)
    for match in read_final_matches(finished.folder):
        name = f"1_strength/final_score_{match.name.replace('-', '_')}"
        (point,) = tracking.get_metric_history(run.info.run_id, name)
        assert (point.step, point.value) == (NUM_ITERATIONS - 1, pytest.approx(match.score))
    assert "replay starving" in run.data.tags[ALARMS_TAG]
    alarms = tracking.get_metric_history(run.info.run_id, "2_learning/alarms")
    assert all(point.value >= 1.0 for point in alarms)
    assert len(alarms) == NUM_ITERATIONS
    names = tracking.get_run(run.info.run_id).data.metrics
    assert {name.partition("/")[0] for name in names} == {
        f"{number}_{group}" for number, group in enumerate(GROUPS, 1)
    }
    assert len(names) <= 90


def test_every_generation_is_a_version_and_two_have_aliases(finished, tracking):
    receipts = read_receipts(finished.folder)
    versions = tracking.search_model_versions(f"name = '{MODEL_NAME}'")
    assert sorted(int(version.tags["generation"]) for version in versions) == [
        receipt.training.generation for receipt in receipts
    ]
    candidate = tracking.get_model_version_by_alias(MODEL_NAME, "candidate")
    alias = f"champion-{finished.folder.campaign_id[:8]}"
    champion = tracking.get_model_version_by_alias(MODEL_NAME, alias)
    shared = tracking.get_model_version_by_alias(MODEL_NAME, "champion")
    assert shared.tags["campaign_id"] == finished.folder.campaign_id
    assert int(candidate.tags["generation"]) == NUM_ITERATIONS
    assert int(champion.tags["generation"]) == receipts[-1].champion
    numbers = {name: float(tag) for name, tag in candidate.tags.items() if name.startswith("elo")}
    assert numbers
    assert numbers.keys() <= {"elo", "elo_low", "elo_high"}
    assert set(candidate.tags) - set(numbers) == {
        "games", "search_budget", "scale", "promotion", "generation", "campaign", "campaign_id"
    }
    assert candidate.tags["campaign_id"] == finished.folder.campaign_id
    assert candidate.description.startswith(f"# {finished.folder.name}, generation ")
    params = tracking.get_logged_model(model_id_of(candidate)).params
    assert params["weights_digest"] == receipts[-1].training.weights_digest
    assert params["devices"] == "1 x cpu"
    assert {"net.size", "net.parameters", "dataset", "torch", "python", "sources", "machine"} \
        <= set(params)


def test_the_run_says_what_made_it_and_has_its_files(finished, tracking):
    experiment = tracking.get_experiment_by_name(EXPERIMENT)
    assert experiment.tags["mlflow.experimentKind"] == "custom_model_development"
    (run,) = tracking.search_runs([experiment.experiment_id])
    assert run.data.tags["chess_snn.version"] == chess_snn_version
    assert run.data.tags["chess_snn.devices"] == "1 x cpu"
    kept = finished.home / "services" / "mlartifacts" / EXPERIMENT / run.info.run_id / "artifacts"
    assert {path.name for path in kept.iterdir()} == {
        "campaign.log", "campaign.toml", "report.html", "results.csv", "sample-games.pgn",
    }
    assert (kept / "report.html").read_bytes() == (finished.folder.path / REPORT).read_bytes()
    lines = finished.folder.log_file.read_text().splitlines()
    assert all(datetime.fromisoformat(line.partition(" ")[0]) for line in lines)
    assert sum("iteration 1 (100%" in line for line in lines) == 1
    rows = (kept / "results.csv").read_text().splitlines()
    assert len(rows) == 1 + NUM_ITERATIONS
    assert (kept / "sample-games.pgn").read_text().count("[Event ") == 10


def test_campaigns_can_be_plotted_by_what_they_cost(finished, tracking):
    (run,) = tracking.search_runs([tracking.get_experiment_by_name(EXPERIMENT).experiment_id])
    games = tracking.get_metric_history(run.info.run_id, "3_self_play/all_games")
    assert [point.value for point in games] == [4.0 * NUM_SHARDS, 8.0 * NUM_SHARDS]
    for name in ("3_self_play/all_positions", "6_devices/device_seconds", "5_speed/elapsed_s"):
        first, second = tracking.get_metric_history(run.info.run_id, name)
        assert 0 < first.value < second.value, name
    steps = tracking.get_metric_history(run.info.run_id, "2_learning/step_total_loss")
    assert [point.step for point in steps] == sorted({point.step for point in steps})
    assert len(steps) >= NUM_ITERATIONS


def test_status_reads_the_folder_alone(finished):
    directory = str(finished.folder.path)
    body = json.loads(CliRunner().invoke(app, ["campaign", "status", directory, "--json"]).stdout)
    assert (body["finished"], body["iterations"]) == (NUM_ITERATIONS, NUM_ITERATIONS)
    assert body["is_finished"] is True
    assert [alarm["name"] for alarm in body["alarms"]] == ["replay starving"]
    assert [match["name"] for match in body["final_matches"]] == list(FINAL_NAMES)
    assert body["id"] == finished.folder.campaign_id
    assert [row["iteration"] for row in body["rows"]] == list(range(NUM_ITERATIONS))
    assert {name.partition("/")[2] for name in METRICS} <= set(body["rows"][0])


def modified(directory: Path) -> dict[Path, int]:
    """When each thing that a campaign commits was last written."""
    kinds = ("plans", "games", "checkpoints", "matches", "receipts")
    paths = [path for kind in kinds for path in (directory / kind).rglob("*")]
    return {path: path.stat().st_mtime_ns for path in [directory / "campaign.toml", *paths]}


@pytest.mark.slow
def test_a_lost_receipt_is_finished_again_and_no_other(finished, tmp_path):
    directory = shutil.copytree(finished.folder.path, tmp_path / "copy")
    folder = CampaignFolder.open(directory)
    expected, later = read_receipts(folder), folder.receipt(1).read_bytes()
    folder.receipt(0).unlink()
    resumed = chess_snn("campaign", "resume", str(directory))
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert folder.receipt(1).read_bytes() == later
    again = read_receipts(folder)
    assert again[1] == expected[1]
    for name in ("plan", "shards", "training", "matches", "promotion", "champion"):
        assert getattr(again[0], name) == getattr(expected[0], name)


@pytest.mark.slow
def test_a_finished_campaign_is_not_written_over(finished):
    directory = finished.folder.path
    before = modified(directory)
    started = chess_snn("campaign", "start", "--dir", str(directory))
    assert started.returncode == 2
    assert modified(directory) == before


@pytest.mark.slow
def test_a_finished_campaign_that_lacks_nothing_is_looked_at_and_no_server_started(
    finished, monkeypatch
):
    monkeypatch.setenv("CHESS_SNN_HOME", str(finished.home))  # which has the store of MLflow
    directory = finished.folder.path
    database = finished.folder.services / PREFECT_DATABASE
    before, served_ns = modified(directory), database.stat().st_mtime_ns
    resumed = chess_snn("campaign", "resume", str(directory))
    assert resumed.returncode == 0
    assert f"chess-snn ui {directory}" in resumed.stdout
    assert modified(directory) == before
    assert database.stat().st_mtime_ns == served_ns


@pytest.mark.slow
def test_a_finished_campaign_gets_the_view_that_it_lacks_and_is_not_run_again(finished):
    directory, report = finished.folder.path, finished.folder.path / REPORT
    before, text = modified(directory), report.read_text()
    report.unlink()
    resumed = chess_snn("campaign", "resume", str(directory))
    assert resumed.returncode == 0
    assert report.read_text() == text
    assert modified(directory) == before
