"""Modules and names that are loaded when they are first used: torch alone takes seconds.

A module outside of :mod:`chess_snn.nets` and :mod:`chess_snn.training` imports torch from here, and
names their packages where it uses what needs torch: ``nets.make_evaluator(network)``. So commands
that ask no network, and the help of all commands, start without torch.
"""

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module, reload
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

__all__ = [
    "asyncio", "chess_engine", "exports", "load_deferred", "options_alone", "to_run", "torch",
    "zarr", "zarr_codecs",
]


class _Later(ModuleType):
    """A module that is imported when an attribute is asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


if TYPE_CHECKING:
    import asyncio

    import torch
    import zarr
    from chess import engine as chess_engine
    from zarr import codecs as zarr_codecs
else:
    torch, zarr, zarr_codecs = _Later("torch"), _Later("zarr"), _Later("zarr.codecs")
    asyncio, chess_engine = _Later("asyncio"), _Later("chess.engine")


class _Deferred:
    """Modules of commands that were imported for their options alone."""

    is_wanted = False
    modules: ClassVar[set[str]] = set()


@contextmanager
def options_alone() -> Iterator[None]:
    """Let modules of commands that are imported in the block load no more than options need."""
    _Deferred.is_wanted = True
    try:
        yield
    finally:
        _Deferred.is_wanted = False


def to_run(module: str) -> bool:
    """Whether the commands of ``module`` may run; else it is imported for their options alone."""
    if _Deferred.is_wanted:
        _Deferred.modules.add(module)
    return not _Deferred.is_wanted


def load_deferred(module: str | None = None) -> None:
    """Import ``module``, or all, once more and whole, if it was imported for its options alone."""
    for name in _Deferred.modules & ({module} if module else _Deferred.modules):
        _Deferred.modules.remove(name)
        reload(sys.modules[name])


def exports(package: str) -> Callable[[str], object]:
    """The ``__getattr__`` of a package whose names are loaded when they are first used.

    They are those that its ``__init__.py`` imports ``if TYPE_CHECKING:``, so that type checkers and
    programs read one list.
    """

    @cache
    def homes() -> dict[str, str | None]:
        source = Path(str(sys.modules[package].__file__)).read_text(encoding="utf-8")
        return {
            name.name: node.module for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.ImportFrom) for name in node.names
        }

    def load(name: str) -> object:
        if name == "__all__":
            return [name for name, home in homes().items() if home != __name__]
        home = homes().get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
