"""The log of a flow run that fails."""

import logging

import pytest
from prefect.settings import PREFECT_LOGGING_TO_API_ENABLED, temporary_settings

from chess_snn.errors import ConfigError
from chess_snn.flows.prefect_errors import log_sentences

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
