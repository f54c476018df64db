"""The environment is within our bounds, and these leave out versions with published faults."""

import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
UNSAFE = {
    "torch": "2.10.0", "mlflow": "3.15.2", "prefect": "3.6.13", "starlette": "1.3.0",
    "cryptography": "49.0.0", "urllib3": "2.6.3", "tornado": "6.5.6", "h11": "0.14.0",
}
"""Versions with a published fault that concerns us: CVE-2026-4538, CVE-2026-71211,
CVE-2026-7723, PYSEC-2026-249, CVE-2026-69247, CVE-2026-44432, CVE-2026-49855, CVE-2025-43859."""


def bounds() -> Iterator[Requirement]:
    """Requirements of pyproject.toml, all extras, and of constraints.txt."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for texts in (project["dependencies"], *project["optional-dependencies"].values()):
        yield from map(Requirement, texts)
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            yield Requirement(line)


@pytest.mark.parametrize("bound", list(bounds()), ids=str)
def test_what_is_installed_is_within_the_bounds(bound):
    if canonicalize_name(bound.name) == "chess-snn":
        return  # an extra of ours in another
    try:
        installed = version(bound.name)
    except PackageNotFoundError:
        pytest.skip(f"{bound.name} is not installed")
    if bound.name == "torch" and "==" in str(bound.specifier):
        return  # a GPU machine brings its own
    assert bound.specifier.contains(installed, prereleases=True), f"{bound.name} {installed}"


@pytest.mark.parametrize(("package", "unsafe"), UNSAFE.items())
def test_no_version_with_a_published_fault_is_allowed(package, unsafe):
    found = [bound for bound in bounds() if canonicalize_name(bound.name) == package]
    assert found
    assert not all(bound.specifier.contains(unsafe) for bound in found)
