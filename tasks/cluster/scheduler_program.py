"""A Dask scheduler that stays: campaigns and workers meet there."""

import asyncio
import errno
import socket

import dask
from distributed import Scheduler, Security

from chess_snn.errors import UsageError
from chess_snn.types import LogFn
from tasks.cluster.ending import end_of_program
from tasks.cluster.liveness import DASK_SETTINGS, quiet_dask

_STATUS_PAGE = "127.0.0.1:0"
"""Of Dask's own pages, which ask nobody for a password."""


def run_scheduler(
    host: str, port: int, security: Security | None, on_ready: LogFn
) -> None:
    """Be a scheduler until SIGINT or SIGTERM.

    Args:
        host: address of this machine to listen on; on another than loopback with ``security``.
        port: to listen on.
        security: certificates; None for plain TCP.
        on_ready: called with the scheduler's address.

    Raises:
        UsageError: it cannot listen there; names the way out.
    """
    check_can_listen(host, port)
    quiet_dask()
    with dask.config.set(DASK_SETTINGS):
        asyncio.run(_run(host, port, security, on_ready))


def check_can_listen(host: str, port: int) -> None:
    """Return if a scheduler could listen there now.

    Raises:
        UsageError: it could not; says why.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.create_server(address[:2], family=family):
            return
    except socket.gaierror as error:
        raise UsageError(
            f"--host {host} is not known: {error.strerror}; give an address of this machine"
        ) from error
    except OSError as error:
        reason = {
            errno.EADDRINUSE: "is in use; end who listens there, or choose another with --port",
            errno.EADDRNOTAVAIL: f"cannot be had: {host} is no address of this machine",
            errno.EACCES: "is for administrators; choose one from 1024 on with --port",
        }.get(error.errno or 0, f"cannot be had: {error.strerror}")
        raise UsageError(f"port {port} of {host} {reason}") from error


async def _run(
    host: str, port: int, security: Security | None, on_ready: LogFn
) -> None:
    protocol = "tcp" if security is None else "tls"
    async with Scheduler(
        host=host, port=port, protocol=protocol, security=security,
        dashboard_address=_STATUS_PAGE,
    ) as scheduler:
        on_ready(scheduler.address)
        await end_of_program(scheduler.finished())
