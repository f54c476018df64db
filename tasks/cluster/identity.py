"""Identity of a worker and of its software: workers work only for campaigns of the same.

A worker offers its device under a Dask resource whose name is a digest of its software, and a
campaign asks for the resource of its own. So a worker that differs gets no work, no matter who
started it and whenever it comes, and need not be asked to leave.
"""

import hashlib
import json
import sys
from dataclasses import asdict
from functools import cache
from importlib import metadata
from typing import Final

from packaging.version import Version

from chess_snn import __version__
from chess_snn.campaign.machine.slots import WorkerSlot, own_slot
from chess_snn.cores import num_cores
from chess_snn.data.shard import SHARD_FORMAT
from chess_snn.games import get_game
from chess_snn.known import GAME_NAMES
from chess_snn.nets.gpu.gpu_faults import device_fault_of
from chess_snn.sources import sources_digest
from chess_snn.types import Json

_PACKAGES: Final = ("torch", "numpy", "numba", "distributed")
_DIGEST_LENGTH: Final = 12

IDENTITY: Final = "chess_snn"
"""Key of :func:`tell_identity` in what Dask's scheduler knows of a worker."""


@cache
def own_software() -> dict[str, str]:
    """Software that must be the same in a campaign and in its workers, by name."""
    return {
        "chess-snn": __version__,
        # Those of one version may differ while it is worked on.
        "sources": sources_digest(),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        # A build for CUDA and one for processors may work together: the local part is left out.
        **{name: Version(metadata.version(name)).public for name in _PACKAGES},
        "shards": f"version {SHARD_FORMAT.version}",
        # Everything that arrays and networks of the game depend on.
        **{game: _digest(repr(get_game(game).spec)) for game in GAME_NAMES},
    }


def differences(found: dict[str, str]) -> str:
    """``torch 2.8.0 (2.13.0 here)`` and so on for all that is not as in this process."""
    return ", ".join(
        f"{name} {found.get(name, 'missing')} ({wanted} here)"
        for name, wanted in own_software().items() if found.get(name) != wanted
    )


def own_resource() -> str:
    """Name of the Dask resource that a worker of this software offers, one of it."""
    return f"device-{_digest(json.dumps(own_software(), sort_keys=True))}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]


def tell_identity(slot: WorkerSlot) -> Json:
    """Facts that a worker in ``slot`` tells the scheduler when it comes.

    Its ``software``, its ``slot``, the ``num_cores`` of its machine that workers may use, and the
    ``fault`` for which it cannot use its GPU, in one line; empty if it can, or has none.
    """
    fault = device_fault_of(slot.device)
    return {
        "software": own_software(), "place": asdict(slot), "num_cores": num_cores(),
        "fault": f"{slot.site} cannot be used: {fault}" if fault else "",
    }


def own_device() -> str:
    """The device of this worker for people; empty where it has no place."""
    slot = own_slot()
    return "" if slot is None else slot.site
