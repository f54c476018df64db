"""A tree of commands that loads a command's module when that command is asked for, and no other.

The modules load torch and numba, which takes seconds; a list of the commands needs neither.
"""

import importlib
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

_PACKAGE: Final = "chess_snn.cli"


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """Where a command stands, and what is said of it before it is loaded."""

    name: str
    module: str
    """In ``package``."""
    attribute: str
    """A function that is the command, or a Typer whose commands are below it."""
    summary: str
    """The first paragraph of its help, on one line."""
    context_settings: dict[str, Any] | None = None
    """For a function: how its arguments are read."""
    package: str = _PACKAGE

    def load(self, like: TyperGroup) -> TyperCommand | TyperGroup:
        """Import the module and make the command as Typer makes one of ``like``."""
        target = getattr(importlib.import_module(f"{self.package}.{self.module}"), self.attribute)
        app = typer.Typer(rich_markup_mode=like.rich_markup_mode)
        if isinstance(target, typer.Typer):
            app.add_typer(target, name=self.name)
        else:
            app.command(self.name, context_settings=self.context_settings)(target)
        command = get_group(app).commands[self.name]
        assert isinstance(command, TyperCommand | TyperGroup)
        return command


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

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands from the table."""
        TyperGroup(commands=dict(self.commands)).format_commands(ctx, formatter)
