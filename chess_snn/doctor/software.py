"""Python, the packages, and the programs beside them."""

import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final

from packaging.requirements import Requirement

from chess_snn.doctor.findings import Finding, broken, note, ok
from chess_snn.errors import EngineError
from chess_snn.evaluation.engines.player import find_engine
from chess_snn.evaluation.engines.pool import engine_identity

OLDEST_PYTHON: Final = (3, 11)
DISTRIBUTION: Final = "chess-snn"
ORCHESTRATION: Final = "orchestration"
"""The extra without which there are no campaigns, only the library."""


def check_software() -> list[Finding]:
    """Python, every package we ask for, and Stockfish."""
    return [check_python(sys.version_info[:3]), *check_packages(), check_stockfish()]


def check_python(found: tuple[int, int, int]) -> Finding:
    """Whether the interpreter is recent enough."""
    text = ".".join(map(str, found))
    if found[:2] < OLDEST_PYTHON:
        return broken("Python", text, "install Python 3.11 or later, and make a new environment")
    in_environment = sys.prefix != sys.base_prefix
    return ok("Python", f"{text}, {sys.prefix}" + ("" if in_environment else " (the system's)"))


def check_packages() -> Iterator[Finding]:
    """A line for all packages in order, or one for each that is not."""
    try:
        wanted = [Requirement(text) for text in requires(DISTRIBUTION) or ()]
    except PackageNotFoundError:
        yield broken(
            "packages", f"{DISTRIBUTION} is not installed, only on the path",
            "pip install -e '.[orchestration]' -c constraints.txt",
        )
        return
    faults = [fault for name in wanted if (fault := package_fault(name)) is not None]
    yield from faults
    if not faults:
        names = ("torch", "numba", "zarr", "prefect", "mlflow", "distributed")
        yield ok("packages", ", ".join(f"{name} {version(name)}" for name in names))


def package_fault(requirement: Requirement) -> Finding | None:
    """What is wrong with a package that the library or its orchestration asks for; None if nothing.

    Packages of other extras, and of other systems, are ignored.
    """
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": ORCHESTRATION}):
        return None
    remedy = f"pip install 'chess-snn[{ORCHESTRATION}]' -c constraints.txt"
    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        return broken(requirement.name, "is not installed", remedy)
    if not requirement.specifier.contains(found, prereleases=True):
        return broken(requirement.name, f"{found}, where {requirement.specifier} is needed", remedy)
    return None


def check_stockfish() -> Finding:
    """Whether the engine is there and answers; without it some opponents are missing."""
    try:
        program = find_engine("stockfish")
    except EngineError:
        return note("Stockfish", "is not installed; only needed as an opponent", "make stockfish")
    try:
        return ok("Stockfish", f"{engine_identity(program)}, {program}")
    except EngineError as error:
        return broken("Stockfish", str(error), "make stockfish")
