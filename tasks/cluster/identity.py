"""Which worker this is, and which software it runs: workers work only for campaigns of the same.

A worker offers its device under a Dask resource whose name is a digest of its software, and a
campaign asks for the resource of its own. So a worker that differs gets no work, whoever started it
and whenever it comes, and need not be asked to leave.
"""

import hashlib
import json
import socket
import sys
from dataclasses import asdict
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final, TypedDict

from packaging.version import Version

from chess_snn import __version__
from chess_snn.campaign.machine.places import own_place
from chess_snn.cores import num_cores
from chess_snn.data.shard import SHARD_FORMAT
from chess_snn.devices import device_fault_of, processor
from chess_snn.games import GAME_NAMES, get_game
from chess_snn.sources import sources_digest

_PACKAGES: Final = ("torch", "numpy", "numba", "distributed")
_OWN_PACKAGES: Final = ("chess_snn", "tasks")
"""What a worker runs of ours, side by side in one folder, installed or not."""
_DIGEST_LENGTH: Final = 12


@cache
def own_software() -> dict[str, str]:
    """What must be the same in a campaign and in its workers, by name."""
    return {
        "chess-snn": __version__,
        # Those of one version may differ while it is worked on.
        "sources": sources_digest(Path(__file__).parents[2], _OWN_PACKAGES),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        # A build for CUDA and one for processors may work together: the local part is left out.
        **{name: Version(metadata.version(name)).public for name in _PACKAGES},
        "shards": f"version {SHARD_FORMAT.version}",
        **{game: _game_digest(game) for game in GAME_NAMES},
    }


def differences(found: dict[str, str]) -> str:
    """``torch 2.8.0 (2.13.0 here)`` and so on for all that is not as in this process."""
    return ", ".join(
        f"{name} {found.get(name, 'missing')} ({wanted} here)"
        for name, wanted in own_software().items() if found.get(name) != wanted
    )


def resource(role: str) -> str:
    """Name of the Dask resource that a worker of this software offers, one of it, for ``role``."""
    text = json.dumps(own_software(), sort_keys=True)
    return f"{role}-{hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]}"


def _game_digest(game: str) -> str:
    """Of everything that arrays and networks of the game depend on."""
    return hashlib.sha256(repr(get_game(game).spec).encode()).hexdigest()[:_DIGEST_LENGTH]


IDENTITY: Final = "chess_snn"
"""Key of :class:`WorkerIdentity` in what Dask's scheduler knows of a worker."""


class WorkerIdentity(TypedDict):
    """What a worker tells the scheduler of itself when it comes."""

    software: dict[str, str]
    device: str
    """For people; the same for all workers of one device, and no other's."""
    host: str
    """What its machine is called; workers that share cores and GPUs have the same."""
    shares_cores: bool
    """Whether its networks run on the processor's cores."""
    num_cores: int
    """Cores of its machine which workers may use."""
    hardware: dict[str, Any]
    """The device, a :class:`chess_snn.devices.Device`."""
    fault: str
    """Why it cannot work, in one line; empty if it can."""
    gpus: int
    """Of its machine, that train together where this worker is asked to train."""


def tell_identity() -> WorkerIdentity:
    """Of the worker process that this is called in."""
    place = own_place()
    return {
        "software": own_software(),
        "device": own_device() or f"a device of {socket.gethostname()}",
        "host": socket.gethostname() if place is None else place.host,
        "shares_cores": place is None or place.device.shares_cores,
        "num_cores": num_cores(),
        "hardware": asdict(processor() if place is None else place.device),
        "fault": _device_fault(),
        "gpus": 0 if place is None else len(place.machine_gpus),
    }


def _device_fault() -> str:
    """Why this worker cannot use the GPU that it was given; empty if it can, or has none."""
    place = own_place()
    fault = "" if place is None else device_fault_of(place.device)
    return f"{own_device()} cannot be used: {fault}" if fault else ""


def own_device() -> str:
    """The device of this worker, as :func:`tell_identity` names it; empty where it has no place."""
    place = own_place()
    return "" if place is None else place.site
