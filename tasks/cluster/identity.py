"""Who a worker is: asked of it when it comes."""

import socket
from typing import TypedDict

from chess_snn.campaign.machine.places import own_place
from chess_snn.cores import num_cores
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


def tell_identity() -> WorkerIdentity:
    """Of the worker process that this is called in."""
    place = own_place()
    return {
        "software": own_software(),
        "device": own_device() or f"a device of {socket.gethostname()}",
        "host": socket.gethostname() if place is None else place.host,
        "shares_cores": place is None or place.device.shares_cores,
        "num_cores": num_cores(),
    }


def own_device() -> str:
    """The device of this worker, as :func:`tell_identity` names it; empty where it has no place."""
    place = own_place()
    return "" if place is None else place.site
