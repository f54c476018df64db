"""``chess-snn doctor``: what this machine has, and what is wrong with it."""

import json
import os
from collections.abc import Callable
from typing import Annotated, Final

import typer

from chess_snn.campaign.store.naming import campaigns_home
from chess_snn.cli.console import console, print_message
from chess_snn.cli.orchestration import load_flows
from chess_snn.doctor import (
    Addresses,
    Finding,
    Level,
    check_machine,
    check_network,
    check_software,
    check_storage,
)
from chess_snn.errors import UsageError

EXIT_BROKEN: Final = 1
DEFAULT_PORTS: Final = (4200, 5000)
"""Of `chess-snn up`."""

_MARKS: Final = {Level.OK: "ok", Level.NOTE: "note", Level.BROKEN: "BROKEN"}


def doctor_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Check Python, packages, GPUs, NCCL, disk, memory, servers, ports, clock and engines.

    A line each: ok, note (works, but could be better) or BROKEN, with what to do about it. Exit
    code 1 where something is broken. Changes nothing.

    chess-snn doctor
    """
    checks: list[Callable[[], list[Finding]]] = [
        check_software, check_machine, lambda: check_storage(campaigns_home().parent),
        lambda: check_network(find_addresses(), DEFAULT_PORTS),
    ]
    findings: list[Finding] = []
    for check in checks:
        found = check()
        findings += found
        if not as_json:
            _print(found)  # each at once, for a server that is away takes its time
    num_broken = sum(finding.level is Level.BROKEN for finding in findings)
    if as_json:
        typer.echo(json.dumps([finding.to_json() for finding in findings], indent=2))
    else:
        print_message(f"{num_broken} broken" if num_broken else "nothing is broken")
    if num_broken:
        raise typer.Exit(EXIT_BROKEN)


def find_addresses() -> Addresses:
    """The servers named by the environment; else those of `chess-snn up`."""
    prefect_url = os.environ.get("PREFECT_API_URL")
    mlflow_url = os.environ.get("MLFLOW_TRACKING_URI")
    if prefect_url or mlflow_url:
        return Addresses(prefect_url, mlflow_url, "PREFECT_API_URL, MLFLOW_TRACKING_URI")
    try:
        services = load_flows("services")
        running = services.find_running(services.services_directory())
    except UsageError as error:  # not installed, or another machine's
        return Addresses(None, None, str(error))
    if running is None:
        return Addresses(None, None, "")
    return Addresses(running.prefect_url, running.mlflow_url, "chess-snn up")


def _print(findings: list[Finding]) -> None:
    for finding in findings:
        line = f"{_MARKS[finding.level]:<7}{finding.subject:<15}{finding.fact}"
        if finding.remedy:
            line += f"; {finding.remedy}"
        style = {Level.OK: "", Level.NOTE: "yellow", Level.BROKEN: "bold red"}[finding.level]
        console.print(line, style=style, markup=False, soft_wrap=True)
