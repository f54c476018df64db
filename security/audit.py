"""Are installed packages known to be unsafe? ``python security/audit.py``, part of ``make check``.

Two looks. The first is at ``advisories.toml``, needs no network, and fails the check: its outcome
depends on the checkout and the environment alone. The second asks the OSV data base
(https://osv.dev) what was published since; what it finds is printed, and fails with ``--strict``
(``make audit``) only, so that no commit fails for what was published today. Where the data base
cannot be reached, it prints that, and fails only with ``--strict``.

Exit codes: 0 nothing to do, 1 something is unsafe, 2 with ``--strict``: could not ask.
"""

import argparse
import json
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

SERVICE: Final = "https://api.osv.dev/v1/querybatch"
ADVISORIES: Final = Path(__file__).parent / "advisories.toml"
TIMEOUT_S: Final = 10.0
MOST_BYTES: Final = 16 << 20

UNSAFE, UNKNOWN = 1, 2


class UnreachableError(Exception):
    """The data base did not answer, or with something else."""


def main(arguments: list[str] | None = None) -> int:
    """Look and tell; the exit code."""
    options = _parse(arguments)
    advisories = tomllib.loads(options.advisories.read_text(encoding="utf-8"))
    installed = installed_versions()
    unsafe = known_unsafe(installed, advisories)
    for line in unsafe:
        print(f"UNSAFE: {line}")
    print(f"audit: {len(installed)} packages, {len(unsafe)} known to be unsafe without a network")
    code = UNSAFE if unsafe else 0
    try:
        found = published(installed, advisories, options.service)
    except UnreachableError as error:
        print(f"SKIPPED: what was published since was NOT looked up: {error}; see `make audit`")
        return code or (UNKNOWN if options.strict else 0)
    for line in found:
        print(f"{'UNSAFE' if options.strict else 'WARNING'}: {line}")
    print(f"audit: {len(found)} packages with advisories that are neither fixed nor accepted")
    return code or (UNSAFE if found and options.strict else 0)


def installed_versions() -> dict[str, Version]:
    """Of every package of this environment, without the label of a local build."""
    found = {}
    for distribution in distributions():
        try:
            version = Version(Version(distribution.version).public)
        except (InvalidVersion, TypeError):  # what a broken installation left
            continue
        found[canonicalize_name(distribution.name)] = version
    return dict(sorted(found.items()))


def known_unsafe(installed: Mapping[str, Version], advisories: Mapping[str, Any]) -> list[str]:
    """A line for each package that is older than a version that fixes something."""
    return [
        f"{entry['package']} {version} ({', '.join(entry['ids'])}): {entry['why']}; install "
        f"{entry['before']} or later"
        for entry in advisories.get("unsafe", [])
        if (version := installed.get(canonicalize_name(entry["package"]))) is not None
        and version < Version(entry["before"])
    ]


def published(
    installed: Mapping[str, Version], advisories: Mapping[str, Any], service: str
) -> list[str]:
    """A line for each package with advisories that were not accepted.

    Raises:
        UnreachableError: the data base does not answer.
    """
    accepted = {entry["id"] for entry in advisories.get("accepted", [])}
    queries = [
        {"package": {"name": name, "ecosystem": "PyPI"}, "version": str(version)}
        for name, version in installed.items()
    ]
    answers = _ask(service, {"queries": queries})
    found = []
    for (name, version), answer in zip(installed.items(), answers, strict=True):
        ids = {str(entry["id"]) for entry in answer.get("vulns", [])} - accepted
        if ids:
            found.append(f"{name} {version}: {', '.join(sorted(ids))} (https://osv.dev/ID)")
    return found


def _ask(service: str, question: Mapping[str, Any]) -> list[dict[str, Any]]:
    request = urllib.request.Request(  # noqa: S310 - https, or a test's own server
        service, json.dumps(question).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:  # noqa: S310
            results = json.loads(reply.read(MOST_BYTES))["results"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreachableError(f"{service} does not answer ({error})") from error
    if len(results) != len(question["queries"]):
        raise UnreachableError(f"{service} answered something else")
    return [result or {} for result in results]


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="security/audit.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strict", action="store_true",
                        help="fail for newer advisories, and if the data base cannot be asked")
    parser.add_argument("--advisories", type=Path, default=ADVISORIES, metavar="FILE")
    parser.add_argument("--service", default=SERVICE, metavar="URL")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
