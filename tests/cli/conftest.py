import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chess_snn.campaign.store.naming import HOME_VARIABLE
from chess_snn.cli import main
from chess_snn.later import load_deferred

Run = Callable[..., subprocess.CompletedProcess]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    """Each test has a home of its own, and no servers."""
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    for name in ("PREFECT_API_URL", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


@pytest.fixture
def folder(stored_campaign):
    """A finished campaign, to be changed at will."""
    return stored_campaign


@pytest.fixture
def chess_snn(tmp_path, monkeypatch, capfd) -> Run:
    """Run the command line in ``tmp_path``, in this process: loading torch takes seconds.

    An exception that a user would see as a traceback fails the test as itself.
    """

    def run(*arguments: object) -> subprocess.CompletedProcess:
        command = ["chess-snn", *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", command)
        monkeypatch.chdir(tmp_path)
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        load_deferred()  # tests call functions of commands, too
        return subprocess.CompletedProcess(command, ended.value.code or 0, *capfd.readouterr())

    return run


@pytest.fixture
def refused(chess_snn) -> Callable[..., str]:
    """Run a command that must be refused; returns the one line that says why.

    Above it, only how the command is used. The command has printed nothing unless it ``may_print``.
    """

    def run(*arguments: object, may_print: bool = False) -> str:
        done = chess_snn(*arguments)
        assert done.returncode == 2, done.stdout + done.stderr
        *usage, line = done.stderr.splitlines()
        assert line.lower().startswith("error: ")
        assert not usage or usage[0].startswith("Usage: ")
        assert may_print or not done.stdout
        return line

    return run


@pytest.fixture
def chess_snn_process(tmp_path) -> Run:
    """Run the installed command in ``tmp_path``, in a process of its own."""
    command = str(Path(sys.executable).with_name("chess-snn"))

    def run(*arguments: object) -> subprocess.CompletedProcess:
        return subprocess.run(
            [command, *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True,
            timeout=120, check=False,
        )

    return run
