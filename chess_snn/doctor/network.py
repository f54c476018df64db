"""Servers, their ports, and the clock."""

import email.utils
import http.client
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from chess_snn.doctor.findings import Finding, broken, note, ok
from chess_snn.errors import without_credentials

TIMEOUT_S: Final = 5.0
OLDEST_YEAR: Final = 2026
"""The clock of a machine without a battery begins long before this was written."""
MOST_SKEW_S: Final = 5.0
"""Between two machines, with which Prefect's schedules and heartbeats still work."""


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
    for subject, url, path in (
        ("Prefect server", addresses.prefect_url, "/health"),
        ("MLflow server", addresses.mlflow_url, "/health"),
    ):
        if url is not None:
            finding, server_time = check_server(subject, url, path, addresses.origin)
            findings.append(finding)
            times.append(server_time)
    if not findings:
        findings.append(
            note("servers", addresses.origin) if addresses.origin
            else ok("servers", "none is meant to be up; chess-snn up starts them")
        )
        findings += check_ports(ports)
    return [*findings, check_clock(time.time(), [found for found in times if found is not None])]


def check_server(
    subject: str, url: str, path: str, origin: str
) -> tuple[Finding, float | None]:
    """Whether the server at ``url`` answers; and what time it is there."""
    shown = without_credentials(url)
    if not url.startswith(("http://", "https://")):
        return ok(subject, f"{shown} is not a server ({origin})"), None
    try:
        status, server_time = _get(url.rstrip("/") + path)
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
