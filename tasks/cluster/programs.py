"""The programs of a cluster: a scheduler, the workers of a machine, and a look at a scheduler."""

import asyncio
import signal
import sys
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final

import dask
import distributed
from distributed import Scheduler, Security, rpc
from distributed.comm.core import CommClosedError
from distributed.utils import get_ip

from chess_snn.campaign.machine.slots import WorkerSlot
from chess_snn.errors import ClusterError, ConfigError
from chess_snn.ports import check_port, is_loopback
from chess_snn.tasks.cluster.nannies import ANY_LOOPBACK_PORT, WorkerNanny, nanny_options
from chess_snn.tasks.cluster.worker_setup import DASK_SETTINGS, quiet_dask
from chess_snn.types import LogFn

_RETRY_S: Final = 3.0
_TIMEOUT_S: Final = 10.0


def run_scheduler(host: str, port: int, security: Security | None, on_ready: LogFn) -> None:
    """Be a scheduler until SIGINT or SIGTERM; ``on_ready`` is called with its address.

    Off loopback it needs ``security``; None is plain TCP.

    Raises:
        UsageError: it cannot listen there; names the fix.
    """
    check_port(host, port, "scheduler", "--port")
    quiet_dask()

    async def run() -> None:
        async with Scheduler(
            host=host, port=port, protocol="tcp" if security is None else "tls", security=security,
            dashboard_address=ANY_LOOPBACK_PORT,
        ) as scheduler:
            on_ready(scheduler.address)
            await _until_signalled(scheduler.finished())

    with dask.config.set(DASK_SETTINGS):
        asyncio.run(run())


def run_workers(
    address: str, slots: Sequence[WorkerSlot], security: Security | None, *,
    host: str = "", patience_s: float, on_news: LogFn,
) -> None:
    """Work for the campaigns of a scheduler until SIGINT or SIGTERM, or until all are dismissed.

    Args:
        address: of the scheduler.
        slots: one for each worker.
        security: certificates; None for plain TCP.
        host: address of this machine to listen on, by the protocol of the scheduler; empty takes
            the one that leads there.
        patience_s: how long the scheduler may be away.
        on_news: gets a line when a worker comes or goes.

    Raises:
        ConfigError: others would reach the workers, and nothing asks who is there.
        ClusterError: the scheduler cannot be reached, is of other versions, or stayed away.
    """
    own_host = _own_host(address, host)
    check_scheduler(address, security)
    quiet_dask()
    with dask.config.set(DASK_SETTINGS):
        asyncio.run(_until_signalled(*(
            _keep(address, slot, security, own_host, patience_s, on_news) for slot in slots
        )))


def _own_host(address: str, host: str) -> str:
    """The address on which workers listen; off loopback by TLS alone."""
    scheme, _, rest = address.partition("://")
    own_host = host or get_ip(rest.rpartition(":")[0].strip("[]"))
    if scheme != "tls" and not is_loopback(own_host):
        raise ConfigError(
            f"workers of {address} would listen on {own_host}, which others can reach, and "
            f"{scheme}:// neither encrypts nor asks who is there; use --host 127.0.0.1, or a "
            "scheduler with a tls:// address and certificates from `chess-snn cluster certs`"
        )
    return own_host


async def _keep(
    address: str, slot: WorkerSlot, security: Security | None, host: str, patience_s: float,
    on_news: LogFn,
) -> None:
    """Have a worker in ``slot`` again and again, until it is dismissed."""
    seen_s = time.monotonic()
    while True:
        nanny = WorkerNanny(
            address, name=slot.name, host=host, security=security, **nanny_options(slot)
        )
        try:
            async with nanny:
                on_news(f"worker {slot.name} is up")
                await nanny.finished()
            seen_s, reason = time.monotonic(), "its scheduler is gone"
        except (OSError, TimeoutError, RuntimeError, ValueError) as error:
            reason = str(error.__cause__ or error)
        if nanny.is_dismissed:
            on_news(f"worker {slot.name} was dismissed; start this command again to bring it back")
            return
        if time.monotonic() - seen_s > patience_s:
            raise ClusterError(
                f"worker {slot.name} has not reached {address} for {patience_s:.0f} s: {reason}"
            )
        on_news(f"worker {slot.name}: {reason}; it tries again")
        await asyncio.sleep(_RETRY_S)


async def _until_signalled(*programs: Coroutine[Any, Any, object]) -> None:
    """Run ``programs`` side by side until all are done, one fails, or SIGINT or SIGTERM comes."""
    loop = asyncio.get_running_loop()
    running = [asyncio.ensure_future(program) for program in programs]
    together = asyncio.gather(*running)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, together.cancel)
    try:
        with suppress(asyncio.CancelledError):
            await together
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def check_scheduler(address: str, security: Security | None, timeout_s: float = _TIMEOUT_S) -> None:
    """Return if a scheduler of our versions answers at ``address``.

    Raises:
        ClusterError: there is no answer, or one of another program or version.
    """
    arguments = (security or Security()).get_connection_args("client")

    async def ask() -> Any:
        async with (
            asyncio.timeout(timeout_s),
            rpc(address, connection_args=arguments, timeout=timeout_s / 2) as scheduler,
        ):
            return await scheduler.versions()

    try:
        found: dict[str, Any] = asyncio.run(ask())["packages"]
        theirs = found | {"python": ".".join(str(found.get("python")).split(".")[:2])}
    except (OSError, TimeoutError, CommClosedError) as error:
        raise ClusterError(
            f"cannot reach a scheduler at {address}: {_reason(error)}; is `chess-snn cluster "
            "scheduler` running there, is the port open, and are the certificates the same?"
        ) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ClusterError(
            f"what answers at {address} is not a Dask scheduler; look at the port"
        ) from error
    ours = {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "dask": dask.__version__,
        "distributed": distributed.__version__,
    }
    different = [
        f"{name} {theirs.get(name)} ({version} here)"
        for name, version in ours.items() if theirs.get(name) != version
    ]
    if different:
        raise ClusterError(
            f"the scheduler at {address} has {', '.join(different)}; start it from the same "
            "environment: chess-snn cluster scheduler"
        )


def _reason(error: BaseException) -> str:
    """The deepest cause that says something."""
    cause = error.__cause__ or error.__context__
    if cause is not None and str(cause):
        return _reason(cause)
    return str(error) or "no answer"
