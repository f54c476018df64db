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
from torch import Tensor

from chess_snn.errors import ConfigError
from chess_snn.nets.conv_neuron import LayerKind
from chess_snn.nets.inference import InferenceNetwork, Precision, freeze, possible_layers
from chess_snn.nets.network import Network
from chess_snn.nets.planes import expand_planes
from chess_snn.nets.static_batch import COLUMN_SIZES, StaticBatch
from chess_snn.types import UInt64Array

_LOG = logging.getLogger(__name__)
_POSITIONS: Final = 1024
"""Of the batch, of which all sizes of networks fill a GPU."""
_COLUMNS: Final = COLUMN_SIZES[0]
_RUNS: Final = 20
_COMPARED: Final = 64
"""Positions in which the kinds are compared."""
_MOST_DIFFERING: Final = 0.02
"""Share of a layer's spikes in which two kinds may differ, given the same input: by rounding, so in
int8 in none. A layer that fires nothing differs in all that the other one fires, a tenth or
more."""

_lock = threading.Lock()
_fastest: dict[Any, LayerKind] = {}


def freeze_fastest(
    network: Network, precision: Precision, device: torch.device
) -> InferenceNetwork:
    """:func:`freeze`, with the kind of layers that is fastest on ``device``.

    Raises:
        ConfigError: as :func:`freeze`.
    """
    kinds = possible_layers(network.spec, network.config, precision, device)
    if len(kinds) == 1:
        return freeze(network, precision, device=device, layers=kinds[0])
    with _lock:
        key = network.spec, network.config, precision, device
        if key not in _fastest:
            try:
                _fastest[key] = measure_fastest(network, precision, device, kinds)
            except torch.OutOfMemoryError as error:  # measured when there is room again
                _LOG.warning("no room on %s to measure layers, which are %s: %s",
                             device, kinds[0], error)
        return freeze(network, precision, device=device, layers=_fastest.get(key, kinds[0]))


def measure_fastest(
    network: Network, precision: Precision, device: torch.device, kinds: list[LayerKind],
    num_positions: int = _POSITIONS, runs: int = _RUNS,
) -> LayerKind:
    """The fastest of ``kinds``; one line of the log says what each takes.

    A kind that fails or fires otherwise than the first that works is left out, with a warning.

    Raises:
        OutOfMemoryError: there is no room for the batch.
        ConfigError: all kinds fail.
    """
    from triton.errors import TritonError  # noqa: PLC0415 - comes with torch for CUDA alone

    most_differing = 0 if precision == "int8" else _MOST_DIFFERING
    stream = None
    if device.type == "cuda":
        stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        # Weights are copied on the caller's stream.
        stream.wait_stream(torch.cuda.current_stream(device))
    timed: dict[LayerKind, float] = {}
    first: InferenceNetwork | None = None
    for kind in kinds:
        try:
            frozen = freeze(network, precision, device=device, layers=kind)
            seconds = _time(frozen, num_positions, runs, stream)
            differing = differing_share(first or frozen, frozen, min(num_positions, _COMPARED))
        except torch.OutOfMemoryError:
            raise
        except (TritonError, RuntimeError) as error:
            _LOG.warning("%s layers fail on %s and are not used: %s", kind, device, error)
            continue
        if differing <= most_differing:
            timed[kind] = seconds
            first = first or frozen
        else:
            _LOG.warning(
                "%s layers differ on %s in %.1f %% of the spikes and are not used",
                kind, device, 100 * differing,
            )
    if not timed:
        raise ConfigError(
            f"no layers in {precision} work on {device}; the warnings before this say why"
        )
    best = min(timed, key=lambda kind: timed[kind])
    _LOG.info(
        "%s layers for %s %s with T=%d on %s: %s a position", best, network.config.activation,
        network.config.size, network.config.ticks, device,
        ", ".join(f"{kind} {1e6 * each / num_positions:.3f} us" for kind, each in timed.items()),
    )
    return best


@torch.inference_mode()
def differing_share(one: InferenceNetwork, other: InferenceNetwork, num_positions: int) -> float:
    """The largest share of a layer's spikes in which two networks differ, given the same input.

    Layer by layer, because a spike that rounding moves changes many in the layers behind it. What
    is not a number differs from itself.
    """
    words = _random_words(one, num_positions)
    x = one.input_of(expand_planes(
        torch.from_numpy(words.view(np.int64)).to(one.device), one.spec.board_shape,
        one.input_dtype,
    ))
    shares: list[Tensor] = []

    def compare(fired: Tensor, theirs: Tensor) -> None:
        shares.append((fired != theirs).float().mean())

    u, fired = one.stem.fire_static(x, one.config.ticks)
    current = u[0].clone()
    compare(fired, other.stem.fire_static(x, one.config.ticks)[1])
    for ours, theirs in zip(one.blocks, other.blocks, strict=True):
        inner = ours[0].fire(fired)
        compare(inner, theirs[0].fire(fired))
        compare_u = u.clone()  # the sum may take its memory
        u, fired = ours[1].add_and_fire(u, inner)
        compare(fired, theirs[1].add_and_fire(compare_u, inner)[1])
    compare(one.value_layer.fire(fired), other.value_layer.fire(fired))
    rate = one.policy_layer.mean_rate(fired)
    compare(rate, other.policy_layer.mean_rate(fired))
    if other.trunk is not None:
        theirs, their_rate = other.trunk(current)
        compare(fired, theirs)
        compare(rate, their_rate)
    return float(torch.stack(shares).max())


def _random_words(frozen: InferenceNetwork, num_positions: int) -> UInt64Array:
    """Planes uint64[B, P] in which as many bits are set as in chess: a quarter of 64 a plane."""
    shape = (2, num_positions, frozen.num_planes)
    words: UInt64Array = np.random.default_rng(0).integers(0, 2**64, shape, np.uint64)
    both: UInt64Array = words[0] & words[1]
    return both


def _time(
    frozen: InferenceNetwork, num_positions: int, runs: int, stream: torch.cuda.Stream | None
) -> float:
    """Seconds of one batch, on ``stream`` as a graph."""
    batch = StaticBatch(frozen, num_positions, _COLUMNS)
    batch.fill(
        _random_words(frozen, num_positions), np.zeros((num_positions, _COLUMNS), np.int16),
        np.ones(num_positions, np.int32),
    )
    if stream is None:
        return _wait_for(batch, runs)
    batch.capture(stream, torch.cuda.graph_pool_handle())
    with torch.cuda.stream(stream):
        _wait_for(batch, 1, stream)  # the first launch of a graph uploads it
        return _wait_for(batch, runs, stream)


def _wait_for(batch: StaticBatch, runs: int, stream: torch.cuda.Stream | None = None) -> float:
    """Run it and return the seconds that each run took."""
    begun = time.perf_counter()
    for _ in range(runs):
        batch.start()
    if stream is not None:
        stream.synchronize()
    return (time.perf_counter() - begun) / runs
