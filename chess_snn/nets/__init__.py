"""Networks: spiking ones and their ReLU baselines, in training and in play.

:func:`build_network` makes one, :func:`make_evaluator` lets it answer, :func:`save_network` and
:func:`load_network` keep it. The neuron's equations stand in :mod:`chess_snn.nets.model.neuron`.
"""

from typing import TYPE_CHECKING

from chess_snn.later import exports

if TYPE_CHECKING:
    from chess_snn.nets.analysis.activity import LayerActivity, record_activity
    from chess_snn.nets.analysis.counts import (
        SpikeCounts,
        WorkCounts,
        changes_of_pairs,
        count_spikes,
        count_work,
        footprint,
        measuring_spike_rate,
    )
    from chess_snn.nets.analysis.folded_layers import fold_layers
    from chess_snn.nets.analysis.operations import Operations, count_operations, num_parameters
    from chess_snn.nets.cpu.cpu_evaluator import CpuEvaluator, keep_freed_memory
    from chess_snn.nets.eight_bits import in_eight_bits
    from chess_snn.nets.evaluator import Evaluation, Evaluator, OwnedEvaluator
    from chess_snn.nets.gpu.cuda_evaluator import CudaEvaluator
    from chess_snn.nets.gpu.gpu_faults import LEAVE_OUT, explain, gpu_fault
    from chess_snn.nets.inference import InferenceOutput, freeze, usual_layers
    from chess_snn.nets.making import make_evaluator
    from chess_snn.nets.model.config import (
        MOST_TICKS,
        SIZES,
        Activation,
        NetConfig,
        Precision,
        net_config,
    )
    from chess_snn.nets.model.network import LegalOutput, Network, NetworkOutput, build_network
    from chess_snn.nets.model.neuron import has_triton
    from chess_snn.nets.model.planes import expand_planes, network_input
    from chess_snn.nets.model.values import read_value, value_target
    from chess_snn.nets.model.weight_files import stored_game
    from chess_snn.nets.model.weights import (
        load_network,
        network_digest,
        save_network,
        write_tensors,
    )
else:
    __getattr__ = exports(__name__)
