"""What search, players and benchmarks may know of a network: positions in, logits and values out.

Dimensions: B positions, P bitplanes, M columns for legal actions.
"""

from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from chess_snn.types import Float32Array, Int16Array, Int32Array, UInt64Array


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the network says of B positions."""

    legal_logits: Float32Array
    """float32[B, M]: the logit of each listed legal action; -inf in the columns behind them."""
    value_stm: Float32Array
    """float32[B], side to move's view: win minus loss in [-1, 1], or the expected return in
    [0, ``GameSpec.value_limit``]."""
    wdl_stm: Float32Array
    """float32[B, 3]: probabilities of win, draw and loss for the side to move; rows sum to 1.
    float32[B, 0] in a game without win and loss."""

    @classmethod
    def of_wdl(cls, legal_logits: Float32Array, wdl_stm: Float32Array) -> "Evaluation":
        """The evaluation that these probabilities make."""
        return cls(legal_logits, wdl_stm[:, 0] - wdl_stm[:, 2], wdl_stm)


class Evaluator(Protocol):
    """A network ready to answer on one device."""

    @property
    def network_seconds(self) -> float:
        """Seconds the device was busy with answers since the evaluator was made; only grows.

        Of a CPU: the mean over the evaluator's threads of the processor time each has used.
        """
        ...

    @property
    def reduced_rows(self) -> int | None:
        """Most positions of a call since the device's memory ran out; None while it never has."""
        ...

    def evaluate(
        self, planes: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array
    ) -> Evaluation:
        """Evaluate ``planes`` uint64[B, P] with legal lists int16[B, M] and counts int32[B].

        Rows do not influence each other: the answer for a row is the same, to the rounding of the
        device, whatever stands in the other rows.
        """
        ...


class OwnedEvaluator(Evaluator, Protocol):
    """An evaluator with what it holds on its device. Use it in a ``with`` block, or close it."""

    def close(self) -> None:
        """Let go of threads and memory; the evaluator cannot be used afterwards."""
        ...

    def __enter__(self) -> Self:
        """The evaluator itself."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        ...
