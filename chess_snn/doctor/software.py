"""Python, the packages and programs beside them; servers, their ports, and the clock."""

import email.utils
import http.client
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final
from urllib.parse import urlsplit

from packaging.requirements import Requirement

from chess_snn.doctor.findings import Finding, broken, note, ok
from chess_snn.errors import EngineError, without_credentials
from chess_snn.evaluation.engines.player import find_engine
from chess_snn.evaluation.engines.pool import engine_identity

OLDEST_PYTHON: Final = (3, 11)
DISTRIBUTION: Final = "chess-snn"
ORCHESTRATION: Final = "orchestration"
"""The extra without which there are no campaigns, only the library."""
TIMEOUT_S: Final = 5.0
OLDEST_YEAR: Final = 2026
"""The clock of a machine without a battery begins long before this was written."""
MOST_SKEW_S: Final = 5.0
"""Between two machines, with which Prefect's schedules and heartbeats still work."""


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


@dataclass(frozen=True, slots=True)
class Addresses:
    """Which servers are meant to be there, and who says so."""

    prefect_url: str | None
    """Of the API."""
    mlflow_url: str | None
    origin: str
    """Who says so, for people: ``chess-snn up``; where neither is, why that is not known."""


def check_network(addresses: Addresses, ports: tuple[int, ...]) -> list[Finding]:
    """The servers that are meant to be there, else their ports; and the clock.

    Args:
        addresses: of the servers, each None where none is meant to be there.
        ports: on loopback that `chess-snn up` would take.
    """
    findings: list[Finding] = []
    times = []
    for subject, url in (
        ("Prefect server", addresses.prefect_url), ("MLflow server", addresses.mlflow_url),
    ):
        if url is not None:
            finding, server_time = check_server(subject, url, addresses.origin)
            findings.append(finding)
            times.append(server_time)
    if not findings:
        findings.append(
            note("servers", addresses.origin) if addresses.origin
            else ok("servers", "none is meant to be up; chess-snn up starts them")
        )
        findings += check_ports(ports)
    return [*findings, check_clock(time.time(), [found for found in times if found is not None])]


def check_server(subject: str, url: str, origin: str) -> tuple[Finding, float | None]:
    """Whether the server at ``url`` answers; and what time it is there."""
    shown = without_credentials(url)
    if not url.startswith(("http://", "https://")):
        return ok(subject, f"{shown} is not a server ({origin})"), None
    try:
        status, server_time = _get(url.rstrip("/") + "/health")
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        remedy = (
            "chess-snn down, then chess-snn up" if origin == "chess-snn up"
            else f"start it there, or correct {origin}"
        )
        return broken(subject, f"{shown} does not answer: {reason} ({origin})", remedy), None
    if status != http.HTTPStatus.OK:
        return broken(
            subject, f"{shown} answers with HTTP status {status} ({origin})",
            "see that the address is the API's, and its log",
        ), server_time
    return ok(subject, f"{shown} ({origin})"), server_time


def check_ports(ports: tuple[int, ...]) -> Iterator[Finding]:
    """Whether `chess-snn up` could listen."""
    for port in ports:
        subject = f"port {port}"
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                yield note(
                    subject, f"cannot be listened on: {error.strerror}",
                    "chess-snn up takes others by --prefect-port and --mlflow-port",
                )
            else:
                yield ok(subject, "is free")


def check_clock(now: float, server_times: list[float]) -> Finding:
    """Whether the clock is believable, and agrees with the servers'."""
    text = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
    if datetime.fromtimestamp(now, UTC).year < OLDEST_YEAR:
        return broken("clock", text, "set it: timedatectl set-ntp true")
    skew_s = max((abs(now - server) for server in server_times), default=0.0)
    if skew_s > MOST_SKEW_S:
        return broken(
            "clock", f"{text}, {skew_s:.0f} s off a server's", "timedatectl set-ntp true on both"
        )
    return ok("clock", text)


def _get(url: str) -> tuple[int, float | None]:
    """HTTP status, and the server's time in seconds since 1970."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", parts.path)
        response = connection.getresponse()
        date = response.getheader("Date")
        told = None if date is None else email.utils.parsedate_to_datetime(date).timestamp()
        return response.status, told
    finally:
        connection.close()
