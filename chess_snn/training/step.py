"""One optimiser step: forward, losses, backward, the sum over ranks, unscaling, clipping, update.

:class:`TrainingStep` launches it kernel by kernel, on any device. :class:`CapturedStep` replays it
as a CUDA graph: a step of a small network is some hundred kernels, and launching them takes longer
than running them.

Dimensions: F figures.
"""

import time
from typing import Final

import torch
from torch import Tensor

from chess_snn.nets import Network
from chess_snn.training.batch import TrainingBatch
from chess_snn.training.exchange import Exchange
from chess_snn.training.gradients import LOSS_FIGURES, Gradients, make_loss_scale
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
        self.network, self.optimizer, self.ranks = network, optimizer, ranks
        self.loss_scale = make_loss_scale(settings.precision, self.device)
        self.gradients = Gradients(network, settings, self.loss_scale)
        self.exchange = Exchange(network, ranks)
        self.is_timed = False
        """Whether what ranks tell of their seconds is to be true on a GPU, which has to wait."""

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
    def settings(self) -> TrainingSettings:
        """What a step is; may be replaced between steps, but for the precision."""
        return self.gradients.settings

    @settings.setter
    def settings(self, settings: TrainingSettings) -> None:
        self.gradients.settings = settings

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
        began = time.perf_counter()
        figures_F = self._attempt(batch)
        if self.is_timed and self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        totals_F = self.exchange.add_up(figures_F, time.perf_counter() - began)
        if totals_F is None:
            self._take_back(before)
            raise StepTooLargeError
        return self.apply(totals_F, before)

    def buffers(self) -> list[Tensor]:
        """A copy of the running statistics."""
        return [buffer.clone() for buffer in self.network.buffers()]

    def share_of(self, batch: TrainingBatch) -> Tensor:
        """This rank's gradients, and its part of the losses float32[F]."""
        return self.gradients.compute(batch, self.settings.batch_size)

    def apply(self, losses_F: Tensor, buffers: list[Tensor]) -> Tensor:
        """Unscale and clip the gradients that all ranks have, and update; figures float32[F + 2].

        Args:
            losses_F: float32[F], of the whole batch.
            buffers: the running statistics before the step, for one that is not finite.
        """
        gradients = [p.grad for p in self.network.parameters() if p.grad is not None]
        self.loss_scale.unscale(gradients)
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.clip_norm)
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

    def _attempt(self, batch: TrainingBatch) -> Tensor | None:
        """As :meth:`share_of`; None where memory runs out."""
        try:
            return self.share_of(batch)
        except torch.OutOfMemoryError:
            return None


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
            with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
                before = self._step.buffers()
                self._figures = self._step.apply(self._step.share_of(self._batch), before)
        except torch.OutOfMemoryError:  # a graph has memory of its own, beside what was warm
            self._step.optimizer.zero_grad(set_to_none=True)
            raise StepTooLargeError from None
        self._graph = graph
