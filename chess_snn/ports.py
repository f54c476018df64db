"""Addresses of servers of this machine: loopback, a free TCP port, one that can be taken."""

import ipaddress
import socket
from typing import Final

from chess_snn.errors import UsageError

LOOPBACK: Final = "127.0.0.1"
_BACKLOG: Final = 2048
"""Connections that may wait for a server to accept them."""


def is_loopback(host: str) -> bool:
    """Whether ``host`` is this machine, and cannot be reached from another."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_every_address(host: str) -> bool:
    """Whether a server on ``host`` would listen on all addresses of this machine.

    ``0``, ``0x0`` and names that lead there are such spellings of ``0.0.0.0``.
    """
    try:
        found = socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):  # there is no such name
        return False
    return any(ipaddress.ip_address(address[0]).is_unspecified for *_, address in found)


def free_port() -> int:
    """A TCP port on loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens on the port, and whose connections send small answers at once.

    As for other servers, a port whose last connections are still closing is free.

    Raises:
        OSError: the address is taken, or not of this machine.
    """
    # IPv4 sorts first.
    family, *_, address = min(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    listener = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
    return listener


def check_port(host: str, port: int, server: str, option: str) -> None:
    """Return if ``server`` could listen on the port now.

    Args:
        host: address or name of this machine.
        port: TCP port.
        server: for messages.
        option: that sets the port, for messages.

    Raises:
        UsageError: it could not; names the fix.
    """
    try:
        with listening_socket(host, port):
            return
    except (OSError, UnicodeError) as error:  # the latter for what no name can be
        raise UsageError(
            f"the {server} cannot listen on port {port} of {host}: "
            f"{getattr(error, 'strerror', None) or error}; choose "
            f"another port with {option}, or an address of this machine with --host"
        ) from error
