"""The gradient of a batch, as the mean over micro-batches that are normalised each by itself.

Micro-batches do not wait for each other, so that CPU threads (and processes, and machines) may take
them as they come; layer by layer, torch's own threads would. What comes out does not depend on how
many threads took part: each micro-batch has a copy of the network with gradients and statistics of
its own, and they are added up in the order of the batch (batch normalisation over parts of a batch:
Hoffer et al. 2017, arXiv 1705.08741, §4). With several processes only the order of sums differs.

Dimensions: F figures.
"""

import copy
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Final, Self

import torch
from torch import Tensor, nn

from chess_snn.devices import processor_has_bfloat16
from chess_snn.nets import Network, changes_of_pairs, measuring_spike_rate
from chess_snn.nets.cpu.torch_threads import single_torch_threads
from chess_snn.training.batch import TrainingBatch
from chess_snn.training.losses import Losses, compute_losses
from chess_snn.training.settings import TrainingSettings

LOSS_FIGURES: Final = tuple(field.name for field in fields(Losses))
"""Names of the numbers a gradient comes with, in their order."""


@dataclass(frozen=True, slots=True)
class Member:
    """A network, and its tensors: torch looks through all modules whenever it is asked for them."""

    network: Network
    parameters: list[nn.Parameter]
    buffers: list[Tensor]
    statistics: list[Tensor]
    """The buffers that are running statistics."""

    @classmethod
    def of(cls, network: Network) -> Self:
        """``network``, which is on its device for good."""
        buffers = list(network.buffers())
        statistics = [buffer for buffer in buffers if buffer.is_floating_point()]
        return cls(network, list(network.parameters()), buffers, statistics)

    def copy(self) -> Self:
        """A network with the same parameters, and gradients and statistics of its own."""
        duplicate = self.of(copy.deepcopy(self.network))
        for ours, theirs in zip(duplicate.parameters, self.parameters, strict=True):
            ours.data = theirs.data
        return duplicate

    def begin_as(self, source: "Member") -> None:
        """Take over mode and statistics."""
        if self.network.training != source.network.training:
            self.network.train(source.network.training)
        torch._foreach_copy_(self.buffers, source.buffers)

    def forget_gradients(self) -> None:
        """Set all gradients to None."""
        for parameter in self.parameters:
            parameter.grad = None

    def gradients_and_statistics(self) -> list[Tensor]:
        """The results of a backward pass, in a fixed order."""
        gradients = [parameter.grad for parameter in self.parameters]
        return [gradient for gradient in gradients if gradient is not None] + self.statistics


class Gradients:
    """Gradients of one network's losses. In a ``with`` block, micro-batches run side by side.

    Outside of one they run one after the other, to the same numbers.
    """

    def __init__(self, network: Network, settings: TrainingSettings) -> None:
        """Share the parameters of ``network``, which is on its device for good."""
        self.settings = settings
        """May be replaced between steps."""
        self._members = [Member.of(network)]
        self._threads: ThreadPoolExecutor | None = None
        self._num_threads = 1

    def __enter__(self) -> Self:
        """Start as many threads as torch has been given, and there are micro-batches."""
        self._num_threads = torch.get_num_threads()
        num_threads = min(self._num_threads, self.settings.num_micro_batches)
        on_cpu = self._members[0].parameters[0].device.type == "cpu"
        if on_cpu and num_threads > 1:
            self._threads = single_torch_threads(num_threads, "gradients")
            # Between them an update is many small operations, which wait longer for torch's own
            # threads than they take.
            torch.set_num_threads(1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the threads."""
        if self._threads is not None:
            self._threads.shutdown()
            torch.set_num_threads(self._num_threads)
            self._threads = None

    @torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
    def compute(self, batch: TrainingBatch, whole: int | None = None) -> Tensor:
        """Set the gradient of the network's parameters; the losses float32[F].

        The network's running statistics become the mean of what the micro-batches make of them.

        Args:
            batch: some whole micro-batches.
            whole: positions of the batch that these are a part of. All three, gradient, statistics
                and losses, are then what the part contributes to the means over that batch.
        """
        parts = batch.split(self.settings.micro_batch)
        while len(self._members) < len(parts):
            self._members.append(self._members[0].copy())
        first, *others = members = self._members[: len(parts)]
        for each in others:
            each.begin_as(first)
        figures = self._backward_all(members, parts)
        shares = [len(part) / (whole or len(batch)) for part in parts]
        if shares == [1.0]:
            return figures[0]
        _take_means(members, shares)
        return torch.stack([f * share for f, share in zip(figures, shares, strict=True)]).sum(0)

    def _backward_all(
        self, members: Sequence[Member], parts: Sequence[TrainingBatch]
    ) -> list[Tensor]:
        if self._threads is None:
            return list(map(self._backward, members, parts))
        pairs = zip(members, parts, strict=True)
        futures = [self._threads.submit(self._backward, *pair) for pair in pairs]
        wait(futures)  # all of them, even where one fails: the networks are used again
        return [future.result() for future in futures]

    def _backward(self, member: Member, batch: TrainingBatch) -> Tensor:
        losses = losses_of(member.network, batch, self.settings)
        member.forget_gradients()
        losses.total.backward()  # type: ignore[no-untyped-call]
        return torch.stack([getattr(losses, name).detach() for name in LOSS_FIGURES])


def losses_of(network: Network, batch: TrainingBatch, settings: TrainingSettings) -> Losses:
    """Losses of ``batch`` in the network's present mode, with gradient."""
    targets = batch.targets
    planes_BPHW = batch.planes(network.num_planes)
    device = planes_BPHW.device.type
    in_bf16 = settings.precision == "bf16" and (device != "cpu" or processor_has_bfloat16())
    rate = changes = None
    with ExitStack() as stack:
        if settings.spike_rate_weight:
            rate = stack.enter_context(measuring_spike_rate(network))
        if settings.change_rate_weight:
            changes = stack.enter_context(measuring_spike_rate(network, changes_of_pairs))
        stack.enter_context(torch.autocast(
            device, torch.bfloat16, enabled=in_bf16,
            # Copies of weights kept from an eager step would not be made again in a replay.
            cache_enabled=device == "cpu",
        ))
        output = network.legal_output(
            planes_BPHW, targets.legal_actions_BL, targets.num_legal_B
        )
    return compute_losses(
        network.spec, output, targets, settings, rate and rate(), changes and changes()
    )


@torch.no_grad()
def _take_means(members: Sequence[Member], shares: Sequence[float]) -> None:
    """Give the first network the mean gradient and statistics, each network by its share."""
    columns = [member.gradients_and_statistics() for member in members]
    totals = columns[0]
    torch._foreach_mul_(totals, shares[0])
    for column, share in zip(columns[1:], shares[1:], strict=True):
        torch._foreach_add_(totals, column, alpha=share)
