"""The settings of execution: which devices work, in how many processes."""

from dataclasses import dataclass
from typing import Literal, get_args

from chess_snn.config import check_choice, check_range
from chess_snn.devices import DeviceChoice
from chess_snn.errors import ConfigError
from chess_snn.training.settings import Backend

TrainingShares = Literal["equal", "measured"]
SelfPlayDevice = Literal["same", "cpu"]


@dataclass(frozen=True, slots=True)
class ExecutionSettings:
    """Where the work is done; it changes the pace, never the result, rounding aside.

    These and those of `[cluster]` and `[storage]` may change when a campaign is resumed.
    """

    device: DeviceChoice = "auto"
    """Where networks run: `cpu`, `cuda` for every GPU that is visible, or `auto`: GPUs where there
    are any."""
    gpus: tuple[int, ...] = ()
    """Which of the visible GPUs, counted from 0; `[]` takes all of them."""
    self_play_device: SelfPlayDevice = "same"
    """Where games are played: on the `same` devices as training, or on the `cpu` while training
    has the GPUs."""
    workers: int = 0
    """Worker processes that play; with several devices lowered to the nearest multiple of their
    number. 0 takes every device, as far as memory and an iteration's games suffice."""
    workers_per_device: int = 0
    """The same for each device; 0 leaves it to `execution.workers`."""
    worker_memory_mib: int = 0
    """Most memory of a worker, which is ended above it; 0 deals the machine's memory out evenly."""
    bind_cores: bool = True
    """Whether each worker keeps to processor cores of its own; training uses all of them in any
    case."""
    training_ranks: int = 0
    """Processes that train a network together on a machine, each with a share of every step's
    micro-batches. 0 takes one for each of the machine's GPUs, but no more than a step has
    micro-batches, and one on a CPU. 1 trains in one of the workers. With
    `cluster.training_machines` it is so many on each machine."""
    training_backend: Backend = "auto"
    """What these processes exchange by: `nccl`, `gloo`, or `auto`: NCCL where each has a GPU of its
    own, else gloo."""
    training_shares: TrainingShares = "equal"
    """How a step's micro-batches are dealt to these processes: `equal`, or `measured` for devices
    that are not equally fast, by the pace of each over the first steps."""
    overlap: bool = True
    """Whether a generation is evaluated while the next iteration plays."""
    retries: int = 2
    """How often a failed task is tried again. A killed worker's task is redone in any case."""

    def __post_init__(self) -> None:
        check_choice("execution.device", self.device, get_args(DeviceChoice))
        check_choice("execution.self_play_device", self.self_play_device, get_args(SelfPlayDevice))
        check_range("execution.workers", self.workers, ge=0, le=1024)
        check_range("execution.workers_per_device", self.workers_per_device, ge=0, le=1024)
        check_range("execution.worker_memory_mib", self.worker_memory_mib, ge=0)
        check_range("execution.training_ranks", self.training_ranks, ge=0, le=1024)
        check_choice("execution.training_backend", self.training_backend, get_args(Backend))
        check_choice("execution.training_shares", self.training_shares, get_args(TrainingShares))
        check_range("execution.retries", self.retries, ge=0, le=100)
        if self.device == "cpu" and self.training_backend == "nccl":
            raise ConfigError(
                'execution.training_backend = "nccl" needs GPUs, and execution.device = "cpu"; '
                'set the backend to "gloo" or "auto"'
            )
        if self.workers and self.workers_per_device:
            raise ConfigError(
                f"execution.workers = {self.workers} and execution.workers_per_device = "
                f"{self.workers_per_device} are both set; leave one of them out"
            )
        if any(number < 0 for number in self.gpus) or len(set(self.gpus)) < len(self.gpus):
            raise ConfigError(
                f"execution.gpus must be different numbers from 0 on, got {list(self.gpus)}"
            )
