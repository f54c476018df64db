"""Makes an evaluator of a network on one device."""

import torch

from chess_snn.devices import find_device
from chess_snn.nets.cpu.cpu_evaluator import CpuEvaluator
from chess_snn.nets.evaluator import OwnedEvaluator
from chess_snn.nets.gpu.cuda_evaluator import CudaEvaluator
from chess_snn.nets.inference import freeze
from chess_snn.nets.model.config import Precision
from chess_snn.nets.model.network import Network


def make_evaluator(
    network: Network, *, device: torch.device | str = "cpu", precision: Precision = "bf16",
    num_threads: int | None = 1, chunk_size: int | None = None,
    instead_of: OwnedEvaluator | None = None,
) -> OwnedEvaluator:
    """Freeze ``network`` and make it answer on ``device``.

    Args:
        network: left as it is; later training does not change the evaluator.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, or ``"auto"``: the first GPU, else the CPU, and
            the CPU for int8.
        precision: of convolutions and currents.
        num_threads: CPU threads that evaluate chunks side by side; None takes one a core. A
            GPU needs none.
        chunk_size: most positions a chunk on the CPU; None takes 256 in chess with one tick, as
            many more as a board is smaller, and fewer with ticks. A GPU takes a batch whole.
        instead_of: an evaluator that is not needed any more; it is closed. On a GPU its captured
            graphs go on to a network of the same shape.

    Raises:
        ConfigError: a setting out of range, or a device that is not here.
    """
    # A GPU's kernels for int8 are compiled first, which a game against a person need not wait for.
    found = find_device("cpu" if (device, precision) == ("auto", "int8") else device)
    frozen = freeze(network, precision, device=found)
    if isinstance(instead_of, CudaEvaluator) and found.type == "cuda":
        return instead_of.renewed(frozen)
    if instead_of is not None:
        instead_of.close()
    if found.type == "cuda":
        return CudaEvaluator(frozen)
    return CpuEvaluator(frozen, num_threads, chunk_size)
