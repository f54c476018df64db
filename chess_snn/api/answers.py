"""Answers of a network: an evaluation, the result of a search, and spikes.

Values are those of the side to move in the position that was asked about: win minus loss in
[-1, 1] in chess, points still to be won in 2048.

Dimensions: T ticks, C channels, H and W board, F features.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from chess_snn import nets
from chess_snn.api.positions import Move
from chess_snn.types import UInt8Array


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The network's own opinion of a position, without a search."""

    value_stm: float
    """Win minus loss in [-1, 1], or points to come, for the side to move."""
    wdl_stm: tuple[float, float, float] | None
    """Probabilities of win, draw and loss for the side to move; None in 2048."""
    policy: dict[Move, float]
    """Probability of each legal move, the likeliest first; they sum to 1."""

    @property
    def move(self) -> Move:
        """The likeliest move."""
        return next(iter(self.policy))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A legal move as a search sees it."""

    move: Move
    visits: int
    """Simulations that began with the move."""
    prior: float
    """Probability by the network alone."""
    policy: float
    """Probability that the search recommends."""
    value_stm: float | None
    """Mean value of its visits for the side to move; None without visits."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """The result of one search."""

    evaluation: Evaluation
    """The evaluation of the position, before the search."""
    value_stm: float
    """The value of the position after the search, for the side to move."""
    candidates: tuple[Candidate, ...]
    """All legal moves: first the one to play, then by visits, then by policy."""
    line: tuple[Move, ...]
    """The move to play, and the most visited move of each position that follows; in 2048 without
    the new tiles between."""

    @property
    def move(self) -> Move:
        """The move to play."""
        return self.candidates[0].move

    @property
    def visits(self) -> int:
        """Simulations that were made; fewer than asked for where few moves are legal."""
        return sum(candidate.visits for candidate in self.candidates)

    @property
    def policy(self) -> dict[Move, float]:
        """Probability that the search recommends of each legal move; they sum to 1."""
        return {candidate.move: candidate.policy for candidate in self.candidates}


@dataclass(frozen=True, slots=True, eq=False)
class Spikes(Mapping[str, UInt8Array]):
    """Spikes of one evaluation in float32, by the name of the layer, in the order of their work.

    A layer is uint8[T, C, H, W], or uint8[T, F] behind the value head's linear layer: the spikes of
    each neuron in each tick, 0 or 1, of integer neurons up to ``most``. A baseline with ReLU has no
    layers.
    """

    activity: dict[str, nets.LayerActivity] = field(repr=False)
    """The same layers, with the membranes."""
    most: int
    """Largest number of spikes of a neuron in one tick."""
    work: nets.WorkCounts = field(repr=False)
    """Operations of the evaluation, with and without zeros."""

    def __getitem__(self, layer: str) -> UInt8Array:
        """The spikes of one layer."""
        return self.activity[layer].spikes_TX

    def __iter__(self) -> Iterator[str]:
        """The names of the layers."""
        return iter(self.activity)

    def __len__(self) -> int:
        """Number of layers."""
        return len(self.activity)

    @property
    def counts(self) -> dict[str, int]:
        """Number of spikes of each layer."""
        return {name: int(spikes_TX.sum(dtype="int64")) for name, spikes_TX in self.items()}

    @property
    def rates(self) -> dict[str, float]:
        """Share of the possible spikes of each layer, in [0, 1]."""
        return {
            name: count / (self.most * self[name].size) for name, count in self.counts.items()
        }

    @property
    def total(self) -> int:
        """Number of spikes in the whole network."""
        return sum(self.counts.values())

    @property
    def rate(self) -> float:
        """Share of the possible spikes in the whole network, in [0, 1]; 0 for a baseline."""
        chances = self.most * sum(spikes_TX.size for spikes_TX in self.values())
        return self.total / chances if chances else 0.0
