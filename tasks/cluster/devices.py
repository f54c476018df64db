"""The workers of campaigns: which ones they are, how busy, and which devices are at fault.

Workers work only for campaigns of the same software. A worker offers its device under a Dask
resource whose name is a digest of its software, and a campaign asks for the resource of its own. So
a worker that differs gets no work, no matter who started it and whenever it comes, and need not be
asked to leave.

A device that fails at once takes shard after shard from those that work. So a call that fails on
one device is tried on another: if it succeeds there, the first device gets a strike; if it fails
there too, the call itself is at fault. A worker that dies over its work is a strike as well. A
success takes all strikes away.
"""

import hashlib
import json
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

from packaging.version import Version

from chess_snn import __version__
from chess_snn.campaign.machine.slots import WorkerSlot, own_slot
from chess_snn.campaign.store.receipts import DeviceUse
from chess_snn.campaign.viewing.events import WorkerProgress
from chess_snn.cores import num_cores
from chess_snn.data.shard import SHARD_FORMAT
from chess_snn.games import GAME_NAMES, get_game
from chess_snn.nets.gpu_faults import device_fault_of
from chess_snn.sources import sources_digest
from chess_snn.types import Json

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
        # Everything that arrays and networks of the game depend on.
        **{game: _digest(repr(get_game(game).spec)) for game in GAME_NAMES},
    }


def differences(found: dict[str, str]) -> str:
    """``torch 2.8.0 (2.13.0 here)`` and so on for all that is not as in this process."""
    return ", ".join(
        f"{name} {found.get(name, 'missing')} ({wanted} here)"
        for name, wanted in own_software().items() if found.get(name) != wanted
    )


def resource(role: str) -> str:
    """Name of the Dask resource that a worker of this software offers, one of it, for ``role``."""
    return f"{role}-{_digest(json.dumps(own_software(), sort_keys=True))}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]


IDENTITY: Final = "chess_snn"
"""Key of :func:`tell_identity` in what Dask's scheduler knows of a worker."""


def tell_identity(slot: WorkerSlot) -> Json:
    """What a worker in ``slot`` tells the scheduler of itself when it comes.

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


_GIB: Final = 2**30

STRIKES: Final = 3
"""In a row, after which a device is retired."""


@dataclass(frozen=True, slots=True)
class PoolWorker:
    """A worker that does work for the campaign."""

    address: str
    slot: WorkerSlot
    host_cores: int = 1
    """Cores of its machine which workers may use."""

    @property
    def name(self) -> str:
        """As Dask and people call it."""
        return self.slot.name

    @property
    def device(self) -> str:
        """For people; workers of one device have the same."""
        return self.slot.site

    @property
    def shares_cores(self) -> bool:
        """Whether its networks run on the processor's cores, as those of a simulated GPU do."""
        return self.slot.device.shares_cores


Look = Sequence[tuple[PoolWorker, WorkerProgress]]
"""Workers, and what each was doing at one moment."""


@dataclass(frozen=True, slots=True)
class UseTotals:
    """Sums over looks at the workers; the difference of two tells of the time between them."""

    looks: int = 0
    devices: int = 0
    utilisation: float = 0.0
    memory_bytes: float = 0.0

    def after(self, look: Look) -> "UseTotals":
        """With one look more: GPUs count or, if no worker has one, processors."""
        found = _cpus(look) if all(worker.shares_cores for worker, _ in look) else _gpus(look)
        return UseTotals(
            self.looks + 1, self.devices + len(found),
            self.utilisation + sum(share for share, _ in found),
            self.memory_bytes + sum(memory for _, memory in found),
        )

    def until(self, later: "UseTotals") -> DeviceUse | None:
        """Means over the looks since this one; None where no device could be asked."""
        devices = later.devices - self.devices
        if not devices:
            return None
        return DeviceUse(
            count=devices / (later.looks - self.looks),
            utilisation=(later.utilisation - self.utilisation) / devices,
            memory_gib=(later.memory_bytes - self.memory_bytes) / devices / _GIB,
        )


def _gpus(look: Look) -> list[tuple[float, int]]:
    """Share of the time and bytes of each GPU that tells of both; its workers see the same."""
    return list({
        worker.device: (state.gpu_share, state.gpu_memory_bytes)
        for worker, state in look
        if state.gpu_share is not None and state.gpu_memory_bytes is not None
    }.values())


def _cpus(look: Look) -> list[tuple[float, int]]:
    """Share of its cores that workers keep busy, and their memory in bytes, of each machine."""
    found = []
    for host, cores in {worker.slot.host: worker.host_cores for worker, _ in look}.items():
        here = [state for worker, state in look if worker.slot.host == host]
        busy = sum(state.cores for state in here)
        found.append((min(1.0, busy / cores), sum(state.memory_bytes for state in here)))
    return found


@dataclass(slots=True)
class DeviceHealth:
    """Counts for the devices of one campaign; may be told by several threads."""

    retired: set[str] = field(default_factory=set)
    _strikes: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def succeeded(self, device: str) -> None:
        """Work was done on ``device``."""
        with self._lock:
            self._strikes.pop(device, None)

    def failed(self, device: str, others: set[str]) -> bool:
        """A failure that is the device's own; whether it is to be retired now.

        Args:
            device: that failed.
            others: devices that are there, with or without it; the last one is never retired.
        """
        with self._lock:
            if device in self.retired:
                return False
            self._strikes[device] = self._strikes.get(device, 0) + 1
            left = others - self.retired - {device}
            if self._strikes[device] < STRIKES or not left:
                return False
            self.retired.add(device)
            return True
