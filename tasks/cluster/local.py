"""The Dask cluster of a campaign on this machine: a scheduler here, and warm worker processes."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

from distributed import Scheduler, Security, SpecCluster

from chess_snn.campaign.machine.places import WorkerPlace
from chess_snn.errors import ClusterError
from tasks.cluster.nannies import ANY_LOOPBACK_PORT, AttentiveNanny, nanny_options

_LOOPBACK: Final = "127.0.0.1"
_GOODBYE: Final = "Closed comm"
"""Begins what Dask's scheduler says, with a traceback, where it was about to write to somebody who
has just left, as at the end of a campaign. Connections that break are told by the campaign."""


class OwnCluster(SpecCluster):  # type: ignore[misc]  # distributed has no types
    """A cluster that can be stopped while its workers start, and leaves none of them then."""

    def __init__(self, **kwargs: Any) -> None:
        """As of the base class, which closes itself after errors, and not after Ctrl-C."""
        try:
            super().__init__(**kwargs)
        except BaseException:
            if hasattr(self, "status"):  # else there is nothing to close yet
                self.close()
            raise

    async def _close(self) -> None:
        # The base class knows of workers once they are up.
        starting = [each for each in self._created if each not in self.workers.values()]
        await asyncio.gather(*(each.close() for each in starting), return_exceptions=True)
        await super()._close()


def _is_no_goodbye(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(_GOODBYE)


def local_cluster(places: Sequence[WorkerPlace]) -> OwnCluster:
    """A cluster with a worker in each of ``places``; it is up when this returns.

    Its processes know one another by a certificate that is made for them and kept in memory: who
    may talk to Dask may run programs, and loopback is open to every user of the machine.

    Raises:
        ClusterError: a worker does not come up.
    """
    security = Security.temporary()
    logging.getLogger("distributed.scheduler").addFilter(_is_no_goodbye)
    try:
        return OwnCluster(
            security=security,
            scheduler={
                "cls": Scheduler,
                "options": {
                    "host": _LOOPBACK, "port": 0, "dashboard_address": ANY_LOOPBACK_PORT,
                    "security": security,
                },
            },
            workers={
                place.name: {
                    "cls": AttentiveNanny,
                    "options": {"host": _LOOPBACK, "security": security, **nanny_options(place)},
                }
                for place in places
            },
            silence_logs=logging.ERROR,
        )
    except RuntimeError as error:
        raise ClusterError(
            f"a worker does not come up: {error.__cause__ or error}; look at the machine's memory, "
            "and take fewer workers: execution.workers"
        ) from error
