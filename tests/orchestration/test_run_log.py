"""The log of a flow run that fails, and the terminal of a campaign that Python code calls."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from prefect.logging.handlers import PrefectConsoleHandler
from prefect.settings import PREFECT_LOGGING_TO_API_ENABLED, temporary_settings
from small_campaigns import SMALL

from chess_snn.campaign import CampaignFolder, read_receipts
from chess_snn.errors import ConfigError
from chess_snn.flows.prefect_errors import log_sentences, quiet_terminal

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")

SENTENCE = "name = 'a' and directory = \"/b\" are both set; leave one of them out"


def log_as_prefect_does(error: Exception) -> None:
    """Log as its engine does where a flow or a task raises, and its process at the end."""
    for name, text in {
        "prefect.flow_runs": f"Encountered exception: {error!r}",
        "prefect.task_runs": f"Task run failed with exception: {error!r} - Retries are exhausted",
        "prefect.engine": "Execution exited with unexpected exception",
    }.items():
        logging.getLogger(name).error(text, exc_info=error)


@pytest.fixture
def lines(caplog, monkeypatch):
    """Lines of the log, tracebacks too; Prefect does not pass its records on."""
    log_sentences()
    for name in ("prefect", "prefect.flow_runs", "prefect.task_runs", "prefect.engine"):
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
    with temporary_settings({PREFECT_LOGGING_TO_API_ENABLED: False}):
        yield lambda: [line for line in caplog.text.splitlines() if line]


def test_a_mistake_in_a_form_is_logged_as_its_sentence_bug(lines):
    """The log of the worker had two tracebacks."""
    log_as_prefect_does(ConfigError(SENTENCE))
    in_flow, in_task = lines()
    assert in_flow.endswith(f"Encountered exception: {SENTENCE}")
    assert in_task.endswith(f"Task run failed with exception: {SENTENCE} - Retries are exhausted")


def test_another_error_keeps_its_traceback(lines):
    log_as_prefect_does(ZeroDivisionError("a bug"))
    assert sum(line == "ZeroDivisionError: a bug" for line in lines()) == 3


def test_a_flow_that_python_code_calls_prints_warnings_alone(monkeypatch):
    handler = PrefectConsoleHandler()
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    for name in ("PREFECT_LOGGING_LEVEL", "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"):
        monkeypatch.delenv(name, raising=False)  # commands that ran in this process set them
    with quiet_terminal():
        assert handler.level == logging.WARNING
    assert handler.level == logging.NOTSET
    monkeypatch.setenv("PREFECT_LOGGING_LEVEL", "INFO")
    with quiet_terminal():
        assert handler.level == logging.NOTSET, "the user asks for all"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_campaign_that_python_code_calls_ends_with_its_folder_and_few_lines_bug(tmp_path):
    """The terminal had a line for every ten seconds of each stage, and those of Dask."""
    script = tmp_path / "script.py"
    script.write_text(
        "from chess_snn.flows.campaign import campaign\n"
        "if __name__ == '__main__':\n"
        f"    print(campaign(name='called', settings={[*SMALL, 'campaign.iterations=1']!r}))\n"
    )
    home = {"CHESS_SNN_HOME": str(tmp_path / "home"), "PREFECT_HOME": str(tmp_path / "prefect"),
            "TMPDIR": str(tmp_path)}  # without leavings of Dask
    foreign = ("PREFECT_", "MLFLOW_")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    patience = {"PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "600"}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, timeout=1100,
        env=inherited | home | patience | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == 0, done.stderr
    path = Path(done.stdout.splitlines()[-1])
    assert path == tmp_path / "home" / "campaigns" / "called"
    assert len(read_receipts(CampaignFolder.open(path))) == 1
    lines = [line for line in done.stderr.splitlines() if " INFO " in line or "distributed" in line]
    assert not [line for line in lines if "/s" in line], "progress"
    assert len(lines) < 16, done.stderr  # Prefect's own, and three of each Dask worker that starts
