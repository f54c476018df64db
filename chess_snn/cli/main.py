"""The commands in one tree, each loaded when it is used; errors and Ctrl-C as users see them.

The module of a command is imported for its options alone, and once more, whole, when the command
runs (:func:`chess_snn.later.to_run`): help and completion do not wait for torch.
"""

import errno
import os
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

import typer
from typer.completion import completion_init  # type: ignore[attr-defined]
from typer.core import (  # type: ignore[attr-defined]
    CompletionItem,
    TyperCommand,
    TyperGroup,
)
from typer.main import get_group

from chess_snn import __version__
from chess_snn.cli.console import print_notice
from chess_snn.errors import ChessSnnError
from chess_snn.interrupts import EXIT_INTERRUPTED
from chess_snn.later import load_deferred, options_alone

EXIT_BAD_INPUT = 2


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command before it is loaded."""

    name: str
    target: str
    """``MODULE:ATTRIBUTE``: a function that is the command, or a Typer whose commands are below."""
    summary: str
    """The first paragraph of its help, on one line."""

    def load(self, like: TyperGroup) -> TyperCommand | TyperGroup:
        """Import the module and make the command as Typer makes one of ``like``."""
        with options_alone():
            target = pkgutil.resolve_name(self.target)
        app = typer.Typer(rich_markup_mode=like.rich_markup_mode)
        if isinstance(target, typer.Typer):
            app.add_typer(target, name=self.name)
        else:
            app.command(self.name)(target)
        command = get_group(app).commands[self.name]
        assert isinstance(command, TyperCommand | TyperGroup)
        for each in command.commands.values() if isinstance(command, TyperGroup) else [command]:
            each.callback = _loaded(each.callback)
        return command


def _loaded(callback: Callable[..., Any] | None) -> Callable[..., Any]:
    """``callback`` of a command, after what it runs has been loaded."""
    assert callback is not None

    def run(**arguments: object) -> Any:
        load_deferred(callback.__module__)
        return callback(**arguments)

    return run


class LazyGroup(TyperGroup):
    """The commands of a table; a subclass names the table, for Typer makes the group itself.

    The group's own ``commands`` hold a name and a summary each: enough for the list of commands,
    and for what is said of a name that is none of them.
    """

    table: ClassVar[tuple[CommandEntry, ...]] = ()

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._entries = {entry.name: entry for entry in self.table}
        for entry in self.table:
            self.add_command(TyperCommand(entry.name, help=entry.summary))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command itself, loaded; None where there is none of that name."""
        entry = self._entries.get(cmd_name)
        return super().get_command(ctx, cmd_name) if entry is None else entry.load(like=self)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Names of commands from the table, so that none is loaded; below a command its options."""
        names = [entry.name for entry in self.table if entry.name.startswith(incomplete)]
        return [CompletionItem(name, help=self._entries[name].summary) for name in names]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands from the table."""
        TyperGroup(commands=dict(self.commands)).format_commands(ctx, formatter)


_ROWS: Final = (
    ("match", "match:match_command",
     "Play a match of A against B and say what its score is worth."),
    ("rate", "rate:rate_command",
     "Rate networks by Elo above random moves, with 95 % intervals."),
    ("experiment", "experiment:app",
     "Compare variants over seeds, as a file says."),
    ("analyse", "analyse:analyse_command",
     "Search a position and show its candidate moves, best first."),
    ("play", "play:play_command",
     "Play a game against a network or another player."),
    ("web", "web:web_command",
     "Serve a page to play, see spikes and watch a campaign."),
    ("report", "status:report_command",
     "Write a campaign, or an experiment, as one HTML file."),
    ("up", "services:up_command",
     "Start a Prefect server, an MLflow server and a worker."),
    ("down", "services:down_command",
     "End what `chess-snn up` started."),
    ("doctor", "doctor:doctor_command",
     "Check versions, GPUs, the disk, ports and engines."),
    ("uci", "uci:uci_command",
     "Speak UCI, for chess programs and lichess-bot."),
    ("verify", "integrity:verify_command",
     "Check every byte, every game and every receipt of a campaign."),
    ("gc", "integrity:gc_command",
     "Show what a campaign can do without; remove it with --yes."),
    ("ui", "services:ui_command",
     "Serve the campaign's Prefect and MLflow pages until Ctrl-C."),
    ("watch", "watch:watch_command",
     "Watch a campaign from its folder alone."),
    ("campaign", "campaign:app",
     "Learn by self-play: play, train, evaluate and register."),
    ("cluster", "cluster:app",
     "Many machines: a scheduler, workers and certificates."),
    ("games", "games:app",
     "PGN in and out; look at games that were played."),
    ("models", "registry:app",
     "The networks of a campaign: list, show, promote, export."),
)
COMMANDS = tuple(
    CommandEntry(name, f"chess_snn.cli.{target}", summary) for name, target, summary in _ROWS
)
"""All of them, in the order in which ``--help`` lists them."""


class _Commands(LazyGroup):
    table = COMMANDS


app = typer.Typer(
    cls=_Commands,
    name="chess-snn",
    help="A spiking neural network learns chess by playing itself.\n\n"
    "Begin with: chess-snn campaign start --preset smoke",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"chess-snn {__version__}")
        raise typer.Exit


_OUTPUT_FAILED = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def main() -> None:
    """Run the command line of chess-snn."""
    removed = replacement(sys.argv[1:])
    if removed is not None:
        _fail(f"chess-snn {removed[0]} is gone: use {removed[1]}", EXIT_BAD_INPUT)
    completion_init()
    run_app(app, "chess-snn")


def run_app(program: typer.Typer, name: str) -> None:
    """Run a command line; errors of ours are one line on standard error and exit code 2."""
    try:
        program(prog_name=name)
    except ChessSnnError as error:
        _fail(f"{error} [{error.code}]", EXIT_BAD_INPUT)
    except KeyboardInterrupt:
        _fail("interrupted", EXIT_INTERRUPTED)
    except MemoryError as error:
        details = f" ({error})" if str(error) else ""
        _fail(f"this machine does not have enough memory for it{details}", EXIT_BAD_INPUT)
    except BrokenPipeError:
        # The reader of a pipe is gone: there is nothing to print.
        _mute_output()
        raise SystemExit(1) from None
    except OSError as error:
        if error.filename is not None:
            _fail(f"{error.filename}: {error.strerror}", EXIT_BAD_INPUT)
        if error.errno not in _OUTPUT_FAILED:
            raise
        _mute_output()
        _fail(f"cannot write what was asked for: {error.strerror}", EXIT_BAD_INPUT)


def _mute_output() -> None:
    """Discard what is still to be written to standard output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, exit_code: int) -> None:
    print_notice(f"error: {message}")
    raise SystemExit(exit_code)


REMOVED: Final[dict[str, str]] = {
    "bench": "`python -m benchmarks` in a clone",
    "campaign compare": "`chess-snn match A@12 B@12`, with a generation of each campaign",
    "campaign restore": "`rclone` or `aws s3 sync`, as in docs/reliability.md",
    "deploy": "`chess-snn up`, which registers the deployment",
    "mates": "`chess-snn analyse`, or `python -m benchmarks mates` in a clone",
    "models compare": "`chess-snn match`, which prints the likelihood of superiority",
    "study": "`chess-snn experiment`, whose file has the networks as variants",
    "scores": "`chess-snn match`, which compares points on the same seeds",
    "train": "`chess-snn campaign resume`, or torchrun as in docs/cluster.md",
    "ladder": "`chess-snn rate`, or the table in docs/ratings.md",
    "ladder rate": "`chess-snn rate`",
    "ladder make": "`python -m benchmarks ladder` in a clone",
    "perft": "`go perft N` in `chess-snn uci`",
    "ratings": "`chess-snn campaign status --ratings`",
    "results": "`chess-snn campaign status`, with --csv or --json for every figure",
}
"""The words of a removed command after ``chess-snn``, and what its user types now."""


def replacement(arguments: list[str]) -> tuple[str, str] | None:
    """Return a removed command that ``arguments`` begin with, and its replacement.

    The longest name wins, so that a group can be gone while one of its commands has a successor.
    None if the command is not a removed one.
    """
    for length in range(min(len(arguments), 3), 0, -1):
        name = " ".join(arguments[:length])
        if name in REMOVED:
            return name, REMOVED[name]
    return None
