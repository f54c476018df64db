"""The slot of each worker process on a machine: its device, its cores, its memory."""

import json
import os
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Final

from chess_snn.campaign.store.typed_json import from_json
from chess_snn.cores import available_cores
from chess_snn.devices import ASSIGNED_KIND, VISIBLE_GPUS, Device

_SLOT: Final = "CHESS_SNN_WORKER_SLOT"
_CGROUP_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


@dataclass(frozen=True, slots=True)
class Machine:
    """Resources to deal out."""

    gpus: tuple[Device, ...]
    cores: tuple[int, ...]
    """Numbers of the cores that this program may use."""
    memory_bytes: int
    """Memory of the machine, or of the container."""
    host: str
    """Name of the machine, in the names of its workers."""


@dataclass(frozen=True, slots=True)
class WorkerSlot:
    """Place and resources of one worker process."""

    number: int
    """Among the workers of this machine, from 0."""
    host: str
    """Name of the machine."""
    device: Device
    cores: tuple[int, ...]
    """It keeps to these; empty where it is not bound."""
    num_threads: int
    """Cores it computes with while all work side by side."""
    memory_bytes: int
    """It is ended above this."""
    machine_gpus: tuple[str, ...]
    """GPUs of all devices that the campaign has on this machine, for those who train by ranks."""

    @property
    def name(self) -> str:
        """``box-a/gpu1-3``: host, device and number."""
        device = f"gpu{self.device.index}" if self.device.is_gpu else "cpu"
        return f"{self.host}/{device}-{self.number}"

    @property
    def site(self) -> str:
        """``GPU 1 (NVIDIA H200) of box-a``: the same for all workers of a device."""
        return f"{self.device} of {self.host}"

    def environment(self) -> dict[str, str]:
        """Variables that put a process in this slot."""
        return {
            _SLOT: json.dumps(asdict(self)),
            ASSIGNED_KIND: self.device.kind,
            VISIBLE_GPUS: self.device.token,
        }


@cache
def own_slot() -> WorkerSlot | None:
    """The slot that this process runs in; None if it is not a worker."""
    text = os.environ.get(_SLOT)
    return None if text is None else from_json(WorkerSlot, json.loads(text))


def this_machine(gpus: Sequence[Device], host: str = "") -> Machine:
    """Return what this program may use here, with ``gpus`` as they were found."""
    cores = tuple(available_cores())
    return Machine(tuple(gpus), cores, memory_bytes(), host or socket.gethostname())


def memory_bytes() -> int:
    """Memory of the machine, or of the container where that has less."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for limit in _CGROUP_LIMITS:
        try:
            total = min(total, int(limit.read_text()))
        except (OSError, ValueError):  # another version of control groups, or no limit: "max"
            continue
    return total
