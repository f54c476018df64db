"""Which kind of layers a network has on a GPU, by measurement on that GPU.

A kernel that does the work of two may lose against cuDNN, depending on the network's shape and the
GPU. So each kind is timed in the graph of one batch, once for each shape in a process.
"""

import logging
import threading
import time
from typing import Any, Final

import numpy as np
import torch

from chess_snn.nets.conv_neuron import LayerKind
from chess_snn.nets.inference import InferenceNetwork, Precision, freeze, possible_layers
from chess_snn.nets.network import Network
from chess_snn.nets.static_batch import COLUMN_SIZES, StaticBatch

_LOG = logging.getLogger(__name__)
_POSITIONS: Final = 1024
"""Of the batch, of which all sizes of networks fill a GPU."""
_COLUMNS: Final = COLUMN_SIZES[0]
_RUNS: Final = 20
_WARM_UP_RUNS: Final = 3
_MOST_DISTANCE: Final = 0.1
"""Between the values of two kinds. Rounding makes it 0.02; a wrong kernel far more."""

_lock = threading.Lock()
_fastest: dict[Any, LayerKind] = {}


def freeze_fastest(
    network: Network, precision: Precision, device: torch.device
) -> InferenceNetwork:
    """:func:`freeze`, with the kind of layers that is fastest on ``device``.

    Raises:
        ConfigError: as :func:`freeze`.
    """
    kinds = possible_layers(network.config, precision, device)
    if len(kinds) == 1:
        return freeze(network, precision, device=device, layers=kinds[0])
    with _lock:
        key = network.spec, network.config, precision, device
        if key not in _fastest:
            _fastest[key] = measure_fastest(network, precision, device, kinds)
        return freeze(network, precision, device=device, layers=_fastest[key])


def measure_fastest(
    network: Network, precision: Precision, device: torch.device, kinds: list[LayerKind],
    num_positions: int = _POSITIONS, runs: int = _RUNS,
) -> LayerKind:
    """The fastest of ``kinds``; one line of the log says what each takes.

    A kind that fails or gives other values than the first one is left out, with a warning.
    """
    from triton.errors import TritonError  # noqa: PLC0415 - comes with torch for CUDA alone

    frozen = freeze(network, precision, device=device, layers=kinds[0])
    seconds, first_B = _time(frozen, num_positions, runs)
    timed = {kinds[0]: seconds}
    for kind in kinds[1:]:
        try:
            frozen = freeze(network, precision, device=device, layers=kind)
            seconds, value_B = _time(frozen, num_positions, runs)
        except (TritonError, RuntimeError) as error:
            _LOG.warning("%s layers fail on %s and are not used: %s", kind, device, error)
            continue
        distance = float(np.abs(value_B - first_B).mean())
        if distance <= _MOST_DISTANCE:
            timed[kind] = seconds
        else:
            _LOG.warning(
                "%s layers give other values than %s ones on %s (%.3f apart) and are not used",
                kind, kinds[0], device, distance,
            )
    best = min(timed, key=lambda kind: timed[kind])
    _LOG.info(
        "%s layers for %s %s with T=%d on %s: %s a position", best, network.config.activation,
        network.config.size, network.config.ticks, device,
        ", ".join(f"{kind} {1e6 * each / num_positions:.3f} us" for kind, each in timed.items()),
    )
    return best


def _time(
    frozen: InferenceNetwork, num_positions: int, runs: int
) -> tuple[float, np.ndarray[Any, Any]]:
    """Seconds of one batch, and its values float32[B]."""
    rng = np.random.default_rng(0)
    # As many bits are set as in chess: a quarter of 64 a plane.
    words = rng.integers(0, 2**64, (2, num_positions, frozen.spec.num_planes), np.uint64)
    batch = StaticBatch(frozen, num_positions, _COLUMNS)
    batch.fill(
        words[0] & words[1], np.zeros((num_positions, _COLUMNS), np.int16),
        np.ones(num_positions, np.int32),
    )
    if frozen.device.type == "cpu":
        return _wait_for(batch, runs), batch.read(num_positions, _COLUMNS).value_stm.copy()
    stream = torch.cuda.Stream(frozen.device)  # type: ignore[no-untyped-call]
    # Weights were copied on the caller's stream.
    stream.wait_stream(torch.cuda.current_stream(frozen.device))
    batch.capture(stream, torch.cuda.graph_pool_handle())
    with torch.cuda.stream(stream):
        _wait_for(batch, _WARM_UP_RUNS, stream)
        seconds = _wait_for(batch, runs, stream)
    return seconds, batch.read(num_positions, _COLUMNS).value_stm.copy()


def _wait_for(batch: StaticBatch, runs: int, stream: torch.cuda.Stream | None = None) -> float:
    """Run it and return the seconds that each run took."""
    begun = time.perf_counter()
    for _ in range(runs):
        batch.start()
    if stream is not None:
        stream.synchronize()
    return (time.perf_counter() - begun) / runs
