"""Every command explains itself."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import pytest
import typer

from chess_snn.cli.main import COMMANDS, REMOVED, app
from chess_snn.later import load_deferred


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The command at ``path`` and all below it."""
    yield path
    context = typer.Context(command)
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from commands(command.get_command(context, name), (*path, name))


ALL_COMMANDS = list(commands(typer.main.get_group(app)))
load_deferred()


@pytest.mark.parametrize("command", ALL_COMMANDS, ids=" ".join)
def test_help(chess_snn, command):
    done = chess_snn(*command, "--help")
    assert done.returncode == 0
    usage, _, rest = done.stdout.partition("\n")
    assert usage.startswith(" ".join(["Usage: chess-snn", *command]))
    assert len(rest.split()) > 5


def test_version(chess_snn):
    assert chess_snn("--version").stdout.startswith("chess-snn 0.")


def test_the_list_of_commands_fits_on_one_screen(chess_snn):
    lines = chess_snn("--help").stdout.splitlines()
    assert len(COMMANDS) <= 24
    assert len(lines) <= 36
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines[1:] if line.endswith("...")]


# The list of commands says of each what it says of itself.


GROUP = typer.main.get_group(app)
CONTEXT = typer.Context(GROUP)


@pytest.mark.parametrize("entry", COMMANDS, ids=attrgetter("name"))
def test_the_table_says_of_a_command_what_its_help_begins_with(entry):
    command = GROUP.get_command(CONTEXT, entry.name)
    assert command.name == entry.name
    first_paragraph, *_ = command.help.split("\n\n")
    assert entry.summary == " ".join(first_paragraph.split())
    assert not command.hidden


def test_all_are_listed_in_the_order_of_the_table():
    names = [entry.name for entry in COMMANDS]
    assert len(set(names)) == len(names)
    assert GROUP.list_commands(CONTEXT) == names


@pytest.mark.parametrize("name", REMOVED)
def test_a_removed_command_names_what_to_use_instead(chess_snn, name):
    assert not any(" ".join(command) == name for command in ALL_COMMANDS)
    done = chess_snn(*name.split(), "anything", "--else")
    assert done.returncode == 2
    assert REMOVED[name] in done.stderr
