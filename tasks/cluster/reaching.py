"""Whether a scheduler can be reached and spoken to, before anything is begun with it."""

import asyncio
import sys
from typing import Any, Final

import dask
import distributed
from distributed import Security, rpc
from distributed.comm.core import CommClosedError

from chess_snn.errors import ClusterError

TIMEOUT_S: Final = 10.0


def check_scheduler(address: str, security: Security | None, timeout_s: float = TIMEOUT_S) -> None:
    """Return if a scheduler of our versions answers at ``address``.

    Raises:
        ClusterError: nobody answers, somebody else does, or one of other versions.
    """
    found = asyncio.run(_packages(address, security, timeout_s))
    ours = {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "dask": dask.__version__,
        "distributed": distributed.__version__,
    }
    theirs = found | {"python": ".".join(str(found.get("python")).split(".")[:2])}
    different = [
        f"{name} {theirs.get(name)} ({version} here)"
        for name, version in ours.items() if theirs.get(name) != version
    ]
    if different:
        raise ClusterError(
            f"the scheduler at {address} has {', '.join(different)}; start it from the same "
            "environment: chess-snn cluster scheduler"
        )


async def _packages(
    address: str, security: Security | None, timeout_s: float
) -> dict[str, Any]:
    """Versions by name, as the scheduler tells them."""
    arguments = (security or Security()).get_connection_args("client")
    try:
        async with asyncio.timeout(timeout_s):
            async with rpc(address, connection_args=arguments, timeout=timeout_s / 2) as scheduler:
                told = await scheduler.versions()
        packages: dict[str, Any] = told["packages"]
    except (OSError, TimeoutError, CommClosedError) as error:
        raise ClusterError(
            f"cannot reach a scheduler at {address}: {_reason(error)}; is `chess-snn cluster "
            "scheduler` running there, is the port open, and are the certificates the same?"
        ) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ClusterError(
            f"what answers at {address} is no Dask scheduler; look at the port"
        ) from error
    return packages


def _reason(error: BaseException) -> str:
    """The deepest cause that says something."""
    cause = error.__cause__ or error.__context__
    if cause is not None and str(cause):
        return _reason(cause)
    return str(error) or "no answer"
