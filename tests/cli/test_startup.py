"""Commands load what they use, and only names for help and completion."""

import json
import subprocess
import sys

import pytest
from test_help import ALL_COMMANDS

RUN_AND_LIST = """
import contextlib, io, json, sys
from chess_snn.cli import main

codes_and_modules = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["chess-snn", *arguments]
    output = io.TextIOWrapper(io.BytesIO())
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"uci\\nquit\\n")))
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            main()
    except SystemExit as ended:
        codes_and_modules.append([ended.code or 0, sorted(sys.modules)])
print(json.dumps(codes_and_modules))
"""
SLOW = {"torch", "numba", "zarr", "pandas", "prefect", "dask", "distributed", "mlflow"}


def run_in_one_process(*commands):
    """The exit code of each of ``commands``, and all that the process has imported by then."""
    done = subprocess.run(
        [sys.executable, "-c", RUN_AND_LIST, json.dumps(commands)],
        capture_output=True, text=True, check=False,
    )
    assert not done.returncode, done.stderr
    answers = json.loads(done.stdout.splitlines()[-1])
    return [code for code, _ in answers], [set(modules) for _, modules in answers]


def loaded_by(*commands):
    """Slow packages that a process has loaded after each of ``commands``."""
    codes, modules = run_in_one_process(*commands)
    assert codes == [0] * len(commands)
    return [sorted(SLOW & loaded) for loaded in modules]


def test_what_needs_no_command_loads_nothing_heavy():
    codes, modules = run_in_one_process([], ["--help"], ["--version"], ["matc"], ["--nonsense"])
    assert codes == [2, 0, 0, 2, 2]
    assert not modules[-1] & (SLOW | {"numpy"})


def test_a_command_loads_the_module_of_no_other():
    _, (modules,) = run_in_one_process(["match", "--help"])
    assert {name for name in modules if name.startswith("chess_snn.cli.")} == {
        "chess_snn.cli.main", "chess_snn.cli.console", "chess_snn.cli.options",
        "chess_snn.cli.match",
    }


def test_help_loads_nothing_slow():
    found = loaded_by(*([*command, "--help"] for command in ALL_COMMANDS))
    assert found == [[]] * len(ALL_COMMANDS)


def test_commands_that_ask_no_network_do_without_torch(folder):
    path = str(folder.path)
    found = loaded_by(
        ["campaign", "status", path], ["watch", path, "--once"], ["models", "list", path], ["uci"],
        ["games", "show", path], ["doctor"], ["verify", path],
    )
    assert found[:4] == [[]] * 4
    assert found[-1] in ([], ["numba"])


@pytest.mark.parametrize(("line", "names"), [
    ("ma", ["match"]), ("campaign sta", ["start", "status"]), ("match --sim", ["--simulations"]),
    ("campaign start --set net.si", ["net.size="]), ("campaign start --preset gp", ["gpu"]),
    ("campaign start --set net.size=t", ["net.size=tiny"]), ("analyse --model shipped/2", [
        "shipped/2048"]), ("campaign status camp", ["campaigns/a-1"]),
])
def test_completion(line, names, chess_snn, monkeypatch, tmp_path):
    (tmp_path / "campaigns" / "a-1").mkdir(parents=True)
    (tmp_path / "campaigns" / "a-1" / "campaign.toml").touch()
    monkeypatch.setenv("_CHESS_SNN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"chess-snn {line}")
    monkeypatch.setenv("COMP_CWORD", str(len(line.split())))
    assert chess_snn().stdout.split() == names
