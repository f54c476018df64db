"""The shipped preset on eight devices, simulated here: all play and train in every iteration."""

import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(900)]
pytest.importorskip("prefect")

from prefect.client.orchestration import get_client  # noqa: E402
from prefect.client.schemas.filters import LogFilter, LogFilterTaskRunId  # noqa: E402
from test_campaign_flow import chess_snn  # noqa: E402

from chess_snn.campaign import CampaignFolder, read_receipts  # noqa: E402
from chess_snn.devices import SIMULATED_GPUS  # noqa: E402
from chess_snn.flows.servers import prefect_server  # noqa: E402

NUM_GPUS = 8
SHARDS_EACH = 2
SETTINGS = (
    "self_play.games_per_iteration=32", "self_play.games_per_shard=4",
    "self_play.concurrent_games=4",
    "campaign.hours=0", "campaign.iterations=2", "net.size=tiny",
    "self_play.max_plies_first=6", "self_play.max_plies_last=6", "search.simulations_first=2",
    "search.simulations_last=2", "training.batch_size=32",
    "training.window_positions=10000", 'evaluation.opponents=["random"]',
    "evaluation.num_openings=1", "evaluation.max_plies=4", "evaluation.won_positions=1",
    "evaluation.ladder_test=false", "evaluation.final_openings=0",
    "promotion.max_openings=1", "promotion.openings_each=1",
)


def test_all_devices_play_and_train_in_every_iteration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CHESS_SNN_HOME", str(tmp_path))
    monkeypatch.setenv(SIMULATED_GPUS, str(NUM_GPUS))
    directory = tmp_path / "c"
    done = chess_snn(
        "campaign", "start", "--preset", "gpu", "--dir", str(directory),
        *(f"--set={setting}" for setting in SETTINGS),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{NUM_GPUS} workers on GPUs 0-7 (simulated)" in done.stdout
    assert "32 games an iteration" in done.stdout
    assert f"{NUM_GPUS} processes" in done.stdout
    assert "without a worker" not in done.stdout

    folder = CampaignFolder.open(directory)
    assert folder.config.training.micro_batch == 32 // NUM_GPUS
    receipts = read_receipts(folder)
    assert [receipt.training.metrics["ranks"] for receipt in receipts] == [NUM_GPUS] * 2
    assert [receipt.plan.num_shards for receipt in receipts] == [NUM_GPUS * SHARDS_EACH] * 2
    shards: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for name, line in task_lines(folder).items():
        iteration = int(name.split("-")[1])
        gpu = re.search(r"on (GPU \d) \(simulated\)", line)
        assert gpu is not None, line
        shards[iteration][gpu[1]] += 1
    for receipt in receipts:
        assert set(shards[receipt.iteration]) == {f"GPU {index}" for index in range(NUM_GPUS)}
        assert shards[receipt.iteration].total() == NUM_GPUS * SHARDS_EACH


def task_lines(folder: CampaignFolder) -> dict[str, str]:
    """Line of each self-play task in Prefect's log, by the task run's name."""
    with prefect_server(folder.services), get_client(sync_client=True) as client:
        runs = {run.id: run.name for run in client.read_task_runs()
                if run.name.startswith("self_play")}
        wanted = LogFilter(task_run_id=LogFilterTaskRunId(any_=list(runs)))
        lines = defaultdict(str)
        for log in client.read_logs(wanted, limit=200):
            lines[runs[log.task_run_id]] += log.message
        return dict(lines)
