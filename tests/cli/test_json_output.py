"""``--json`` prints JSON alone to standard output; progress and notices go to standard error."""

import json
import re

import pytest
import typer

from chess_snn.cli import console
from chess_snn.cli.main import app

COMMANDS = {
    "campaign status": (), "doctor": (), "experiment show": (), "games stats": (),
    "gc": ("--yes",), "models list": (), "models show": (),
    "rate": ("--against", "random", "--games", 10, "--simulations", 0, "--threads", 1),
    "verify": ("--workers", 1),
}
"""Commands with ``--json``, and their other arguments; the first is a campaign where one is."""
SHOW_PROGRESS = {"gc", "rate", "verify"}


def with_json(command, path=()):
    """Names of the commands below ``command`` that have ``--json``."""
    if not hasattr(command, "list_commands"):
        return {" ".join(path)} if any("--json" in each.opts for each in command.params) else set()
    context = typer.Context(command)
    return set().union(*(
        with_json(command.get_command(context, name), (*path, name))
        for name in command.list_commands(context)
    ))


def test_every_command_with_json_is_tested():
    assert with_json(typer.main.get_group(app)) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_standard_output_is_json_alone(chess_snn, folder, monkeypatch, name):
    monkeypatch.setattr(console, "_LINE_PERIOD_S", 0.0)
    (folder.path / "results.json").write_text('{"verdicts": []}')  # of an experiment
    where = ["campaign"] * (name != "doctor")
    done = chess_snn(*name.split(), *where, *COMMANDS[name], "--json")
    assert done.stdout, done.stderr
    assert json.loads(done.stdout)
    assert bool(re.search(r": \d+/\d+ ", done.stderr)) == (name in SHOW_PROGRESS), done.stderr


def test_rate_says_beside_json_that_it_plays_without_an_engine(chess_snn, folder, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("chess_snn.evaluation.engines.player.GAMES_FOLDER", "")
    done = chess_snn(
        "rate", "campaign", "--games", 10, "--simulations", 0, "--threads", 1, "--json"
    )
    assert json.loads(done.stdout)["networks"]
    assert "Stockfish" in done.stderr
