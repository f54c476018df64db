"""From a network to an evaluator on one device."""

import torch

from chess_snn.errors import ConfigError
from chess_snn.games.base import ValueKind
from chess_snn.nets.cpu_evaluator import CpuEvaluator
from chess_snn.nets.cuda_evaluator import CudaEvaluator
from chess_snn.nets.evaluator import OwnedEvaluator
from chess_snn.nets.inference import Precision, freeze
from chess_snn.nets.network import Network


def make_evaluator(
    network: Network, *, device: torch.device | str = "cpu", precision: Precision = "bf16",
    num_threads: int | None = 1, chunk_size: int | None = None,
) -> OwnedEvaluator:
    """Freeze ``network`` and make it answer on ``device``.

    Args:
        network: left as it is; later training does not change the evaluator.
        device: ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
        precision: of convolutions and currents.
        num_threads: CPU threads that evaluate chunks side by side; None takes what was measured to
            be fastest, see :mod:`chess_snn.nets.calibration`. A GPU needs none.
        chunk_size: most positions a chunk on the CPU; None likewise. A GPU takes a batch whole.

    Raises:
        ConfigError: a setting out of range, a device that is not here, or a game without WDL.
    """
    if network.spec.value_kind is not ValueKind.WDL:
        raise ConfigError(
            f"an evaluator answers win, draw and loss, and {network.spec.name} has a "
            f"{network.spec.value_kind.value} value; call the network itself"
        )
    found = _find_device(device)
    frozen = freeze(network, precision, device=found)
    if found.type == "cuda":
        return CudaEvaluator(frozen)
    return CpuEvaluator(frozen, num_threads, chunk_size)


def _find_device(device: torch.device | str) -> torch.device:
    try:
        found = torch.device(device)
    except RuntimeError as error:
        raise ConfigError(f"unknown device {device!r}; use cpu, cuda or cuda:N") from error
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"device {device} is not here, torch sees {torch.cuda.device_count()} CUDA devices; "
            "use cpu, or look at CUDA_VISIBLE_DEVICES"
        )
    if found.type not in ("cpu", "cuda"):
        raise ConfigError(f"device {device} is not supported; use cpu, cuda or cuda:N")
    return found
