"""One optimiser step: forward, losses, backward, the sum over ranks, clipping, update.

:class:`TrainingStep` launches it kernel by kernel, on any device. :class:`CapturedStep` replays it
as CUDA graphs: a step of a small network is some hundred kernels, and launching them takes longer
than running them.

Dimensions: F figures, V all numbers of the vector that ranks sum.
"""

import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from chess_snn.nets import Network
from chess_snn.nets.gpu.static_batch import capture_lock
from chess_snn.training.batch import TrainingBatch
from chess_snn.training.gradients import LOSS_FIGURES, Gradients, Member
from chess_snn.training.ranks import ALONE, Ranks
from chess_snn.training.settings import TrainingSettings

CLIP_NORM: Final = 1.0
"""Largest norm of the whole gradient."""
FIGURES: Final = (*LOSS_FIGURES, "gradient_norm")
"""Names of the numbers a step leaves, in their order."""

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
        self._member = Member.of(network)
        self.gradients = Gradients(network, settings)
        self.exchange = Exchange(self._member, ranks)

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
        """The network's device."""
        return self._member.parameters[0].device

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
        vector_V: Tensor | None = None
        with suppress(torch.OutOfMemoryError):
            vector_V = self.share_of(batch)
        return self.apply(self.add_up(vector_V, before), before)

    def buffers(self) -> list[Tensor]:
        """A copy of the running statistics."""
        return [buffer.clone() for buffer in self._member.buffers]

    def share_of(self, batch: TrainingBatch) -> Tensor:
        """Compute this rank's gradients, and pack all that ranks sum, float32[V].

        Where there is one rank, it is the losses alone, float32[F].
        """
        figures_F = self.gradients.compute(batch, self.gradients.settings.batch_size)
        return self.exchange.pack(figures_F)

    def add_up(self, vector_V: Tensor | None, buffers: list[Tensor]) -> Tensor:
        """Sum over ranks what :meth:`share_of` packed, in place; None where memory ran out.

        Args:
            vector_V: see above.
            buffers: the running statistics before the step.

        Raises:
            StepTooLargeError, RankLostError: as :meth:`run`.
        """
        sums_V = self.exchange.add_up(vector_V)
        if sums_V is None:
            self._take_back(buffers)
            raise StepTooLargeError
        return sums_V

    def apply(self, sums_V: Tensor, buffers: list[Tensor]) -> Tensor:
        """Unpack and clip the gradients of all ranks, and update; figures float32[F + 1].

        Args:
            sums_V: of all ranks.
            buffers: the running statistics before the step, for one that is not finite.
        """
        losses_F = self.exchange.unpack(sums_V)
        norm = nn.utils.clip_grad_norm_(self._member.parameters, CLIP_NORM)
        figures_F = torch.cat([losses_F, norm.unsqueeze(0)])
        # The fused optimiser leaves out an update for which this is 1, on the device: asking it
        # from here would wait for the device.
        is_finite = figures_F.isfinite().all()
        self.optimizer.found_inf = is_finite.logical_not().float()  # type: ignore[attr-defined]
        self.optimizer.step()
        if self.device.type == "cpu" and is_finite:
            return figures_F
        for ours, before in zip(self._member.buffers, buffers, strict=True):
            ours.copy_(torch.where(is_finite, ours, before))
        return figures_F

    def _take_back(self, buffers: list[Tensor]) -> None:
        """Undo what a step that failed has done to running statistics, and free its memory."""
        for ours, before in zip(self._member.buffers, buffers, strict=True):
            ours.copy_(before)
        self._member.forget_gradients()


class Exchange:
    """Sums over ranks what a step of one network leaves, as one vector.

    It holds the gradient, the running statistics of normalisation and the figures of a step, each
    already weighted by its share of the batch, so that the sum is the mean. The last number says
    how many ranks ran out of memory.

    ``DistributedDataParallel`` cannot do this: a rank that runs out of memory in its backward pass
    leaves the others waiting in theirs (docs/decisions/0020-ranks.md).
    """

    def __init__(self, member: Member, ranks: Ranks) -> None:
        self._member, self._ranks = member, ranks

    def pack(self, figures_F: Tensor) -> Tensor:
        """This rank's gradients, statistics and figures as one float32[V]; of one rank, figures."""
        if self._ranks.size == 1:
            return figures_F
        flat = [tensor.reshape(-1) for tensor in self._member.gradients_and_statistics()]
        return torch.cat([*flat, figures_F, figures_F.new_zeros(1)])

    def add_up(self, vector_V: Tensor | None) -> Tensor | None:
        """Sum ``vector_V`` over ranks, in place. None stands for a rank that ran out of memory.

        Returns:
            The sum. None where some rank ran out of memory.
        """
        if self._ranks.size == 1:
            return vector_V
        if vector_V is None:
            vector_V = self._failure()
        self._ranks.add_up(vector_V)
        return None if vector_V[-1].item() > 0 else vector_V

    def _failure(self) -> Tensor:
        """The vector of a rank without gradients: 0 but for the last number."""
        held = [*self._member.parameters, *self._member.statistics]
        vector_V = torch.zeros(
            sum(tensor.numel() for tensor in held) + len(LOSS_FIGURES) + 1, device=held[0].device
        )
        vector_V[-1] = 1.0
        return vector_V

    @torch.no_grad()
    def unpack(self, sums_V: Tensor) -> Tensor:
        """Take gradients and statistics from the sums; the whole batch's figures float32[F]."""
        if self._ranks.size == 1:
            return sums_V
        tensors = self._member.gradients_and_statistics()
        sizes = [tensor.numel() for tensor in tensors]
        *parts, figures_F, _ = torch.split(sums_V, [*sizes, len(LOSS_FIGURES), 1])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view(tensor.shape))
        return figures_F


@dataclass(frozen=True, slots=True)
class _Graphs:
    """A step in two parts, and the memory through which they pass what they find."""

    share: torch.cuda.CUDAGraph
    vector_V: Tensor
    apply: torch.cuda.CUDAGraph
    figures_F: Tensor


class CapturedStep:
    """The same step as two graphs on a GPU, over batches of one shape.

    The first ends with what ranks sum, and the second begins with the sum; between them the ranks
    exchange it as in :class:`TrainingStep`.
    """

    def __init__(self, step: TrainingStep) -> None:
        self._step = step
        self._stream = torch.cuda.Stream(step.device)  # type: ignore[no-untyped-call]
        self._batch: TrainingBatch | None = None
        self._buffers: list[Tensor] = []
        self._graphs: _Graphs | None = None
        self._num_warm = 0

    def run(self, batch: TrainingBatch, rate: float) -> Tensor:
        """Run as :meth:`TrainingStep.run`; ``batch`` may still be in pinned memory of the host."""
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
            with warnings.catch_warnings():
                # An optimiser for a capture warns of its first steps without one.
                warnings.filterwarnings("ignore", message=".*capturable=True")
                return self._step.update(self._batch)
        if self._graphs is None:
            self._buffers = self._step.buffers()
            # A graph has memory of its own, beside what was warm. A rank that lacks it has to say
            # so in the exchange, where the others wait.
            with suppress(torch.OutOfMemoryError):
                self._graphs = self._capture(self._batch)
        graphs = self._graphs
        if graphs is not None:
            graphs.share.replay()
        self._step.add_up(None if graphs is None else graphs.vector_V, self._buffers)
        assert graphs is not None, "a rank without graphs is one that ran out of memory"
        graphs.apply.replay()
        return graphs.figures_F.clone()

    def _capture(self, batch: TrainingBatch) -> _Graphs:
        """Make both graphs; nothing runs yet, so that no rank has taken the step if one fails.

        Raises:
            OutOfMemoryError: there is no room for one.
        """
        step = self._step
        step.optimizer.zero_grad(set_to_none=True)
        share, apply = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        # The thread that prepares batches may use the device meanwhile, and so may NCCL's.
        mode = "thread_local"
        with capture_lock:
            with torch.cuda.graph(share, stream=self._stream, capture_error_mode=mode):
                for kept, buffer in zip(self._buffers, step.network.buffers(), strict=True):
                    kept.copy_(buffer)
                vector_V = step.share_of(batch)
            # One always runs after the other, so they may share their memory.
            with torch.cuda.graph(
                apply, pool=share.pool(), stream=self._stream, capture_error_mode=mode
            ):
                figures_F = step.apply(vector_V, self._buffers)
        return _Graphs(share, vector_V, apply, figures_F)
