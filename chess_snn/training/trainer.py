"""The optimiser loop: one network, one device, samples from a replay window."""

import math
import time
from collections.abc import Callable

import torch

from chess_snn.data import ReplayWindow, Samples
from chess_snn.errors import TrainingDivergedError
from chess_snn.games.base import Game
from chess_snn.nets import Network, keep_freed_memory
from chess_snn.rng import generator
from chess_snn.training.batch import assemble, mirror
from chess_snn.training.losses import Losses, compute_losses, value_loss
from chess_snn.training.report import StepFigures, TrainingReport, fetch_figures, make_report
from chess_snn.training.schedule import IterationPlan, learning_rate
from chess_snn.training.settings import TrainingSettings

Progress = Callable[[int, int], None]
"""Called after every step with (steps done, steps in all) of the iteration."""

_NOT_DECAYED = 1
"""Parameters with at most this many dimensions (biases, normalisation) have no weight decay."""
_MIRRORED_SHARE = 0.5


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
        steps: list[StepFigures] = []
        last = plan.num_steps if stop_at is None else min(stop_at, plan.num_steps)
        rate = 0.0
        while self.step_in_iteration < last:
            progress = plan.progress(self.step_in_iteration)
            rate = learning_rate(self.settings, self.steps_done, progress)
            steps.append(self._step(self._draw(window), rate))
            self.steps_done += 1
            self.step_in_iteration += 1
            if on_progress is not None:
                on_progress(self.step_in_iteration, plan.num_steps)
        return make_report(
            steps, self.settings.batch_size, rate, time.perf_counter() - start
        )

    def _draw(self, window: ReplayWindow) -> Samples:
        """One step's samples; all that is random in training comes from ``self.rng``, here."""
        settings = self.settings
        samples = window.sample(
            settings.batch_size, self.rng,
            surprise_share=settings.surprise_share, surprise_cap=settings.surprise_cap,
        )
        if settings.mirror:
            is_mirrored = self.rng.random(len(samples)) < _MIRRORED_SHARE
            samples = mirror(self.game, samples, is_mirrored)
        return samples

    def _step(self, samples: Samples, rate: float) -> StepFigures:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        losses = self.losses(samples)
        self.optimizer.zero_grad(set_to_none=True)
        losses.total.backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.clip_norm)
        figures = fetch_figures(losses, norm)
        if not math.isfinite(figures["gradient_norm"]) or not math.isfinite(figures["total"]):
            raise TrainingDivergedError(
                f"training step {self.steps_done} is not finite: loss {figures['total']:g}, "
                f"gradient norm {figures['gradient_norm']:g}; lower training.learning_rate "
                f"(now {self.settings.learning_rate:g}) or set training.precision = \"fp32\""
            )
        self.optimizer.step()
        return figures

    def losses(self, samples: Samples) -> Losses:
        """Losses of ``samples`` in the network's present mode, with gradient."""
        batch = assemble(self.game, samples, self.device)
        bf16 = self.settings.precision == "bf16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=bf16):
            output = self.network(batch.planes_BPHW)
        return compute_losses(output, batch.targets, self.settings)

    @torch.no_grad()
    def holdout_value_loss(self, window: ReplayWindow, batch_size: int = 1024) -> float:
        """Mean value loss over the window's held-out games, nats; NaN where it has none.

        It is measured against how the games ended (of a cut game, what it counts as), without
        discount or root value, so that it means the same whatever the value target is made of.
        """
        self.network.eval()
        total, count = 0.0, 0
        for samples in window.iterate(batch_size, subset="holdout"):
            batch = assemble(self.game, samples, self.device)
            output = self.network(batch.planes_BPHW)
            loss = value_loss(output.wdl_logits_B3, batch.targets.results_stm_B)
            total += loss.item() * len(samples)
            count += len(samples)
        return total / count if count else float("nan")


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
