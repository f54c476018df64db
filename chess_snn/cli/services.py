"""``chess-snn up``, ``down`` and ``deploy``: a Prefect server, an MLflow server and a worker."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from chess_snn.cli.console import console, print_message
from chess_snn.cli.orchestration import load_flows
from chess_snn.errors import UsageError
from chess_snn.interrupts import EXIT_INTERRUPTED

_LINE_PERIOD_S = 5.0
"""Between lines that say what is still waited for."""


def up_command(
    host: Annotated[
        str,
        typer.Option(help="Address of this machine for both servers; others than loopback need a "
                     "password, in CHESS_SNN_CREDENTIALS or the file CHESS_SNN_CREDENTIALS_FILE."),
    ] = "127.0.0.1",
    prefect_port: Annotated[int, typer.Option(help="Of the Prefect server.")] = 4200,
    mlflow_port: Annotated[int, typer.Option(help="Of the MLflow server.")] = 5000,
    runs: Annotated[
        int, typer.Option(help="Runs at once on this machine; a campaign takes all of it.")
    ] = 1,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay here until Ctrl-C, as under systemd.")
    ] = False,
) -> None:
    """Start a Prefect server, an MLflow server and a worker, with all deployments registered.

    They stay until `chess-snn down`. Their data is in $CHESS_SNN_HOME/services, by default
    ~/chess-snn/services, and campaigns of deployed runs go beside it. What is up already is found.

    chess-snn up

    chess-snn up --prefect-port 4300 --mlflow-port 5300

    CHESS_SNN_CREDENTIALS=me:a-long-password chess-snn up --host gpu-box
    """
    services = load_flows("services")
    directory = services.services_directory()
    settings = services.ServiceSettings(
        host=host, prefect_port=prefect_port, mlflow_port=mlflow_port, runs=runs,
        credentials=services.read_credentials(),
    )
    running = services.find_running(directory)
    if running is not None and not running.is_ready:
        raise UsageError(
            f"process {running.pid} is just starting the services; look at {directory}/up.log, or "
            "end it: chess-snn down"
        )
    if running is not None:
        print_message(f"already up, by process {running.pid}")
        _print_addresses(running)
        return
    services.check_ports(settings)
    if foreground:
        _run(directory, settings)
    else:
        _run_in_background(services, directory, settings)


def down_command() -> None:
    """End what `chess-snn up` started: the worker and its runs, both servers.

    A campaign that is running is told to stop, and given 45 s; what it had committed is safe, and
    another run with the same directory goes on with it.
    """
    services = load_flows("services")
    directory = services.services_directory()
    lines = _WaitingLines()
    with _waiting("ending the services"):
        found = services.stop_services(
            directory, lambda seconds: lines("services to end", seconds)
        )
    print_message("ended: worker, servers and all runs" if found else "nothing is up")


def deploy_command() -> None:
    """Register the deployments campaign/local, tournament/local and import/local.

    With the server that `chess-snn up` started (which has them), or the one of PREFECT_API_URL.
    Run it again after an update.
    """
    services = load_flows("services")
    running = services.find_running(services.services_directory())
    environment = dict(os.environ)
    if "PREFECT_API_URL" not in environment:
        if running is None:
            raise UsageError(
                "there is no Prefect server: start one with `chess-snn up`, or set PREFECT_API_URL"
            )
        environment["PREFECT_API_URL"] = running.prefect_url
    credentials = services.read_credentials()
    if credentials is not None:
        environment["PREFECT_API_AUTH_STRING"] = credentials.text
    with _waiting("registering deployments"):
        registered = load_flows("services.prefect_service").deploy(environment)
    for deployment in registered:
        print_message(f"{deployment.name}: {deployment.summary}")


def _run(directory: Path, settings: Any) -> None:
    """Be the supervisor."""
    supervisor = load_flows("services.supervisor")
    try:
        with supervisor.ended_by_sigterm():
            supervisor.run_services(
                directory, settings, print_message, _WaitingLines(), _print_addresses
            )
    except KeyboardInterrupt:
        print_message("ended: worker, servers and all runs")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _run_in_background(services: Any, directory: Path, settings: Any) -> None:
    options = [
        "--host", settings.host, "--prefect-port", str(settings.prefect_port),
        "--mlflow-port", str(settings.mlflow_port), "--runs", str(settings.runs),
    ]
    with _waiting("starting the services; the first time may take a minute"):
        services.start_in_background(options, directory, print_message)


def _print_addresses(running: Any) -> None:
    """Where everything is, and what to do next."""
    exports = (
        f"export PREFECT_API_URL={running.prefect_url} MLFLOW_TRACKING_URI={running.mlflow_url}"
    )
    if running.has_credentials:
        if os.environ.get("CHESS_SNN_CREDENTIALS_FILE"):
            exports = f"CHESS_SNN_CREDENTIALS=$(cat $CHESS_SNN_CREDENTIALS_FILE)\n  {exports}"
        exports += (
            " PREFECT_API_AUTH_STRING=$CHESS_SNN_CREDENTIALS"
            " MLFLOW_TRACKING_USERNAME=${CHESS_SNN_CREDENTIALS%%:*}"
            " MLFLOW_TRACKING_PASSWORD=${CHESS_SNN_CREDENTIALS#*:}"
        )
    pages = load_flows("services.mlflow_service").service_pages(
        running.mlflow_url, load_flows("services").read_credentials()
    )
    links = "".join(f"  {name}  {address}\n" for name, address in pages.items())
    print_message(
        f"Prefect  {running.prefect_page}  runs, logs, deployments\n"
        f"MLflow   {running.mlflow_url}  curves, models\n"
        f"{links}"
        f"Worker   up to {running.runs} at once of the runs that are asked for\n"
        "A campaign of a few minutes, from any shell of this environment:\n"
        f"  {exports}\n"
        "  prefect deployment run campaign/local --watch --param preset=smoke\n"
        "End all of it: chess-snn down"
    )


@contextmanager
def _waiting(text: str) -> Iterator[None]:
    """Something that moves on a terminal, a line elsewhere."""
    if console.is_terminal:
        with console.status(text):
            yield
    else:
        print_message(text)
        yield


class _WaitingLines:
    """Called while something is waited for; prints a line now and then."""

    def __init__(self) -> None:
        self._next_s: dict[str, float] = {}

    def __call__(self, what: str, seconds: float) -> None:
        if seconds >= self._next_s.setdefault(what, _LINE_PERIOD_S):
            self._next_s[what] = seconds + _LINE_PERIOD_S
            print_message(f"waiting for the {what}: {seconds:.0f} s")
