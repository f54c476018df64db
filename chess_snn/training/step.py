"""One optimiser step: forward, losses, backward, the sum over ranks, unscaling, clipping, update.

:class:`TrainingStep` launches it kernel by kernel, on any device. :class:`CapturedStep` replays it
as a CUDA graph: a step of a small network is some hundred kernels, and launching them takes longer
than running them.

Dimensions: F figures, V all numbers of the vector that ranks sum.
"""

from contextlib import suppress
from typing import Final

import torch
from torch import Tensor, nn

from chess_snn.nets import Network
from chess_snn.nets.static_batch import capture_lock
from chess_snn.training.batch import TrainingBatch
from chess_snn.training.gradients import (
    LOSS_FIGURES,
    Gradients,
    LossScale,
    gradients_and_statistics,
    statistics_of,
)
from chess_snn.training.ranks import ALONE, Ranks
from chess_snn.training.settings import TrainingSettings

FIGURES: Final = (*LOSS_FIGURES, "gradient_norm", "loss_scale")
"""Names of the numbers a step leaves, in their order. The scale is the one that the step was made
with, 1 where the loss is not scaled; none of the others is scaled by it."""

_WARM_UP_STEPS = 3
"""Real steps before the capture: kernels are compiled, the optimiser has its moments."""


class StepTooLargeError(Exception):
    """A rank ran out of memory: no rank took the step, and all are as they were before it."""


class TrainingStep:
    """A network and its optimiser, ready for batches on their device."""

    def __init__(
        self, network: Network, optimizer: torch.optim.AdamW, settings: TrainingSettings,
        ranks: Ranks = ALONE,
    ) -> None:
        self.network, self.optimizer = network, optimizer
        self.loss_scale = LossScale(settings.precision, self.device)
        self.gradients = Gradients(network, settings, self.loss_scale)
        self.exchange = Exchange(network, ranks)

    def run(self, batch: TrainingBatch, rate: float) -> Tensor:
        """One step at learning rate ``rate``; its figures float32[F], on the device.

        Args:
            batch: this rank's share of the step's batch; all of it where there is one rank.
            rate: learning rate.

        Raises:
            StepTooLargeError: the micro-batch does not fit the memory of some rank.
            RankLostError: a rank died or froze.
        """
        self.set_rate(rate)
        return self.update(batch.to(self.device))

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.network.parameters()).device

    def set_rate(self, rate: float) -> None:
        """Set the learning rate, in the place where a captured graph reads it."""
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def update(self, batch: TrainingBatch) -> Tensor:
        """One step on a share on the device, at the learning rate that is set.

        Parameters, moments and running statistics stay as they are where a figure is not finite.

        Raises:
            StepTooLargeError, RankLostError: as :meth:`run`.
        """
        before = self.buffers()
        figures_F: Tensor | None = None
        with suppress(torch.OutOfMemoryError):
            figures_F = self.share_of(batch)
        totals_F = self.exchange.add_up(figures_F)
        if totals_F is None:
            self._take_back(before)
            raise StepTooLargeError
        return self.apply(totals_F, before)

    def buffers(self) -> list[Tensor]:
        """A copy of the running statistics."""
        return [buffer.clone() for buffer in self.network.buffers()]

    def share_of(self, batch: TrainingBatch) -> Tensor:
        """This rank's gradients, and its part of the losses float32[F]."""
        return self.gradients.compute(batch, self.gradients.settings.batch_size)

    def apply(self, losses_F: Tensor, buffers: list[Tensor]) -> Tensor:
        """Unscale and clip the gradients that all ranks have, and update; figures float32[F + 2].

        Args:
            losses_F: float32[F], of the whole batch.
            buffers: the running statistics before the step, for one that is not finite.
        """
        gradients = [p.grad for p in self.network.parameters() if p.grad is not None]
        self.loss_scale.unscale(gradients)
        norm = torch.nn.utils.clip_grad_norm_(
            self.network.parameters(), self.gradients.settings.clip_norm
        )
        figures_F = torch.cat([
            losses_F, norm.unsqueeze(0), self.loss_scale.factor.unsqueeze(0)
        ])
        # The fused optimiser leaves out an update for which this is 1, on the device: asking it
        # from here would wait for the device.
        is_finite = figures_F.isfinite().all()
        found_inf = is_finite.logical_not().float()
        self.optimizer.found_inf = found_inf  # type: ignore[attr-defined]
        self.optimizer.step()
        self.loss_scale.update(found_inf)
        for ours, before in zip(self.network.buffers(), buffers, strict=True):
            # Neurons of another library keep their state in a buffer that has no shape at first.
            if ours.shape == before.shape:
                ours.copy_(torch.where(is_finite, ours, before))
        return figures_F

    def _take_back(self, buffers: list[Tensor]) -> None:
        """Undo what a step that failed has done to running statistics, and free its memory."""
        for ours, before in zip(self.network.buffers(), buffers, strict=True):
            ours.copy_(before)
        self.network.zero_grad(set_to_none=True)


class Exchange:
    """Sums over ranks what a step of one network leaves, as one vector.

    It holds the gradient, the running statistics of normalisation and the figures of a step, each
    already weighted by its share of the batch, so that the sum is the mean. The last number says
    how many ranks ran out of memory.

    ``DistributedDataParallel`` cannot do this: a rank that runs out of memory in its backward pass
    leaves the others waiting in theirs (docs/decisions/0020-ranks.md).
    """

    def __init__(self, network: nn.Module, ranks: Ranks) -> None:
        self._network, self._ranks = network, ranks

    def add_up(self, figures_F: Tensor | None) -> Tensor | None:
        """Sum gradients, statistics and figures over ranks, in place.

        Args:
            figures_F: of this rank's share; None where it ran out of memory.

        Returns:
            The figures of the whole batch. None where some rank ran out of memory: gradients and
            statistics are then of no use.
        """
        if self._ranks.size == 1:
            return figures_F
        vector = self._pack(figures_F)
        self._ranks.add_up(vector)
        return None if vector[-1].item() > 0 else self._unpack(vector)

    def _pack(self, figures_F: Tensor | None) -> Tensor:
        """This rank's float32[V]; all but the last number is 0 where it has no figures."""
        if figures_F is None:
            held = [*self._network.parameters(), *statistics_of(self._network)]
            vector = torch.zeros(
                sum(tensor.numel() for tensor in held) + len(LOSS_FIGURES) + 1,
                device=held[0].device,
            )
            vector[-1] = 1.0
            return vector
        tensors = gradients_and_statistics(self._network)
        flat = [tensor.reshape(-1) for tensor in tensors]
        return torch.cat([*flat, figures_F, figures_F.new_zeros(1)])

    @torch.no_grad()
    def _unpack(self, sums: Tensor) -> Tensor:
        """Take gradients and statistics from the summed vector; the figures float32[F]."""
        tensors = gradients_and_statistics(self._network)
        sizes = [tensor.numel() for tensor in tensors]
        *parts, figures_F, _ = torch.split(sums, [*sizes, len(LOSS_FIGURES), 1])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view(tensor.shape))
        return figures_F


class CapturedStep:
    """The same step as one graph on a GPU, over batches of one shape, for a process alone."""

    def __init__(self, step: TrainingStep) -> None:
        self._step = step
        self._stream = torch.cuda.Stream(step.device)  # type: ignore[no-untyped-call]
        self._batch: TrainingBatch | None = None
        self._figures = torch.empty(0)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._num_warm = 0

    def run(self, batch: TrainingBatch, rate: float) -> Tensor:
        """As :meth:`TrainingStep.run`; ``batch`` may still be in pinned memory of the host."""
        caller = torch.cuda.current_stream(self._step.device)
        self._stream.wait_stream(caller)
        with torch.cuda.stream(self._stream):
            figures = self._run(batch, rate)
        caller.wait_stream(self._stream)
        return figures

    def _run(self, batch: TrainingBatch, rate: float) -> Tensor:
        if self._batch is None:
            self._batch = batch.to(self._step.device)
        else:
            self._batch.copy_from(batch)
        self._step.set_rate(rate)
        if self._num_warm < _WARM_UP_STEPS:
            self._num_warm += 1
            return self._step.update(self._batch)
        if self._graph is None:
            self._capture()
        assert self._graph is not None
        self._graph.replay()
        return self._figures.clone()

    def _capture(self) -> None:
        """Make the graph; nothing runs yet.

        Raises:
            StepTooLargeError: as :meth:`TrainingStep.run`.
        """
        assert self._batch is not None
        self._step.optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        # The thread that prepares batches may use the device meanwhile.
        try:
            with capture_lock, torch.cuda.graph(
                graph, stream=self._stream, capture_error_mode="thread_local"
            ):
                before = self._step.buffers()
                self._figures = self._step.apply(self._step.share_of(self._batch), before)
        except torch.OutOfMemoryError:  # a graph has memory of its own, beside what was warm
            self._step.optimizer.zero_grad(set_to_none=True)
            raise StepTooLargeError from None
        self._graph = graph
