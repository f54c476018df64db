"""The settings of the cluster: whose workers do the work, and how they are reached."""

import ipaddress
from dataclasses import dataclass
from typing import Final, Literal, get_args

from chess_snn.config import check_choice, check_range
from chess_snn.errors import ConfigError

ClusterKind = Literal["local", "address", "slurm", "kubernetes"]

_SCHEMES: Final = ("tcp", "tls")


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Whose workers do the work; like `[execution]` it changes the pace, never the result."""

    kind: ClusterKind = "local"
    """`local`: this machine's; `address`: those of a Dask scheduler that runs already; `slurm` and
    `kubernetes`: those of jobs and pods that the campaign asks for, and ends."""
    address: str = ""
    """Of the scheduler, for `address`: `tls://box-a:8786`. Plain `tcp://` is for loopback alone."""
    certificates: str = ""
    """Folder that `chess-snn cluster certs` made for this host; empty takes
    `CHESS_SNN_CERTIFICATES`, or else what Dask's own configuration says."""
    shared_storage: bool = True
    """Whether every worker sees the campaign folder under the same path. Without it, weights travel
    to the workers, and shards back, by way of the campaign's process."""
    training_machines: int = 1
    """Machines that train each generation together, each with the `execution.training_ranks`
    processes of its own; where fewer are there, those train."""
    trust_network: bool = False
    """Needed for several: what passes between them is neither encrypted nor authenticated, and
    whoever reaches their ports can run programs as you. Say it of a private network, or where a
    firewall lets these machines alone through."""
    wait_s: float = 300.0
    """How long a campaign waits for its first worker before it gives up, in seconds; and for the
    scheduler of its pods, for `kubernetes`."""
    host: str = ""
    """Name or address by which jobs reach this machine, for `slurm`; empty lets Dask find it."""
    jobs: int = 1
    """Jobs or pods to ask for, for `slurm` and `kubernetes`; each starts the workers of its
    machine."""
    job_cores: int = 8
    """Processor cores of each."""
    job_gpus: int = 0
    """GPUs of each."""
    job_memory_gib: int = 32
    """Memory of each, in GiB."""
    job_hours: float = 12.0
    """Longest time of a job, for `slurm`; afterwards its workers are gone, and the campaign goes on
    with the others."""
    queue: str = ""
    """Partition, for `slurm`; empty takes the cluster's own default."""
    account: str = ""
    """Account that jobs are charged to, for `slurm`."""
    directives: tuple[str, ...] = ()
    """More options of each job, for `slurm`: `["--constraint=h200"]`."""
    setup: tuple[str, ...] = ()
    """Lines of shell that a job runs first, for `slurm`: `["source /shared/venv/bin/activate"]`."""
    image: str = ""
    """Container image with chess-snn, for `kubernetes`."""
    namespace: str = "chess-snn"
    """Where pods run, for `kubernetes`."""
    volume_claim: str = ""
    """Persistent volume claim with the campaign folders, mounted at `/data`, for `kubernetes`; with
    none, set `cluster.shared_storage = false`."""
    certificates_secret: str = ""
    """Secret with `ca.pem`, `node.pem` and `node-key.pem`, for `kubernetes`."""

    def __post_init__(self) -> None:
        check_choice("cluster.kind", self.kind, get_args(ClusterKind))
        check_range("cluster.training_machines", self.training_machines, ge=1, le=1024)
        check_range("cluster.wait_s", self.wait_s, gt=0, le=1_000_000)
        check_range("cluster.jobs", self.jobs, ge=1, le=10_000)
        check_range("cluster.job_cores", self.job_cores, ge=1, le=1024)
        check_range("cluster.job_gpus", self.job_gpus, ge=0, le=64)
        check_range("cluster.job_memory_gib", self.job_memory_gib, ge=1, le=100_000)
        check_range("cluster.job_hours", self.job_hours, gt=0, le=10_000)
        if self.training_machines > 1 and not self.trust_network:
            raise ConfigError(
                f"cluster.training_machines = {self.training_machines}: those that train together "
                "take pickles from whoever reaches their ports, without a password; in a private "
                "network, or behind a firewall, set cluster.trust_network = true, else "
                "cluster.training_machines = 1"
            )
        if self.kind == "address":
            check_address("cluster.address", self.address)
        elif self.address:
            raise ConfigError(
                f'cluster.address = "{self.address}" is for cluster.kind = "address", and the kind '
                f'is "{self.kind}"; set the kind, or leave the address out'
            )
        if self.kind == "kubernetes" and not (self.image and self.certificates_secret):
            raise ConfigError(
                'cluster.kind = "kubernetes" needs cluster.image and cluster.certificates_secret; '
                "see docs/cluster.md"
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


def is_loopback(host: str) -> bool:
    """Whether ``host`` is this machine, and cannot be reached from another."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
