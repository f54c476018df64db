"""Networks: spiking ones and their ReLU baselines, in training and in play.

:func:`build_network` makes one, :func:`make_evaluator` lets it answer, :func:`save_network` and
:func:`load_network` keep it. The neuron's equations stand in :mod:`chess_snn.nets.model.neuron`.
"""

from chess_snn.nets.analysis.activity import LayerActivity, record_activity
from chess_snn.nets.analysis.counts import (
    LayerSpikes,
    SpikeCounts,
    WorkCounts,
    count_spikes,
    count_work,
    footprint,
    measuring_spike_rate,
)
from chess_snn.nets.analysis.operations import Operations, count_operations
from chess_snn.nets.cpu.cpu_evaluator import CpuEvaluator, keep_freed_memory
from chess_snn.nets.evaluator import Evaluation, Evaluator, OwnedEvaluator
from chess_snn.nets.gpu.cuda_evaluator import CudaEvaluator
from chess_snn.nets.inference import InferenceNetwork, InferenceOutput, Precision, freeze
from chess_snn.nets.make_evaluator import make_evaluator
from chess_snn.nets.model.config import MOST_TICKS, SIZES, Activation, NetConfig, Size, net_config
from chess_snn.nets.model.network import LegalOutput, Network, NetworkOutput, build_network
from chess_snn.nets.model.planes import expand_planes, network_input
from chess_snn.nets.model.values import read_value, value_target
from chess_snn.nets.model.weights import (
    load_network,
    network_digest,
    save_network,
    stored_game,
    write_tensors,
)

__all__ = [
    "MOST_TICKS",
    "SIZES",
    "Activation",
    "CpuEvaluator",
    "CudaEvaluator",
    "Evaluation",
    "Evaluator",
    "InferenceNetwork",
    "InferenceOutput",
    "LayerActivity",
    "LayerSpikes",
    "LegalOutput",
    "NetConfig",
    "Network",
    "NetworkOutput",
    "Operations",
    "OwnedEvaluator",
    "Precision",
    "Size",
    "SpikeCounts",
    "WorkCounts",
    "build_network",
    "count_operations",
    "count_spikes",
    "count_work",
    "expand_planes",
    "footprint",
    "freeze",
    "keep_freed_memory",
    "load_network",
    "make_evaluator",
    "measuring_spike_rate",
    "net_config",
    "network_digest",
    "network_input",
    "read_value",
    "record_activity",
    "save_network",
    "stored_game",
    "value_target",
    "write_tensors",
]
