"""The :class:`chess_snn.nets.evaluator.Evaluator` of networks on a CUDA device.

Bitboards and legal lists go to the device, legal logits and values come back, and nothing else. An
evaluator has *lanes*: each is a stream with memory and captured graphs of its own, so that while
one batch is in the network another is on its way. A caller waits for its own batch alone.

Dimensions: B positions, P bitplanes, M columns for legal actions.
"""

import queue
from types import TracebackType
from typing import Self

import numpy as np
import torch

from chess_snn.nets.buckets import ROW_SIZES, column_bucket, row_bucket
from chess_snn.nets.busy_clock import BusyClock
from chess_snn.nets.evaluator import Evaluation
from chess_snn.nets.inference import InferenceNetwork
from chess_snn.nets.row_limit import RowLimit
from chess_snn.nets.static_batch import StaticBatch
from chess_snn.nets.values import num_wdl
from chess_snn.types import Int16Array, Int32Array, UInt64Array

_NUM_LANES = 2
"""One in the network, one on its way."""


class CudaEvaluator:
    """A frozen network with its lanes. Calls from several threads are safe, and overlap."""

    def __init__(self, network: InferenceNetwork, captured: bool = True) -> None:
        """Make the lanes; graphs are captured when a size of batch is first met.

        Args:
            network: on a CUDA device.
            captured: whether to replay graphs; without, every kernel is launched by itself, with
                the same results.
        """
        self.network = network
        self._busy = BusyClock()
        self._limit = RowLimit(ROW_SIZES[-1])
        self._lanes: queue.SimpleQueue[_Lane] = queue.SimpleQueue()
        for _ in range(_NUM_LANES):
            self._lanes.put(_Lane(network, captured))

    @property
    def network_seconds(self) -> float:
        """See :attr:`chess_snn.nets.evaluator.Evaluator.network_seconds`."""
        return self._busy.seconds

    @property
    def reduced_rows(self) -> int | None:
        """See :attr:`chess_snn.nets.evaluator.Evaluator.reduced_rows`."""
        return self._limit.reduced_rows

    def evaluate(
        self, planes: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array
    ) -> Evaluation:
        """Evaluate ``planes`` uint64[B, P] with legal lists int16[B, M] and counts int32[B]."""
        num_columns = int(num_legal.max(initial=0))
        legal_logits = np.full(legal_actions.shape, -np.inf, dtype=np.float32)
        value_stm = np.empty(len(planes), dtype=np.float32)
        wdl_stm = np.empty((len(planes), num_wdl(self.network.spec)), dtype=np.float32)

        def answer(rows: slice) -> None:
            lane = self._lanes.get()
            try:
                with self._busy:
                    lane.answer(
                        planes[rows], legal_actions[rows, :num_columns], num_legal[rows],
                        Evaluation(
                            legal_logits[rows, :num_columns], value_stm[rows], wdl_stm[rows]
                        ),
                    )
            finally:
                self._lanes.put(lane)

        self._limit.answer(slice(0, len(planes)), answer)
        return Evaluation(legal_logits, value_stm, wdl_stm)

    def close(self) -> None:
        """Nothing to end: memory goes with the evaluator."""

    def __enter__(self) -> Self:
        """The evaluator itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()


class _Lane:
    """A stream with its batches, used by one thread at a time."""

    def __init__(self, network: InferenceNetwork, captured: bool) -> None:
        self._network, self._captured = network, captured
        self._stream = torch.cuda.Stream(network.device)  # type: ignore[no-untyped-call]
        self._finished = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._pool = torch.cuda.graph_pool_handle()
        self._batches: dict[tuple[int, int], StaticBatch] = {}

    def answer(
        self, planes: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array,
        answer: Evaluation,
    ) -> None:
        """Fill ``answer`` for a batch that a bucket holds.

        Raises:
            torch.OutOfMemoryError: the device has no room for it; the lane holds nothing any more.
        """
        try:
            self._answer(planes, legal_actions, num_legal, answer)
        except torch.OutOfMemoryError:
            self._batches.clear()
            torch.cuda.empty_cache()
            raise

    def _answer(
        self, planes: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array,
        answer: Evaluation,
    ) -> None:
        batch = self._batch_for(*legal_actions.shape)
        batch.fill(planes, legal_actions, num_legal)
        with torch.cuda.stream(self._stream):
            batch.start()
            self._finished.record(self._stream)
        self._finished.synchronize()
        found = batch.read(*legal_actions.shape)
        answer.legal_logits[:], answer.value_stm[:] = found.legal_logits, found.value_stm
        answer.wdl_stm[:] = found.wdl_stm

    def _batch_for(self, num_rows: int, num_columns: int) -> StaticBatch:
        bucket = row_bucket(num_rows), column_bucket(num_columns, self._network.spec.max_legal)
        if bucket not in self._batches:
            batch = StaticBatch(self._network, *bucket)
            if self._captured:
                batch.capture(self._stream, self._pool)
            self._batches[bucket] = batch
        return self._batches[bucket]
