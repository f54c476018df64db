"""What the log of a flow run has of an error: the sentence of our own ones, all of any other."""

import logging

import pytest

from chess_snn.errors import ConfigError
from flows.run_log import log_sentences

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")

SENTENCE = "name = 'a' and directory = \"/b\" are both set; leave one of them out"


def log_as_prefect_does(error: Exception) -> None:
    """As its engine, where a flow or a task raises, and its process, which ends with the error."""
    for name, text in {
        "prefect.flow_runs": f"Encountered exception: {error!r}",
        "prefect.task_runs": f"Task run failed with exception: {error!r} - Retries are exhausted",
        "prefect.engine": "Execution exited with unexpected exception",
    }.items():
        logging.getLogger(name).error(text, exc_info=error)


@pytest.fixture
def lines(caplog, monkeypatch):
    """Of the log, tracebacks too; Prefect does not pass its records on."""
    log_sentences()
    for name in ("prefect", "prefect.flow_runs", "prefect.task_runs", "prefect.engine"):
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
    return lambda: [line for line in caplog.text.splitlines() if line]


def test_a_mistake_in_a_form_is_logged_as_its_sentence_bug(lines):
    """The log of the worker had two tracebacks."""
    log_as_prefect_does(ConfigError(SENTENCE))
    in_flow, in_task = lines()
    assert in_flow.endswith(f"Encountered exception: {SENTENCE}")
    assert in_task.endswith(f"Task run failed with exception: {SENTENCE} - Retries are exhausted")


def test_another_error_keeps_its_traceback(lines):
    log_as_prefect_does(ZeroDivisionError("a bug"))
    assert sum(line == "ZeroDivisionError: a bug" for line in lines()) == 3
