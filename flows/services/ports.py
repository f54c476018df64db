"""Whether a port can be listened on, and who has it if not."""

import errno
import socket

import psutil

from chess_snn.errors import UsageError
from flows.services.settings import ServiceSettings

_LONGEST_COMMAND = 60
"""Characters of a command in a message."""


def check_ports(settings: ServiceSettings) -> None:
    """Return if both servers could listen now.

    Raises:
        UsageError: one could not; says why.
    """
    check_port(settings.host, settings.prefect_port, "Prefect server", "--prefect-port")
    check_port(settings.host, settings.mlflow_port, "MLflow server", "--mlflow-port")


def check_port(host: str, port: int, server: str, option: str) -> None:
    """Return if ``server`` could listen on the port now.

    Raises:
        UsageError: it could not; names who has it, and the way out.
    """
    try:
        with socket.socket() as probe:
            # As servers do: a port whose last connections are still closing is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except socket.gaierror as error:
        raise UsageError(
            f"--host {host} is not known: {error.strerror}; give an address of this machine"
        ) from error
    except OSError as error:
        raise UsageError(_reason(error, host, port, server, option)) from error


def _reason(error: OSError, host: str, port: int, server: str, option: str) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} of {host}, for the {server}, is in use by {port_holder(port)}; end that, "
            f"or choose another port with {option}"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return f"--host {host} is no address of this machine; give one that it has"
    if error.errno == errno.EACCES:
        return f"port {port} is for administrators; choose one from 1024 on with {option}"
    return f"cannot listen on port {port} of {host}: {error.strerror}; choose another by {option}"


def port_holder(port: int) -> str:
    """Who listens on ``port``, for people."""
    try:
        pids = [
            connection.pid for connection in psutil.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
        ]
        if pids and pids[0] is not None:
            command = " ".join(psutil.Process(pids[0]).cmdline())[:_LONGEST_COMMAND]
            return f"process {pids[0]} ({command})"
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        pass  # somebody else's, or gone: said below
    return "a process of another user"
