"""Hooks of pytest that keep the default tests short; ``conftest.py`` imports them.

- Processor time of each test's call is measured, its child processes included. A default test that
  takes longer than ``limit_s`` of ``[tool.default-tests]`` in pyproject.toml is named at the end of
  the run, unless it is listed there. Times are kept in pytest's cache: `test_default_tests.py`
  refuses a test whose last three runs were all too long.
- A test marked ``compiles_kernels`` runs by default only if the kernels, the tests of them or the
  compilers have changed since it last passed. ``make test-all`` always runs it.
"""

import hashlib
import os
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CPU_TIMES = "chess-snn/cpu-times"
"""Key of the cache: the seconds of a test's last runs, by its name."""
COMPILED = "chess-snn/compiled"
"""Key of the cache: the digest with which a test of compiled kernels last passed, by its name."""
NUM_RUNS = 3

_CPU_S = "cpu_s"
_MARKER = "compiles_kernels"
_KERNELS = ("chess_snn/nets", "tests/nets")
_COMPILERS = ("triton", "nvidia-cuda-nvrtc", "cuda-bindings", "torch")

_passed: set[str] = set()
"""Tests of compiled kernels that passed in this run."""
_measured: dict[str, float] = {}
"""Seconds of the default tests of this run."""


@dataclass(frozen=True)
class LongTests:
    """The table ``[tool.default-tests]``."""

    limit_s: float
    names: tuple[str, ...]
    """``FILE::TEST``, all cases of it."""

    def allows(self, test: str) -> bool:
        return test.partition("[")[0] in self.names

    def too_long(self, times: dict[str, list[float]], factor: float = 1.0) -> dict[str, float]:
        """The least time of each test that was too long in all of its last runs."""
        found = {test: min(seconds) for test, seconds in times.items() if not self.allows(test)}
        return {test: least for test, least in found.items() if least > factor * self.limit_s}


def long_tests() -> LongTests:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["default-tests"]
    return LongTests(float(table["limit_s"]), tuple(table["long"]))


@cache
def kernels_digest() -> str:
    """Digest of all that decides how kernels for GPUs are compiled and what their tests see."""
    digest = hashlib.sha256()
    for folder in _KERNELS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    for name in _COMPILERS:
        digest.update(f"{name} {_version(name)}\0".encode())
    for name in ("g++", "clang++"):
        if (found := shutil.which(name)) is not None:
            digest.update(f"{Path(found).resolve()} {Path(found).stat().st_mtime_ns}\0".encode())
    return digest.hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def leave_out_compiled(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests of kernels that have not changed, in a run of the default tests."""
    if "not slow" not in config.option.markexpr or not hasattr(config, "cache"):
        return
    compiled = config.cache.get(COMPILED, {})
    for item in items:
        if item.get_closest_marker(_MARKER) and compiled.get(item.nodeid) == kernels_digest():
            item.add_marker(pytest.mark.skip("kernels for GPUs are as when this test last passed"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    before = _cpu_s()
    try:
        return (yield)
    finally:
        item.user_properties.append((_CPU_S, _cpu_s() - before))


def _cpu_s() -> float:
    return sum(os.times()[:4])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call":
        return
    if _MARKER in report.keywords and report.passed:
        _passed.add(report.nodeid)
    if "slow" not in report.keywords and not report.skipped:
        _measured[report.nodeid] = dict(report.user_properties).get(_CPU_S, 0.0)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Keep what was measured, and name long tests; with xdist, in the first process."""
    if not hasattr(config, "cache"):  # `-p no:cacheprovider`
        return
    compiled = config.cache.get(COMPILED, {})
    config.cache.set(COMPILED, compiled | dict.fromkeys(_passed, kernels_digest()))
    times = config.cache.get(CPU_TIMES, {})
    for test, seconds in _measured.items():
        times[test] = [*times.get(test, []), round(seconds, 2)][-NUM_RUNS:]
    config.cache.set(CPU_TIMES, times)
    allowed = long_tests()
    found = allowed.too_long({test: times[test] for test in _measured})
    if not found:
        return
    terminalreporter.section(f"default tests over {allowed.limit_s:g} s of processor time")
    for test, seconds in sorted(found.items(), key=lambda entry: -entry[1]):
        terminalreporter.line(f"{seconds:6.1f} s  {test}")
    terminalreporter.line("make them faster, mark them slow, or list them in pyproject.toml")
