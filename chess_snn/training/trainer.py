"""The optimiser loop: one network, one device, samples from a replay window."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from chess_snn.data import ReplayWindow, Samples
from chess_snn.errors import TrainingDivergedError
from chess_snn.games.base import Game
from chess_snn.nets import Network, keep_freed_memory
from chess_snn.rng import generator
from chess_snn.training.batch import assemble
from chess_snn.training.losses import Losses, compute_losses, value_loss
from chess_snn.training.schedule import IterationPlan, learning_rate
from chess_snn.training.settings import TrainingSettings

Progress = Callable[[int, int], None]
"""Called after every step with (steps done, steps in all) of the iteration."""

_NOT_DECAYED = 1
"""Parameters with at most this many dimensions (biases, normalisation) have no weight decay."""


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """What one call of :meth:`Trainer.run` did; losses are means over its steps."""

    steps: int
    samples: int
    value_loss: float
    policy_loss: float
    policy_entropy: float
    """Nats, over legal actions."""
    gradient_norm: float
    """Before clipping."""
    learning_rate: float
    """At the last step."""
    seconds: float

    @property
    def samples_per_s(self) -> float:
        """Training speed."""
        return self.samples / self.seconds if self.seconds else 0.0


class Trainer:
    """A network with its optimiser and its place in the campaign.

    ``seed`` and the iteration name the stream of samples, so that an iteration trained again from
    the same checkpoint and window gives the same weights, bit for bit on one kind of CPU and
    number of threads.
    """

    def __init__(
        self, game: Game, network: Network, settings: TrainingSettings, seed: int,
        device: torch.device | str = "cpu",
    ) -> None:
        keep_freed_memory()
        self.game, self.settings, self.seed = game, settings, seed
        self.device = torch.device(device)
        self.network = network.to(self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizer = _make_optimizer(self.network, settings)
        self.steps_done = 0
        """Optimiser steps since the start of the campaign."""
        self.step_in_iteration = 0
        self.rng = generator(seed, "samples", 0)

    def begin_iteration(self, iteration: int) -> None:
        """Start ``iteration``: its own stream of samples, step 0."""
        self.step_in_iteration = 0
        self.rng = generator(self.seed, "samples", iteration)

    def run(
        self, window: ReplayWindow, plan: IterationPlan, *,
        stop_at: int | None = None, on_progress: Progress | None = None,
    ) -> TrainingReport:
        """Train from where this iteration stands to its end, or to step ``stop_at`` of it.

        Raises:
            TrainingDivergedError: a loss or gradient is not finite; the network is not to be kept.
        """
        start = time.perf_counter()
        self.network.train()
        totals = _Totals()
        last = plan.num_steps if stop_at is None else min(stop_at, plan.num_steps)
        rate = 0.0
        while self.step_in_iteration < last:
            progress = plan.progress(self.step_in_iteration)
            rate = learning_rate(self.settings, self.steps_done, progress)
            samples = window.sample(self.settings.batch_size, self.rng)
            losses, gradient_norm = self._step(samples, rate)
            totals.add(losses, gradient_norm)
            self.steps_done += 1
            self.step_in_iteration += 1
            if on_progress is not None:
                on_progress(self.step_in_iteration, plan.num_steps)
        return totals.report(rate, self.settings.batch_size, time.perf_counter() - start)

    def _step(self, samples: Samples, rate: float) -> tuple[Losses, float]:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        losses = self.losses(samples)
        self.optimizer.zero_grad(set_to_none=True)
        losses.total.backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.clip_norm)
        gradient_norm = float(norm)
        if not np.isfinite(gradient_norm) or not torch.isfinite(losses.total):
            raise TrainingDivergedError(
                f"training step {self.steps_done} is not finite: loss {losses.total.item():g}, "
                f"gradient norm {gradient_norm:g}; lower training.learning_rate "
                f"(now {self.settings.learning_rate:g}) or set training.precision = \"fp32\""
            )
        self.optimizer.step()
        return losses, gradient_norm

    def losses(self, samples: Samples) -> Losses:
        """Losses of ``samples`` in the network's present mode, with gradient."""
        batch = assemble(self.game, samples, self.device)
        bf16 = self.settings.precision == "bf16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=bf16):
            output = self.network(batch.planes_BPHW)
        return compute_losses(
            output.policy_logits_BA, output.wdl_logits_B3, batch.targets, self.settings
        )

    @torch.no_grad()
    def holdout_value_loss(self, window: ReplayWindow, batch_size: int = 1024) -> float:
        """Mean value loss over the window's held-out games, nats; NaN where it has none."""
        self.network.eval()
        total, count = 0.0, 0
        for samples in window.iterate(batch_size, subset="holdout"):
            batch = assemble(self.game, samples, self.device)
            output = self.network(batch.planes_BPHW)
            loss = value_loss(output.wdl_logits_B3, batch.targets.outcomes_stm_B)
            total += loss.item() * len(samples)
            count += len(samples)
        return total / count if count else float("nan")


class _Totals:
    """Running sums of one call's steps."""

    def __init__(self) -> None:
        self._steps = 0
        self._value = self._policy = self._entropy = self._norm = 0.0

    def add(self, losses: Losses, gradient_norm: float) -> None:
        self._steps += 1
        self._value += losses.value.item()
        self._policy += losses.policy.item()
        self._entropy += losses.entropy.item()
        self._norm += gradient_norm

    def report(self, rate: float, batch_size: int, seconds: float) -> TrainingReport:
        steps = max(1, self._steps)
        return TrainingReport(
            steps=self._steps,
            samples=self._steps * batch_size,
            value_loss=self._value / steps,
            policy_loss=self._policy / steps,
            policy_entropy=self._entropy / steps,
            gradient_norm=self._norm / steps,
            learning_rate=rate,
            seconds=seconds,
        )


def _make_optimizer(network: Network, settings: TrainingSettings) -> torch.optim.AdamW:
    parameters = list(network.parameters())
    decayed = [p for p in parameters if p.ndim > _NOT_DECAYED]
    plain = [p for p in parameters if p.ndim <= _NOT_DECAYED]
    return torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": settings.weight_decay},
            {"params": plain, "weight_decay": 0.0},
        ],
        lr=settings.learning_rate,
        fused=True,
    )
