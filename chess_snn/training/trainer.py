"""The optimiser loop: one network, one device, samples from a replay window."""

import time
from collections.abc import Callable

import numpy as np
import torch

from chess_snn.data import ReplayWindow, Samples
from chess_snn.games.base import Game
from chess_snn.nets import Network, count_spikes, expand_planes, keep_freed_memory
from chess_snn.rng import generator
from chess_snn.training.batch import TrainingBatch, as_tensor, assemble, mirror
from chess_snn.training.load_ahead import load_ahead
from chess_snn.training.losses import value_loss
from chess_snn.training.report import FigureLog, TrainingReport, make_report
from chess_snn.training.schedule import IterationPlan, learning_rate
from chess_snn.training.settings import TrainingSettings
from chess_snn.training.step import CapturedStep, TrainingStep

Progress = Callable[[int, int], None]
"""Called after every step with (steps done, steps in all) of the iteration."""

_NOT_DECAYED = 1
"""Parameters with at most this many dimensions (biases, normalisation) have no weight decay."""
_MIRRORED_SHARE = 0.5
_AHEAD_ON_GPU = 2
"""Batches prepared while a GPU trains. A CPU has no core to spare for it."""
_STEPS_A_FETCH_ON_GPU = 16
_SPIKE_POSITIONS = 256
"""Positions on which spikes are counted."""


class Trainer:
    """A network with its optimiser and its place in the campaign.

    ``seed`` and the iteration name the stream of samples, so that an iteration trained again from
    the same checkpoint and window gives the same weights, bit for bit on one kind of CPU and
    number of threads.
    """

    def __init__(
        self, game: Game, network: Network, settings: TrainingSettings, seed: int,
        device: torch.device | str = "cpu", captured: bool = True,
    ) -> None:
        """Take over ``network``.

        Args:
            game: of the samples.
            network: is moved to ``device`` and changed by training.
            settings: how to train.
            seed: of the samples.
            device: where to train.
            captured: whether a GPU replays its steps as a graph; the CPU has none.
        """
        keep_freed_memory()
        self.game, self.settings, self.seed = game, settings, seed
        self.device = torch.device(device)
        self.network = network.to(self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizer = _make_optimizer(self.network, settings, self.device)
        self._step = TrainingStep(self.network, self.optimizer, settings)
        self._on_gpu = self.device.type == "cuda"
        self._run_step = (
            CapturedStep(self._step).run if self._on_gpu and captured else self._step.run
        )
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
        last = plan.num_steps if stop_at is None else min(stop_at, plan.num_steps)
        log = FigureLog(self.steps_done, _STEPS_A_FETCH_ON_GPU if self._on_gpu else 1)
        rate = 0.0
        batches = load_ahead(
            lambda: self._prepare(window), max(0, last - self.step_in_iteration),
            ahead=_AHEAD_ON_GPU if self._on_gpu else 0,
        )
        with self._step.gradients:
            for batch in batches:
                progress = plan.progress(self.step_in_iteration)
                rate = learning_rate(self.settings, self.steps_done, progress)
                log.add(self._run_step(batch, rate))
                self.steps_done += 1
                self.step_in_iteration += 1
                if on_progress is not None:
                    on_progress(self.step_in_iteration, plan.num_steps)
        log.fetch()
        return make_report(
            log.steps, self.settings.batch_size, rate, time.perf_counter() - start
        )

    def _prepare(self, window: ReplayWindow) -> TrainingBatch:
        """The next step's batch, where the step wants it."""
        batch = assemble(self.game, self._draw(window), all_columns=self._on_gpu)
        return batch.pinned() if self._on_gpu else batch

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

    @torch.no_grad()
    def holdout_value_loss(self, window: ReplayWindow, batch_size: int = 1024) -> float:
        """Mean value loss over the window's held-out games, nats; NaN where it has none.

        It is measured against how the games ended (of a cut game, what it counts as), without
        discount or root value, so that it means the same whatever the value target is made of.
        """
        self.network.eval()
        total, count = 0.0, 0
        for samples in window.iterate(batch_size, subset="holdout"):
            words_BP = as_tensor(self.game.planes(samples.states).view(np.int64)).to(self.device)
            wdl_logits_B3 = self.network.wdl_logits(
                expand_planes(words_BP, self.game.spec.board_shape, torch.float32)
            )
            results_stm_B = as_tensor(samples.results_stm).to(self.device)
            total += value_loss(wdl_logits_B3, results_stm_B).item() * len(samples)
            count += len(samples)
        return total / count if count else float("nan")

    def spike_rate(self, window: ReplayWindow) -> float:
        """Share of neurons and ticks that spike, in [0, 1], on positions from all over the window.

        0 for an ordinary twin.
        """
        rows = window.rows("training")
        samples = window.gather(rows[:: max(1, len(rows) // _SPIKE_POSITIONS)][:_SPIKE_POSITIONS])
        batch = assemble(self.game, samples).to(self.device)
        return count_spikes(self.network, batch.planes_BPHW).rate


def _make_optimizer(
    network: Network, settings: TrainingSettings, device: torch.device
) -> torch.optim.AdamW:
    parameters = list(network.parameters())
    decayed = [p for p in parameters if p.ndim > _NOT_DECAYED]
    plain = [p for p in parameters if p.ndim <= _NOT_DECAYED]
    on_gpu = device.type == "cuda"
    return torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": settings.weight_decay},
            {"params": plain, "weight_decay": 0.0},
        ],
        # A graph reads the rate from the device's memory.
        lr=torch.tensor(settings.learning_rate, device=device) if on_gpu
        else settings.learning_rate,
        fused=True,
        capturable=on_gpu,
    )
