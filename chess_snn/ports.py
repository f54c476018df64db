"""TCP ports of this machine: a free one, and whether a server can listen on a given one."""

import errno
import socket
from typing import Final

from chess_snn.errors import UsageError

LOOPBACK: Final = "127.0.0.1"

_LONGEST_COMMAND: Final = 60
"""Characters of a command in a message."""


def free_port() -> int:
    """A TCP port on loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def check_port(host: str, port: int, server: str, option: str) -> None:
    """Return if ``server`` could listen on the port now.

    Args:
        host: address or name of this machine.
        port: TCP port.
        server: for messages.
        option: that sets the port, for messages.

    Raises:
        UsageError: it could not; names the process that has the port, and the fix.
    """
    try:
        # IPv4 sorts first.
        family, *_, address = min(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        # As servers do: a port whose last connections are still closing is free.
        with socket.create_server(address[:2], family=family):
            return
    except OSError as error:
        reason = error.strerror
        if error.errno == errno.EADDRINUSE:
            reason = f"it is in use by {_holder(port)}"
        raise UsageError(
            f"the {server} cannot listen on port {port} of {host}: {reason}; choose another port "
            f"with {option}, or an address of this machine with --host"
        ) from error


def _holder(port: int) -> str:
    """Which process listens on ``port``, for people."""
    import psutil  # noqa: PLC0415 - only an error needs it

    try:
        pids = [
            connection.pid for connection in psutil.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
        ]
        if pids and pids[0] is not None:
            command = " ".join(psutil.Process(pids[0]).cmdline())[:_LONGEST_COMMAND]
            return f"process {pids[0]} ({command})"
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        pass  # another user's, or ended
    return "a process of another user"
