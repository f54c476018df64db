"""The settings that change the pace of a campaign, and never its result.

They choose devices and workers.
"""

from typing import Annotated, Final, Literal

from pydantic import Field

from chess_snn.devices import Backend, DeviceChoice
from chess_snn.errors import ConfigError
from chess_snn.ports import is_loopback
from chess_snn.settings import check_choice, check_range, settings_class

PACE_GROUPS: Final = ("execution", "cluster")

ClusterKind = Literal["local", "address"]

_SCHEMES: Final = ("tcp", "tls")


@settings_class("execution")
class ExecutionSettings:
    """Devices and workers. They change the pace, and the result only by rounding."""

    device: DeviceChoice = "auto"
    """Device of networks: `cpu`, `cuda` for every visible GPU, or `auto`: GPUs if there are any."""
    gpus: tuple[Annotated[int, Field(ge=0)], ...] = Field(default=(), strict=False)
    """Numbers of the visible GPUs to use, from 0; `[]` takes all of them."""
    workers: int = Field(default=0, ge=0, le=1024)
    """Number of worker processes that play, rounded down to a multiple of the devices. 0 uses every
    device, as far as memory and the games of an iteration suffice."""
    worker_memory_mib: int = Field(default=0, ge=0)
    """Memory limit of a worker, which is restarted above it; 0 divides the machine's memory
    evenly."""
    bind_cores: bool = True
    """Whether each worker is bound to processor cores of its own; training always uses all
    cores."""
    training_ranks: int = Field(default=0, ge=0, le=1024)
    """Processes that train a network together on each machine and divide the micro-batches of every
    step. 0 takes one per GPU, at most one per micro-batch, and one on a CPU. 1 trains in one of the
    workers."""
    training_backend: Backend = "auto"
    """How these processes communicate: `nccl`, `gloo`, or `auto`: NCCL if each has a GPU of its
    own, else gloo."""
    overlap: bool = True
    """Whether a generation is evaluated while the next iteration plays."""

    def __post_init__(self) -> None:
        if self.device == "cpu" and self.training_backend == "nccl":
            raise ConfigError(
                'execution.training_backend = "nccl" needs GPUs, and execution.device = "cpu"; '
                'set the backend to "gloo" or "auto"'
            )
        if len(set(self.gpus)) < len(self.gpus):
            raise ConfigError(f"execution.gpus must be different numbers, got {list(self.gpus)}")


@settings_class("cluster")
class ClusterSettings:
    """The cluster of workers. Like `[execution]` it changes the pace and not the result."""

    kind: ClusterKind = "local"
    """`local`: this machine's; `address`: those of a Dask scheduler that runs already."""
    address: str = ""
    """Address of the scheduler, for `address`: `tls://box-a:8786`; `tcp://` is for loopback
    only."""
    certificates: str = ""
    """Folder made by `chess-snn cluster certs`; empty takes `CHESS_SNN_CERTIFICATES`."""

    def __post_init__(self) -> None:
        if self.kind == "address":
            check_address("cluster.address", self.address)
        elif self.address:
            raise ConfigError(
                f'cluster.address = "{self.address}" is for cluster.kind = "address", and the kind '
                f'is "{self.kind}"; set the kind, or leave the address out'
            )


def check_address(setting: str, address: str) -> None:
    """Raise ConfigError unless ``address`` is ``tls://HOST:PORT``, or ``tcp://`` on loopback."""
    scheme, separator, rest = address.partition("://")
    host, colon, port = rest.rpartition(":")
    if not (separator and colon and host and port.isascii() and port.isdigit()):
        raise ConfigError(
            f'{setting} must be the address of a Dask scheduler such as "tls://box-a:8786", got '
            f'"{address}"'
        )
    check_choice(f"scheme of {setting}", scheme, _SCHEMES)
    check_range(f"port of {setting}", int(port), ge=1, le=65535)
    if scheme == "tcp" and not is_loopback(host):
        raise ConfigError(
            f'{setting} = "{address}" leaves this machine, and tcp:// neither encrypts nor asks '
            f"who is there; use tls://{rest}, with certificates from `chess-snn cluster certs`"
        )
