"""Early exit: a leaky network that stops after the tick at which its policy has settled.

The answer after tick t is that of a network of t ticks with the same weights. A position has
settled when its likeliest action leads the next one by some probability (a confidence criterion as
in SEENN, Li et al., arXiv 2304.01230), and then leaves the batch. One with no choice settles at
once; one without legal actions, where nature moves, never does.

Ticks go one after the other here, each through all layers, and membranes are kept in between;
:class:`chess_snn.nets.inference.InferenceNetwork` folds the ticks into the batch.

Dimensions: B positions, P planes, C channels, H and W board, L columns for legal actions, V outputs
of the value head, N positions still in the batch, X anything.
"""

import threading
from typing import Final

import torch
from torch import Tensor

from chess_snn.config import check_range
from chess_snn.errors import ConfigError
from chess_snn.nets.inference import InferenceNetwork
from chess_snn.nets.neuron import lif_step
from chess_snn.nets.readouts import read_float32, squares_first

LEAST_ROWS: Final = 16
"""Of a tick: with fewer, sums are made in another order, and a position's answer would depend on
how many others are left. The others are filled up with repetitions."""


class EarlyExitNetwork:
    """A frozen network on the CPU that answers as :meth:`InferenceNetwork.answer` does, or sooner.

    Calls from several threads are safe.
    """

    def __init__(self, network: InferenceNetwork, margin: float) -> None:
        """Settle at a lead of ``margin``: a difference of probabilities in (0, 1].

        Raises:
            ConfigError: the margin is out of range, or the network has one tick or is on a GPU.
        """
        check_range("exit margin", margin, gt=0, le=1)
        if network.config.ticks == 1 or network.device.type != "cpu":
            raise ConfigError(
                "early exit is for networks of several ticks on the CPU, and this one has "
                f"{network.config.ticks} (net.activation = \"{network.config.activation}\") on "
                f"{network.device}; evaluate it without early exit"
            )
        self.network, self.margin = network, margin
        self.num_positions = 0
        """Answered so far."""
        self.num_ticks = 0
        """Ticks that they took, all together."""
        self._counters_lock = threading.Lock()

    @property
    def mean_ticks(self) -> float:
        """Of a position, so far; 0 before the first."""
        return self.num_ticks / self.num_positions if self.num_positions else 0.0

    def answer(
        self, planes_BPHW: Tensor, legal_actions_BL: Tensor, num_legal_B: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Logits float32[B, L] of the listed actions, -inf behind each list, and value logits.

        Each row is that of the tick after which it had settled. Rows of planes beyond the lists
        (padding) are left out.
        """
        network, num_rows = self.network, len(num_legal_B)
        logits_BL = torch.empty(legal_actions_BL.shape, dtype=torch.float32)
        value_logits_BV = torch.empty(num_rows, network.value_readout.out_features)
        rows_N, ticks = torch.arange(num_rows), 0
        filled = _filled(rows_N)
        planes = network.input_of(planes_BPHW[filled])
        run = _Run(network, network.stem(planes))
        for tick in range(1, network.config.ticks + 1):
            ticks += len(rows_N)
            policy_rate, value_rate = run.tick()
            logits_NL = network.readouts.of_legal(
                policy_rate, legal_actions_BL[filled], num_legal_B[filled]
            )[: len(rows_N)]
            value_logits_NV = read_float32(network.value_readout, value_rate)[: len(rows_N)]
            is_done_N = self._have_settled(logits_NL)
            if tick == network.config.ticks:
                is_done_N = torch.ones_like(is_done_N)
            done = rows_N[is_done_N]
            logits_BL[done] = logits_NL[is_done_N]
            value_logits_BV[done] = value_logits_NV[is_done_N]
            if is_done_N.all():
                break
            if is_done_N.any():
                run.keep(_filled(torch.nonzero(~is_done_N).flatten()))
                rows_N = rows_N[~is_done_N]
                filled = _filled(rows_N)
        with self._counters_lock:
            self.num_positions += num_rows
            self.num_ticks += ticks
        return logits_BL, value_logits_BV

    def _have_settled(self, logits_NL: Tensor) -> Tensor:
        """bool[N]; False without legal actions, whose probabilities are not numbers."""
        if logits_NL.shape[1] < 2:
            return logits_NL.isfinite().any(1)
        first_N, second_N = logits_NL.softmax(1).topk(2).values.unbind(1)
        return first_N - second_N >= self.margin


class _Run:
    """The membranes of one call, and the spikes of the readouts' neurons so far."""

    def __init__(self, network: InferenceNetwork, stem_NCHW: Tensor) -> None:
        self._network, self._stem_NCHW = network, stem_NCHW
        self._membranes: list[Tensor | None] = [None] * (2 * network.config.blocks + 4)
        self._policy_sum: Tensor | None = None
        self._value_sum: Tensor | None = None
        self._ticks = 0

    def tick(self) -> tuple[Tensor, Tensor]:
        """One tick; rates float32[N, X] that policy and value readout see after it."""
        network, layers = self._network, iter(range(len(self._membranes)))
        self._ticks += 1
        u_NCHW = self._stem_NCHW
        fired = self._fire(next(layers), u_NCHW)
        for layer1, layer2 in network.blocks:
            fired = self._fire(next(layers), layer1(fired))
            u_NCHW = u_NCHW + layer2(fired)
            fired = self._fire(next(layers), u_NCHW)
        policy = self._fire(next(layers), network.policy_layer(fired)).float()
        seen = squares_first(self._fire(next(layers), network.value_layer(fired)))
        value = self._fire(next(layers), network.value_currents(seen)).float()
        self._policy_sum = policy if self._policy_sum is None else self._policy_sum + policy
        self._value_sum = value if self._value_sum is None else self._value_sum + value
        return self._policy_sum / self._ticks, self._value_sum / self._ticks

    def keep(self, rows: Tensor) -> None:
        """Go on with ``rows`` int64[N] of the present ones; a row may be there several times."""
        self._stem_NCHW = _rows_of(self._stem_NCHW, rows)
        self._membranes = [
            None if membrane is None else _rows_of(membrane, rows) for membrane in self._membranes
        ]
        assert self._policy_sum is not None
        assert self._value_sum is not None
        self._policy_sum = _rows_of(self._policy_sum, rows)
        self._value_sum = _rows_of(self._value_sum, rows)

    def _fire(self, layer: int, current_NX: Tensor) -> Tensor:
        config = self._network.config
        _, fired_NX, self._membranes[layer] = lif_step(
            current_NX, self._membranes[layer], config.decay, config.threshold
        )
        return fired_NX.to(self._network.input_dtype)


def _filled(rows_N: Tensor) -> Tensor:
    """The same rows and repetitions of the first, up to a multiple of ``LEAST_ROWS``."""
    return torch.cat([rows_N, rows_N[:1].expand(-len(rows_N) % LEAST_ROWS)])


def _rows_of(tensor: Tensor, rows: Tensor) -> Tensor:
    chosen = tensor[rows]
    return chosen.contiguous(memory_format=torch.channels_last) if chosen.ndim == 4 else chosen
