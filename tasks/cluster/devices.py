"""The devices of a campaign's workers: how busy they are, and which ones are at fault.

A device that fails at once takes shard after shard from those that work. So a call that fails on
one device is tried on another: if it succeeds there, the first device gets a strike; if it fails
there too, the call itself is at fault. A worker that dies over its work is a strike as well. A
success takes all strikes away.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from chess_snn.campaign.machine.slots import WorkerSlot
from chess_snn.campaign.store.receipt_parts import DeviceUse
from chess_snn.campaign.viewing.events import WorkerProgress

_GIB: Final = 2**30

STRIKES: Final = 3
"""Strikes in a row after which a device is retired."""


@dataclass(frozen=True, slots=True)
class PoolWorker:
    """A worker that does work for the campaign."""

    address: str
    slot: WorkerSlot
    host_cores: int = 1
    """Cores of its machine which workers may use."""

    @property
    def name(self) -> str:
        """Name for Dask and for people."""
        return self.slot.name

    @property
    def device(self) -> str:
        """Device for people; workers of one device have the same."""
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
        """Add one look: GPUs count or, if no worker has one, processors."""
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
