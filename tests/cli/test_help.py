"""Every command explains itself."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from chess_snn.cli.main import app


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The command at ``path`` and all below it."""
    yield path
    context = typer.Context(command)
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from commands(command.get_command(context, name), (*path, name))


@pytest.mark.parametrize("command", list(commands(typer.main.get_group(app))), ids=" ".join)
def test_help(chess_snn, command):
    done = chess_snn(*command, "--help")
    assert done.returncode == 0
    usage, _, rest = done.stdout.partition("\n")
    assert usage.startswith(" ".join(["Usage: chess-snn", *command]))
    assert len(rest.split()) > 5


def test_version(chess_snn):
    assert chess_snn("--version").stdout.startswith("chess-snn 0.")
