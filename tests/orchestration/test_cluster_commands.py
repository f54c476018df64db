"""A scheduler and workers as a user starts them, without Prefect and MLflow; a campaign there."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(900)]
psutil = pytest.importorskip("psutil")
pytest.importorskip("prefect")
pytest.importorskip("mlflow")

from small_campaigns import SMALL  # noqa: E402

from chess_snn.campaign import CampaignFolder, read_receipts  # noqa: E402
from chess_snn.ports import free_port  # noqa: E402
from chess_snn.tasks.cluster.security import make_certificates  # noqa: E402

SETTINGS = (*SMALL, "self_play.games_per_shard=3", "execution.workers=0",
            "promotion.rule=score")
PATIENT_S = 240.0
GONE_WITHIN_S = 5.0
"""Time that is promised after a process was killed."""
BLOCKED = "raise ImportError('a worker needs no {name}')"
OLDER = "import chess_snn; chess_snn.__version__ = '0.0.1'"


class Program:
    """One of our commands, and what it says."""

    def __init__(
        self, log: Path, *arguments: str, path: Path | None = None, here: Path | None = None,
        **variables: str,
    ):
        self.log = log
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT", "MLFLOW"))}
        if path is not None:
            variables["PYTHONPATH"] = f"{path}:{inherited.get('PYTHONPATH', '')}"
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "chess_snn", *arguments], env=inherited | variables,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True, cwd=here,
            )

    @property
    def text(self) -> str:
        return self.log.read_text()

    def wait_for(self, words: str, times: int = 1) -> None:
        deadline = time.monotonic() + PATIENT_S
        while self.text.count(words) < times:
            assert self.process.poll() is None, f"ended before {words!r}:\n{self.text}"
            assert time.monotonic() < deadline, f"never said {words!r}:\n{self.text}"
            time.sleep(0.1)

    def end(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)

    def kill(self) -> None:
        """Kill what a failed test left."""
        if self.process.poll() is None:
            for child in psutil.Process(self.process.pid).children(recursive=True):
                child.kill()
            self.process.kill()
        self.process.wait()


@pytest.fixture
def start(tmp_path):
    programs = []

    def start(*arguments: str, **options) -> Program:
        programs.append(Program(tmp_path / f"program-{len(programs)}.log", *arguments, **options))
        return programs[-1]

    yield start
    for program in programs:
        program.kill()


@pytest.fixture
def certificates(tmp_path) -> str:
    make_certificates(tmp_path / "certs")
    return str(tmp_path / "certs")


def packages(folder: Path, **modules: str) -> Path:
    """A folder for PYTHONPATH whose modules come before all others."""
    folder.mkdir()
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def test_a_campaign_on_workers_that_have_dask_alone(start, certificates, tmp_path):
    port = free_port()
    address = f"tls://127.0.0.1:{port}"
    blocked = packages(
        tmp_path / "blocked", **{name: BLOCKED.format(name=name) for name in ("prefect", "mlflow")}
    )
    older = packages(tmp_path / "older", sitecustomize=OLDER)
    scheduler = start("cluster", "scheduler", "--port", str(port), "--certificates", certificates)
    scheduler.wait_for(f"scheduler at {address}")
    worker = ("cluster", "worker", address, "--device", "cpu", "--certificates", certificates)
    (elsewhere := tmp_path / "elsewhere").mkdir()
    good = start(*worker, "--workers", "2", path=blocked, here=elsewhere)
    good.wait_for("is up", times=2)
    wrong = start(*worker, "--workers", "1", "--name", "old-box", path=older)
    wrong.wait_for("is up")

    directory = tmp_path / "campaign"
    campaign = start(
        "campaign", "start", "--dir", directory.name, "--cluster", address,
        *(f"--set={setting}" for setting in SETTINGS), here=tmp_path,
        CHESS_SNN_CERTIFICATES=certificates,
    )
    assert campaign.process.wait(PATIENT_S * 2) == 0, campaign.text
    assert "2 workers" in campaign.text
    assert "old-box/cpu-0" in campaign.text
    assert wrong.end() == 0
    folder = CampaignFolder.open(directory)
    assert len(read_receipts(folder)) == 2
    assert list(elsewhere.iterdir()) == [], "workers read and write the folder by its path"
    assert (folder.config.cluster.kind, folder.config.cluster.address) == ("address", address)

    assert good.process.poll() is None, "workers stay for the next campaign"
    assert scheduler.end() == 0
    good.wait_for("its scheduler is gone", times=2)
    again = start("cluster", "scheduler", "--port", str(port), "--certificates", certificates)
    again.wait_for(f"scheduler at {address}")
    good.wait_for("is up", times=4)
    children = psutil.Process(good.process.pid).children(recursive=True)
    assert good.end() == 0
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
    assert "Traceback" not in good.text + campaign.text


def test_a_worker_ends_with_its_killed_program(start):
    port = free_port()
    scheduler = start("cluster", "scheduler", "--port", str(port))
    scheduler.wait_for("scheduler at tcp://")
    worker = start("cluster", "worker", f"tcp://127.0.0.1:{port}", "--workers", "1")
    worker.wait_for("is up")
    children = psutil.Process(worker.process.pid).children(recursive=True)
    worker.process.kill()
    _, alive = psutil.wait_procs(children, timeout=GONE_WITHIN_S)
    assert alive == []
