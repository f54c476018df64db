"""Who a worker is: asked of it when it comes."""

import socket
from dataclasses import asdict
from typing import Any, TypedDict

from chess_snn.campaign.machine.places import own_place
from chess_snn.cores import num_cores
from chess_snn.devices import device_fault_of, processor
from tasks.cluster.software import own_software


class WorkerIdentity(TypedDict):
    """What a worker tells of itself."""

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
        "fault": device_fault(),
        "gpus": 0 if place is None else len(place.machine_gpus),
    }


def device_fault() -> str:
    """Why this worker cannot use the GPU that it was given; empty if it can, or has none."""
    place = own_place()
    fault = "" if place is None else device_fault_of(place.device)
    return f"{own_device()} cannot be used: {fault}" if fault else ""


def own_device() -> str:
    """The device of this worker, as :func:`tell_identity` names it; empty where it has no place."""
    place = own_place()
    return "" if place is None else place.site
