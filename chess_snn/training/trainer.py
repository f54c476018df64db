"""The optimiser loop: one network, samples from a replay window, one device or several ranks.

The path from the replay window to new weights. Read ``Trainer.run``, the loop over optimiser steps,
and ``_draw``, which has all of its randomness. File 13 of 16 of the spine in docs/architecture.md.

A step (:mod:`chess_snn.training.step`) takes the batch in micro-batches through the network, the
losses and their gradients. Ranks sum the gradients, which are clipped, and AdamW changes the
weights. Positions are drawn uniformly and, for ``surprise_share`` of them, by how much the search
disagreed with the network's policy.

Every rank draws the same samples from the same stream, and gathers and computes its share of them
alone. So each sample is used once, and what is drawn does not depend on the number of ranks.
"""

import copy
import hashlib
import inspect
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Final

import numpy as np
import torch
from torch import Tensor

from chess_snn import __version__
from chess_snn.data import ReplayWindow
from chess_snn.errors import UsageError
from chess_snn.games.base import Game
from chess_snn.nets import (
    Network,
    SpikeCounts,
    changes_of_pairs,
    count_spikes,
    keep_freed_memory,
    network_digest,
)
from chess_snn.rng import generator
from chess_snn.training.batch import (
    TrainingBatch,
    assemble,
    load_ahead,
    show_afterstates,
    transform,
)
from chess_snn.training.ranks import ALONE, Division, Ranks, divide
from chess_snn.training.report import (
    FigureLog,
    MicroBatchUse,
    StepListener,
    TrainingReport,
    make_report,
)
from chess_snn.training.schedule import IterationPlan, learning_rate
from chess_snn.training.settings import TrainingSettings
from chess_snn.training.step import CapturedStep, StepTooLargeError, TrainingStep
from chess_snn.types import BoolArray, Int32Array, Progress, UInt8Array

_NOT_DECAYED = 1
"""Parameters with at most this many dimensions (biases, normalisation) have no weight decay."""
_AHEAD_ON_GPU = 2
"""Batches prepared while a GPU trains. A CPU has no core to spare for it."""
_STEPS_A_FETCH_ON_GPU = 16
_SPIKE_POSITIONS: Final = 256
"""Positions on which spikes are counted."""
_LEAST_MICRO_BATCH: Final = 2
_AFTERSTATE_SHARE: Final = 0.5
"""Share of a stochastic game's samples: a search asks for values of both kinds of positions."""
_DIGEST_LENGTH: Final = 16
_AVERAGE_LAG: Final = 10
"""The running average begins with about the last tenth of the steps taken."""


@dataclass(frozen=True, slots=True)
class _Draw:
    """One step's samples, of all ranks."""

    rows: Int32Array
    """int32[B] of the window."""
    symmetries: UInt8Array
    """uint8[B]: the view that each is shown in."""
    are_afterstates: BoolArray
    """bool[B]: whether it is shown after its action, where nature is to move."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A rank's share of a draw."""

    draw: _Draw
    division: Division
    batch: TrainingBatch


class Trainer:
    """A network with its optimiser and its place in the campaign.

    ``seed`` and the iteration name the stream of samples, so that an iteration trained again from
    the same checkpoint and window gives the same weights, bit for bit on one kind of CPU and number
    of ranks.
    """

    def __init__(
        self, game: Game, network: Network, settings: TrainingSettings, seed: int,
        device: torch.device | str = "cpu", captured: bool = True, ranks: Ranks = ALONE,
    ) -> None:
        """Take over ``network``.

        Args:
            game: of the samples.
            network: is moved to ``device`` and changed by training.
            settings: how to train.
            seed: of the samples.
            device: where to train.
            captured: whether a GPU replays its steps as graphs; the CPU has none.
            ranks: who trains together; each has the same network, settings and seed.

        Raises:
            UsageError: there are more ranks than micro-batches.
            ConfigError: the network cannot be trained with these settings.
        """
        settings.check_network(network.config)
        keep_freed_memory()
        self.game, self.settings, self.seed = game, settings, seed
        self.ranks = ranks
        self.device = torch.device(device)
        self.network = network.to(self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizer = _make_optimizer(self.network, settings, self.device)
        self.average: Network | None = None
        """The running average of the weights, where the settings want one."""
        if settings.average_decay > 0:
            self.average = copy.deepcopy(self.network).eval().requires_grad_(False)
            newest = self.network.state_dict()
            self._averaged = [
                (average, newest[name]) for name, average in self.average.state_dict().items()
            ]
        self._step = TrainingStep(self.network, self.optimizer, settings, ranks)
        self._on_gpu = self.device.type == "cuda"
        self._is_captured = self._on_gpu and captured
        self._run_step = self._step_runner()
        self._division = divide(settings, ranks.size)
        self.steps_done = 0
        """Optimiser steps since the start of the campaign."""
        self.step_in_iteration = 0
        self.rng = generator(seed, "samples", 0)

    @property
    def playing_network(self) -> Network:
        """The network to play and store: the running average of the weights, or else itself."""
        return self.network if self.average is None else self.average

    def begin_iteration(self, iteration: int) -> None:
        """Start ``iteration``: its own stream of samples, step 0."""
        self.step_in_iteration = 0
        self.rng = generator(self.seed, "samples", iteration)

    def run(
        self, window: ReplayWindow, plan: IterationPlan, *,
        stop_at: int | None = None, on_progress: Progress | None = None,
        on_step: StepListener | None = None,
    ) -> TrainingReport:
        """Train from where this iteration stands to its end, or to step ``stop_at`` of it.

        Args:
            window: the samples.
            plan: where the iteration stands in its campaign.
            stop_at: see above.
            on_progress: called after every step with (steps done, steps in all).
            on_step: called with the losses of every step that was taken; on a GPU some steps late.

        Raises:
            TrainingDivergedError: more steps in a row than ``training.skip_limit`` are not finite.
            UsageError: ranks disagree, or no micro-batch is small enough for the memory.
            RankLostError: a rank died or froze.
        """
        self.agree(window, {"plan": str(plan), "last step": str(stop_at)})
        start = time.perf_counter()
        self.network.train()
        last = plan.num_steps if stop_at is None else min(stop_at, plan.num_steps)
        log = FigureLog(
            self.steps_done, _STEPS_A_FETCH_ON_GPU if self._on_gpu else 1, self.settings.skip_limit,
            on_step,
        )
        uses = [MicroBatchUse(self.steps_done, self.settings.micro_batch)]
        rate = 0.0
        batches = load_ahead(
            lambda: self._prepare(window, self._draw(window)),
            max(0, last - self.step_in_iteration),
            ahead=_AHEAD_ON_GPU if self._on_gpu else 0,
        )
        with self._step.gradients:
            for prepared in batches:
                progress = plan.progress(self.step_in_iteration)
                rate = learning_rate(self.settings, self.steps_done, progress)
                log.add(self._take_step(window, prepared, rate), rate)
                if self.settings.micro_batch != uses[-1].micro_batch:
                    uses.append(MicroBatchUse(self.steps_done, self.settings.micro_batch))
                self.steps_done += 1
                self.step_in_iteration += 1
                self._update_average()
                if on_progress is not None:
                    on_progress(self.step_in_iteration, plan.num_steps)
        log.end()
        seconds = self._mean_over_ranks(time.perf_counter() - start)
        return make_report(
            log, self.settings, rate, seconds, tuple(uses), self._division.counts
        )

    def _take_step(self, window: ReplayWindow, prepared: _Prepared, rate: float) -> Tensor:
        """One step on a draw, with micro-batches that fit the memory of every rank."""
        while True:
            if prepared.division != self._division:
                prepared = self._prepare(window, prepared.draw)
            try:
                return self._run_step(prepared.batch, rate)
            except StepTooLargeError:
                pass  # and go on outside, where nothing holds the memory of what failed
            self._halve_micro_batch()

    @torch.no_grad()
    def _update_average(self) -> None:
        """Move the average, running statistics included, towards the network after a step."""
        if self.average is None:
            return
        decay = min(
            self.settings.average_decay, self.steps_done / (self.steps_done + _AVERAGE_LAG)
        )
        for average, newest in self._averaged:
            if average.is_floating_point():
                average.lerp_(newest, 1 - decay)
            else:
                average.copy_(newest)

    def _halve_micro_batch(self) -> None:
        """Go on with smaller micro-batches, in every later step and generation too.

        Normalisation sees fewer positions at a time, so what is learnt is not the same: the report
        says from which step on. The batch, and with it the gradient's noise, stays.
        """
        used = min(self.settings.micro_batch, self.settings.batch_size)
        if used <= _LEAST_MICRO_BATCH:
            raise UsageError(
                f"out of memory with micro-batches of {used} positions; train a smaller net.size, "
                "or free the device's memory"
            )
        half = -(-used // 2)
        self.settings = replace(self.settings, micro_batch=half + half % 2)  # pairs stay together
        self._step.gradients.settings = self.settings
        self._division = divide(self.settings, self.ranks.size)
        self._run_step = self._step_runner()
        if self._on_gpu:
            torch.cuda.empty_cache()

    def _step_runner(self) -> Callable[[TrainingBatch, float], Tensor]:
        """The function that runs a step; a graph is of batches of one shape."""
        return CapturedStep(self._step).run if self._is_captured else self._step.run

    def _prepare(self, window: ReplayWindow, draw: _Draw) -> _Prepared:
        """This rank's share of a draw, where the step wants it."""
        division = self._division
        part = division.positions(self.ranks.rank)
        samples = window.gather(draw.rows[part])
        samples = transform(self.game, samples, draw.symmetries[part])
        if self.game.spec.is_stochastic:
            samples = show_afterstates(self.game, samples, draw.are_afterstates[part])
        batch = assemble(self.game, samples, all_columns=self._on_gpu)
        return _Prepared(draw, division, batch.pinned() if self._on_gpu else batch)

    def _draw(self, window: ReplayWindow) -> _Draw:
        """One step's samples; all that is random in training comes from ``self.rng``, here."""
        settings = self.settings
        in_pairs = settings.change_rate_weight > 0
        rows = window.draw(
            settings.batch_size // (1 + in_pairs), self.rng, surprise_share=settings.surprise_share
        )
        # The identity last: runs of chess keep their order of draws.
        last = self.game.spec.num_symmetries - 1
        symmetries = (last - np.floor(self.rng.random(len(rows)) * (last + 1))).astype(np.uint8)
        are_afterstates = np.zeros(len(rows), np.bool_)
        if self.game.spec.is_stochastic:
            are_afterstates = self.rng.random(len(rows)) < _AFTERSTATE_SHARE
        if in_pairs:  # seen in one view
            rows = np.stack([rows, window.neighbours(rows)], axis=1).ravel()
            symmetries, are_afterstates = symmetries.repeat(2), are_afterstates.repeat(2)
        return _Draw(rows, symmetries, are_afterstates)

    def agree(self, window: ReplayWindow, further: dict[str, str] | None = None) -> None:
        """See that all ranks are about to do the same.

        Raises:
            UsageError: one is not; names it and what differs.
        """
        if self.ranks.size == 1:
            return
        stream = json.dumps(self.rng.bit_generator.state, default=str)
        self.ranks.agree({
            "version": __version__,
            "torch": torch.__version__.partition("+")[0],
            **{f"training.{name}": str(value) for name, value in asdict(self.settings).items()},
            "network": network_digest(self.network)[:_DIGEST_LENGTH],
            "step": f"{self.step_in_iteration} ({self.steps_done} in all)",
            "stream of samples": hashlib.sha256(stream.encode()).hexdigest()[:_DIGEST_LENGTH],
            "replay window": window.digest(),
            **(further or {}),
        })

    def _mean_over_ranks(self, number: float) -> float:
        vector = torch.tensor([number], dtype=torch.float64, device=self.device)
        self.ranks.add_up(vector)
        return vector.item() / self.ranks.size

    @torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
    def count_spikes(self, window: ReplayWindow) -> SpikeCounts:
        """Spikes by layer on positions from all over the window; none in a baseline."""
        return count_spikes(self.playing_network, self._some_planes(window, _SPIKE_POSITIONS))

    @torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
    def count_changes(self, window: ReplayWindow) -> SpikeCounts:
        """Changes of such positions to their neighbours (``training.change_rate_weight``)."""
        planes_BPHW = self._some_planes(window, _SPIKE_POSITIONS // 2, with_neighbours=True)
        return count_spikes(self.playing_network, planes_BPHW, changes_of_pairs)

    def _some_planes(
        self, window: ReplayWindow, number: int, *, with_neighbours: bool = False
    ) -> Tensor:
        rows = window.rows("training")
        rows = rows[:: max(1, len(rows) // number)][:number]
        if with_neighbours:
            rows = np.stack([rows, window.neighbours(rows)], axis=1).ravel()
        batch = assemble(self.game, window.gather(rows)).to(self.device)
        return batch.planes(self.playing_network.num_planes)


class _AdamW(torch.optim.AdamW):
    """AdamW without torch's compiler, whose import takes each process one to two seconds.

    The wrappers of these methods import it to say that it leaves them alone.
    """

    add_param_group = inspect.unwrap(torch.optim.AdamW.add_param_group)
    load_state_dict = inspect.unwrap(torch.optim.AdamW.load_state_dict)
    state_dict = inspect.unwrap(torch.optim.AdamW.state_dict)
    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))
    zero_grad = inspect.unwrap(torch.optim.AdamW.zero_grad)


def _make_optimizer(
    network: Network, settings: TrainingSettings, device: torch.device
) -> torch.optim.AdamW:
    parameters = list(network.parameters())
    decayed = [p for p in parameters if p.ndim > _NOT_DECAYED]
    plain = [p for p in parameters if p.ndim <= _NOT_DECAYED]
    on_gpu = device.type == "cuda"
    return _AdamW(
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
