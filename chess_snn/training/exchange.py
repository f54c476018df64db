"""What ranks tell each other once a step: one vector, which is summed.

It holds the gradient, the running statistics of normalisation and the figures of a step, each
already weighted by its share of the batch, so that the sum is the mean; and behind them whether a
rank ran out of memory, and the seconds of each.

Dimensions: F figures, V all of the vector.
"""

from typing import Final

import torch
from torch import Tensor, nn

from chess_snn.training.gradients import LOSS_FIGURES, gradients_and_statistics, statistics_of
from chess_snn.training.ranks import Ranks

_IS_SHORT: Final = 0
"""Place of the flag of memory in the tail; the seconds of each rank follow."""


class Exchange:
    """Sums one network's gradients over ranks."""

    def __init__(self, network: nn.Module, ranks: Ranks) -> None:
        self._network, self._ranks = network, ranks
        self._tail = torch.zeros(1 + ranks.size)

    def add_up(self, figures_F: Tensor | None, seconds: float) -> Tensor | None:
        """Sum gradients, statistics and figures over ranks, in place.

        Args:
            figures_F: of this rank's share; None where it ran out of memory.
            seconds: that the share took.

        Returns:
            The figures of the whole batch. None where some rank ran out of memory: gradients and
            statistics are then of no use.
        """
        if self._ranks.size == 1:
            return figures_F
        tail = torch.zeros(1 + self._ranks.size)
        tail[_IS_SHORT] = figures_F is None
        tail[1 + self._ranks.rank] = seconds
        vector = self._pack(figures_F, tail)
        self._ranks.add_up(vector)
        self._tail = vector[-len(tail) :]
        return None if self._tail[_IS_SHORT].item() > 0 else self._unpack(vector)

    def rank_seconds(self) -> list[float]:
        """What each rank told of its share of the last step."""
        seconds: list[float] = self._tail[1:].tolist()
        return seconds

    def _pack(self, figures_F: Tensor | None, tail: Tensor) -> Tensor:
        """This rank's float32[V]; all but its tail is 0 where it has no figures."""
        if figures_F is None:
            held = [*self._network.parameters(), *statistics_of(self._network)]
            num_zeros = sum(tensor.numel() for tensor in held) + len(LOSS_FIGURES)
            return torch.cat([torch.zeros(num_zeros), tail]).to(held[0].device)
        tensors = gradients_and_statistics(self._network)
        flat = [tensor.reshape(-1) for tensor in tensors]
        return torch.cat([*flat, figures_F, tail.to(figures_F.device)])

    @torch.no_grad()
    def _unpack(self, sums: Tensor) -> Tensor:
        """Take gradients and statistics from the summed vector; the figures float32[F]."""
        tensors = gradients_and_statistics(self._network)
        sizes = [tensor.numel() for tensor in tensors]
        *parts, figures_F, _ = torch.split(sums, [*sizes, len(LOSS_FIGURES), len(self._tail)])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view(tensor.shape))
        return figures_F
