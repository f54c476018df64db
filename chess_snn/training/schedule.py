"""The learning rate over a campaign, and the order in which a network goes through a dataset.

The learning rate follows the whole campaign, not an iteration. A dataset comes in epochs, divided
into chunks of whole shards; a chunk is what is in memory at a time. The order follows from the
games and a seed alone, so that training which was killed goes on where it stood.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chess_snn.rng import generator
from chess_snn.training.settings import SupervisedSettings, TrainingSettings


@dataclass(frozen=True, slots=True)
class IterationPlan:
    """The place of one iteration's training in its campaign."""

    num_steps: int
    """Optimiser steps of this iteration."""
    progress_first: float
    """Share of the campaign done when it starts, in [0, 1]."""
    progress_last: float
    """Share done when it ends, as far as one knows before."""

    def progress(self, step: int) -> float:
        """Share of the campaign done before ``step`` of this iteration, in [0, 1]."""
        gain = self.progress_last - self.progress_first
        return min(1.0, self.progress_first + gain * step / self.num_steps)


def learning_rate(settings: TrainingSettings, steps_done: int, progress: float) -> float:
    """Linear warm-up by optimiser steps, cosine decay by the campaign's progress."""
    warmup = min(1.0, (steps_done + 1) / (settings.warmup_steps + 1))
    floor = settings.final_learning_rate
    decay = floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * progress))
    return settings.learning_rate * warmup * decay


@dataclass(frozen=True, slots=True)
class DatasetShard:
    """One committed shard to learn from."""

    path: Path
    num_positions: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some shards of one epoch."""

    epoch: int
    shards: tuple[Path, ...]
    num_positions: int
    num_steps: int
    """Optimiser steps: as many as show every position once."""


@dataclass(frozen=True, slots=True)
class TrainingSchedule:
    """Every chunk, in order."""

    chunks: tuple[Chunk, ...]

    @property
    def num_steps(self) -> int:
        """Steps of all chunks."""
        return sum(chunk.num_steps for chunk in self.chunks)

    def plan(self, index: int) -> IterationPlan:
        """The place of chunk ``index`` in the schedule."""
        first = sum(chunk.num_steps for chunk in self.chunks[:index])
        num_steps, total = self.chunks[index].num_steps, self.num_steps
        return IterationPlan(num_steps, first / total, (first + num_steps) / total)


def plan_schedule(
    shards: Sequence[DatasetShard], settings: SupervisedSettings, training: TrainingSettings,
    seed: int,
) -> TrainingSchedule:
    """The schedule through ``shards``; each epoch has them in an order of its own.

    Args:
        shards: at least one.
        settings: how many epochs, and how much in memory.
        training: whose batch size divides the positions into steps.
        seed: of the order.
    """
    return TrainingSchedule(tuple(
        chunk for epoch in range(settings.epochs)
        for chunk in _chunks(shards, settings, training, seed, epoch)
    ))


def _chunks(
    shards: Sequence[DatasetShard], settings: SupervisedSettings, training: TrainingSettings,
    seed: int, epoch: int,
) -> Iterator[Chunk]:
    held: list[Path] = []
    size = 0
    steps = settings.applied_to(training).num_steps
    for index in generator(seed, "supervised", epoch).permutation(len(shards)):
        shard = shards[index]
        if held and size + shard.num_positions > settings.window_positions:
            yield Chunk(epoch, tuple(held), size, steps(size))
            held, size = [], 0
        held.append(shard.path)
        size += shard.num_positions
    yield Chunk(epoch, tuple(held), size, steps(size))
