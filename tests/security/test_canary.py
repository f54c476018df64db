"""A campaign with secrets in its environment: none of them is in anything that it leaves or shows.

The same with servers that ask for a password: tests/orchestration/test_up_and_down.py.
"""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(1800)]
psutil = pytest.importorskip("psutil")
pytest.importorskip("prefect")
pytest.importorskip("mlflow")

from campaign_driver import SMALL_OPTIONS  # noqa: E402

ROOT = Path(__file__).parents[2]
CANARY = "canary-3f9a1c-password"
SECRETS = {
    # Nobody is there: the errors that tell of it name the address.
    "MLFLOW_TRACKING_URI": f"http://me:{CANARY}@127.0.0.1:9",
    "MLFLOW_TRACKING_PASSWORD": CANARY,
}
POLL_S = 0.05


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A campaign that was run so: its folder, what it said, and every command line meanwhile."""
    return watched_campaign(tmp_path_factory.mktemp("canary"), SMALL_OPTIONS)


def watched_campaign(base: Path, options: list[str]) -> tuple[Path, str, set[str]]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT", "MLFLOW"))}
    environment = inherited | SECRETS | {
        "PYTHONPATH": str(ROOT), "HOME": str(base / "home"),
        "CHESS_SNN_CACHE": os.environ.get("CHESS_SNN_CACHE", str(Path.home() / ".cache/chess-snn")),
        "CHESS_SNN_HOME": str(base / "home/chess-snn"),
    }
    (base / "home").mkdir()
    process = run(base, environment, "campaign", "start", "--dir", str(base / "c"), *options)
    commands: set[str] = set()
    watch = threading.Thread(target=_watch, args=(process, commands))
    watch.start()
    said, _ = process.communicate(timeout=1500)
    watch.join()
    assert process.returncode == 0, said[-3000:]
    for command in ("status", "resume"):
        more, _ = run(base, environment, "campaign", command, str(base / "c")).communicate()
        said += more
    said += run(base, environment, "doctor").communicate()[0]
    return base, said, commands


def run(base: Path, environment: dict[str, str], *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "chess_snn", *arguments], cwd=base, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )


def _watch(process: subprocess.Popen, commands: set[str]) -> None:
    while process.poll() is None:
        for other in psutil.process_iter():
            try:
                commands.add(" ".join(other.cmdline()))
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        time.sleep(POLL_S)


def test_it_had_reason_to_show_them(watched):
    _, said, commands = watched
    assert "MLflow cannot be told" in said, "an error that names the address"
    assert "http://***@127.0.0.1:9" in said
    assert any("chess_snn.flows.prefect_app" in command for command in commands)


def test_no_output_has_the_canary(watched):
    _, said, _ = watched
    assert CANARY not in said


def test_no_file_has_the_canary(watched):
    base, _, _ = watched
    files = [path for path in base.rglob("*") if path.is_file() and not path.is_symlink()]
    assert any(path.suffix == ".db" for path in files), "Prefect's database among them"
    assert any(path.suffix == ".log" for path in files)
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []


def test_no_process_list_has_the_canary(watched):
    _, _, commands = watched
    assert [command for command in commands if CANARY in command] == []
