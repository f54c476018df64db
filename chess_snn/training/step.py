"""One optimiser step: forward, losses, backward, clipping and update.

:class:`TrainingStep` launches it kernel by kernel, on any device. :class:`CapturedStep` replays it
as one CUDA graph: a step of a small network is some hundred kernels, and launching them takes
longer than running them.

Dimensions: F figures.
"""

from typing import Final

import torch
from torch import Tensor

from chess_snn.nets import Network
from chess_snn.training.batch import TrainingBatch
from chess_snn.training.gradients import LOSS_FIGURES, Gradients
from chess_snn.training.settings import TrainingSettings

FIGURES: Final = (*LOSS_FIGURES, "gradient_norm")
"""Names of the numbers a step leaves, in their order."""

_WARM_UP_STEPS = 3
"""Real steps before the capture: kernels are compiled, the optimiser has its moments."""


class TrainingStep:
    """A network and its optimiser, ready for batches on their device."""

    def __init__(
        self, network: Network, optimizer: torch.optim.AdamW, settings: TrainingSettings
    ) -> None:
        self.network, self.optimizer, self.settings = network, optimizer, settings
        self.gradients = Gradients(network, settings)

    def run(self, batch: TrainingBatch, rate: float) -> Tensor:
        """One step at learning rate ``rate``; its figures float32[F], on the device."""
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
        """One step on a batch on the device, at the learning rate that is set.

        Parameters and moments stay as they are where a figure is not finite.
        """
        losses_F = self.gradients.compute(batch)
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.clip_norm)
        figures_F = torch.cat([losses_F, norm.unsqueeze(0)])
        # The fused optimiser leaves out an update for which this is 1, on the device: asking it
        # from here would wait for the device.
        self.optimizer.found_inf = figures_F.isfinite().all().logical_not().float()  # type: ignore[attr-defined]
        self.optimizer.step()
        return figures_F


class CapturedStep:
    """The same step as one graph on a GPU, over batches of one shape."""

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
        """Make the graph; nothing runs yet."""
        assert self._batch is not None
        self._step.optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        # The thread that prepares batches may use the device meanwhile.
        with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
            self._figures = self._step.update(self._batch)
        self._graph = graph
