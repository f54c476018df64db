"""Which implementation of the neuron a GPU runs: chosen once, and said where it is the slow one."""

import importlib.util
import logging
from collections.abc import Callable
from functools import cache

from torch import Tensor

from chess_snn.nets.neuron import lif

_LOG = logging.getLogger(__name__)


@cache
def has_triton() -> bool:
    """Whether fused kernels can be had; where not, the log says so once."""
    if importlib.util.find_spec("triton") is not None:
        return True
    _LOG.warning(
        "triton is not installed: neurons on the GPU run unfused, several times slower; "
        "install the triton that belongs to this torch"
    )
    return False


@cache
def lif_on_gpu() -> Callable[[Tensor, float, float, float], Tensor]:
    """The differentiable neuron for CUDA tensors."""
    if not has_triton():
        return lif
    # Triton comes with torch for CUDA, and with no other torch.
    from chess_snn.nets.neuron_triton import lif_triton  # noqa: PLC0415

    return lif_triton
