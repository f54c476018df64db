"""The programs of a cluster that stay, a scheduler and the workers of a machine; their commands."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Any, Final

import dask
from distributed import Scheduler, Security
from distributed.utils import get_ip

from chess_snn.campaign.configuration.pace import ExecutionSettings, is_loopback
from chess_snn.campaign.machine.places import WorkerPlace
from chess_snn.devices import gpus_option
from chess_snn.errors import ClusterError, ConfigError
from chess_snn.ports import check_port
from chess_snn.types import LogFn
from tasks.cluster.liveness import DASK_SETTINGS, quiet_dask
from tasks.cluster.nannies import ANY_LOOPBACK_PORT, AttentiveNanny, nanny_options
from tasks.cluster.reaching import check_scheduler

_RETRY_S: Final = 3.0

PATIENCE_S: Final = 60
"""Workers whose scheduler is gone end after this long, and with them the job that they are in.

A job's scheduler goes with its campaign. That of pods is a pod itself, and outlives a campaign that
was killed; so do its workers, until `resume` or kubectl deletes them all.
"""


def run_scheduler(host: str, port: int, security: Security | None, on_ready: LogFn) -> None:
    """Be a scheduler until SIGINT or SIGTERM.

    Args:
        host: address of this machine to listen on; on another than loopback with ``security``.
        port: to listen on.
        security: certificates; None for plain TCP.
        on_ready: called with the scheduler's address.

    Raises:
        UsageError: it cannot listen there; names the way out.
    """
    check_port(host, port, "scheduler", "--port")
    quiet_dask()
    with dask.config.set(DASK_SETTINGS):
        asyncio.run(_run_scheduler(host, port, security, on_ready))


async def _run_scheduler(
    host: str, port: int, security: Security | None, on_ready: LogFn
) -> None:
    protocol = "tcp" if security is None else "tls"
    async with Scheduler(
        host=host, port=port, protocol=protocol, security=security,
        dashboard_address=ANY_LOOPBACK_PORT,
    ) as scheduler:
        on_ready(scheduler.address)
        await _end_of_program(scheduler.finished())


def run_workers(
    address: str, places: Sequence[WorkerPlace], security: Security | None, *,
    host: str = "", patience_s: float, on_news: LogFn,
) -> None:
    """Work for the campaigns of a scheduler until SIGINT or SIGTERM, or until all are dismissed.

    Args:
        address: of the scheduler.
        places: one for each worker.
        security: certificates; None for plain TCP.
        host: address of this machine to listen on, by the protocol of the scheduler; empty takes
            the one that leads there.
        patience_s: how long the scheduler may be away.
        on_news: is told when a worker comes and goes.

    Raises:
        ConfigError: others would reach the workers, and nothing asks who is there.
        ClusterError: the scheduler cannot be reached, is of other versions, or stayed away.
    """
    own_host = _own_host(address, host)
    check_scheduler(address, security)
    quiet_dask()
    with dask.config.set(DASK_SETTINGS):
        asyncio.run(_run_workers(address, places, security, own_host, patience_s, on_news))


def _own_host(address: str, host: str) -> str:
    """Where workers listen; off loopback by TLS alone."""
    scheme, _, rest = address.partition("://")
    own_host = host or get_ip(rest.rpartition(":")[0].strip("[]"))
    if scheme != "tls" and not is_loopback(own_host):
        raise ConfigError(
            f"workers of {address} would listen on {own_host}, which others can reach, and "
            f"{scheme}:// neither encrypts nor asks who is there; use --host 127.0.0.1, or a "
            "scheduler with a tls:// address and certificates from `chess-snn cluster certs`"
        )
    return own_host


async def _run_workers(
    address: str, places: Sequence[WorkerPlace], security: Security | None, host: str,
    patience_s: float, on_news: LogFn,
) -> None:
    keepers = [
        asyncio.ensure_future(_keep(address, place, security, host, patience_s, on_news))
        for place in places
    ]
    try:
        await _end_of_program(*keepers)
    finally:
        for keeper in keepers:
            keeper.cancel()
        ends = await asyncio.gather(*keepers, return_exceptions=True)
    for end in ends:
        if isinstance(end, Exception):
            raise end


async def _keep(
    address: str, place: WorkerPlace, security: Security | None, host: str, patience_s: float,
    on_news: LogFn,
) -> None:
    """Have a worker in ``place`` again and again, until it is dismissed."""
    seen_s = time.monotonic()
    while True:
        nanny = AttentiveNanny(
            address, name=place.name, host=host, security=security, **nanny_options(place)
        )
        try:
            async with nanny:
                on_news(f"worker {place.name} is up")
                await nanny.finished()
            seen_s, reason = time.monotonic(), "its scheduler is gone"
        except (OSError, TimeoutError, RuntimeError, ValueError) as error:
            reason = str(error.__cause__ or error)
        if nanny.is_dismissed:
            on_news(f"worker {place.name} was dismissed; start this command again to bring it back")
            return
        if time.monotonic() - seen_s > patience_s:
            raise ClusterError(
                f"worker {place.name} has not reached {address} for {patience_s:.0f} s: {reason}"
            )
        on_news(f"worker {place.name}: {reason}; it tries again")
        await asyncio.sleep(_RETRY_S)


async def _end_of_program(*others: Awaitable[object]) -> bool:
    """Wait for SIGINT, SIGTERM, or for all of ``others`` to be done; whether a signal came."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    signalled: asyncio.Future[Any] = asyncio.ensure_future(told.wait())
    done: asyncio.Future[Any] = asyncio.gather(*others)
    try:
        await asyncio.wait([signalled, done], return_when=asyncio.FIRST_COMPLETED)
        return signalled.done()
    finally:
        for waiting in (signalled, done):
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting


def worker_words(address: str, execution: ExecutionSettings, certificates: str) -> list[str]:
    """`cluster worker` with the workers that ``execution`` asks for, behind the program's name."""
    words = [
        "cluster", "worker", address, "--certificates", certificates,
        "--device", execution.device, "--self-play-device", execution.self_play_device,
        "--patience-s", str(PATIENCE_S),
    ]
    if execution.gpus:
        words += ["--gpus", gpus_option(execution.gpus)]
    for name, value in (
        ("--workers", execution.workers),
        ("--workers-per-device", execution.workers_per_device),
        ("--memory-mib", execution.worker_memory_mib),
    ):
        if value:
            words += [name, str(value)]
    return words


def scheduler_words(host: str, port: int, certificates: str) -> list[str]:
    """`cluster scheduler`, likewise."""
    return [
        "cluster", "scheduler", "--host", host, "--port", str(port), "--certificates", certificates
    ]
