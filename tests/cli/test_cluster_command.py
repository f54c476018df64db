"""Commands about clusters and devices that end before any work, in one line with the fix."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from chess_snn.cli.main import app
from chess_snn.cli.options import pace_settings, parse_gpus
from chess_snn.devices import gpus_option
from chess_snn.errors import ConfigError

pytestmark = pytest.mark.orchestration
pytest.importorskip("distributed")


def refused(*arguments: str) -> str:
    """The one line of error of a command that must fail."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exception is not None, result.output
    line = str(result.exception)
    assert "\n" not in line
    return line


@pytest.fixture
def directory(tmp_path, monkeypatch) -> Path:
    for name in ("CHESS_SNN_SIMULATED_GPUS", "CHESS_SNN_CERTIFICATES"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "campaign"


def test_a_gpu_that_does_not_exist_is_named_before_a_folder_is_made(directory):
    assert "GPU 7" in refused("campaign", "start", "--dir", str(directory), "--gpus", "7,")
    assert not directory.exists()


def test_more_workers_than_memory_are_refused(directory):
    assert "1024" in refused("campaign", "start", "--dir", str(directory), "--workers", "1024")
    assert not directory.exists()


@pytest.mark.slow
def test_a_scheduler_that_is_away_is_named(directory):
    pytest.importorskip("prefect")
    away = "tcp://127.0.0.1:1"
    assert away in refused("campaign", "start", "--dir", str(directory), "--cluster", away)
    assert not directory.exists()


@pytest.mark.parametrize(("text", "numbers"), [
    ("", ()), ("all", ()), ("0, 2,5", (0, 2, 5)), ("4", (0, 1, 2, 3)), ("3,", (3,)), ("0,", (0,)),
])
def test_gpus_in_text(text, numbers):
    assert parse_gpus(text) == numbers


@given(st.lists(st.integers(0, 99), min_size=1, max_size=8, unique=True))
def test_an_option_for_gpus_names_exactly_these(numbers):
    assert parse_gpus(gpus_option(numbers)) == tuple(numbers)


@pytest.mark.parametrize("text", ["a", "1,,2", "-1", "1.5", "²", "0", ",", "1,,"])
def test_what_is_no_list_of_gpus_is_shown_one(text):
    with pytest.raises(ConfigError):
        parse_gpus(text)


def test_only_options_that_were_given_change_settings():
    assert pace_settings(None, "", "", "") == []
    assert pace_settings(8, "0,1", "cuda", "tls://a:1") == [
        ("execution.workers", 8), ("execution.gpus", (0, 1)), ("execution.device", "cuda"),
        ("cluster.kind", "address"), ("cluster.address", "tls://a:1"),
    ]
    assert pace_settings(0, "all", "", "local") == [
        ("execution.workers", 0), ("execution.gpus", ()),
        ("cluster.kind", "local"), ("cluster.address", ""),
    ]


@pytest.mark.slow
def test_the_command_for_workers_loads_neither_prefect_nor_mlflow():
    program = (
        "import sys, chess_snn.cli.cluster, chess_snn.tasks.remote\n"
        "from chess_snn.tasks.cluster import identity, programs, security, worker_setup\n"
        "print(sorted({'prefect', 'mlflow', 'chess_snn.flows'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
