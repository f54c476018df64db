"""The :class:`chess_snn.nets.evaluator.Evaluator` of networks on a CUDA device.

Bitboards and legal lists go to the device, legal logits and values come back, and nothing else. An
evaluator has *lanes*: each is a stream with memory and captured graphs of its own, so that while
one batch is in the network another is on its way. A caller waits for its own batch alone.

A captured graph takes one size of batch only, so any batch is padded to the next of a few sizes
(:mod:`chess_snn.nets.gpu.static_batch`). Each lane captures every size that it meets, and the
others wait for that: :meth:`CudaEvaluator.renewed` keeps the graphs for the next generation's
weights.

Dimensions: B positions, P bitplanes, M columns for legal actions.
"""

import queue
import threading
import weakref
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np
import torch

from chess_snn.nets.evaluator import BusyClock, Evaluation, RowLimit
from chess_snn.nets.gpu.static_batch import ROW_SIZES, StaticBatch, column_bucket, row_bucket
from chess_snn.nets.inference import InferenceNetwork
from chess_snn.nets.model.values import num_wdl
from chess_snn.types import Closeable, Int16Array, Int32Array, UInt64Array

NUM_LANES: Final = 3
"""One in the network, one on its way, one whose answer is being read."""
_unused_streams: Final = defaultdict[torch.device, list[torch.cuda.Stream]](list)
"""Streams of lanes that are gone. torch has 32 for a device and then gives out the first one again,
which another lane may be capturing on; and cuBLAS keeps 32 MiB for each that it has seen."""


class CudaEvaluator(Closeable):
    """A frozen network with its lanes. Calls from several threads are safe, and overlap."""

    def __init__(
        self, network: InferenceNetwork, captured: bool = True, lanes: "Sequence[_Lane]" = ()
    ) -> None:
        """Make the lanes; graphs are captured when a size of batch is first met.

        Args:
            network: on a CUDA device. On the CPU, where tests try it, nothing is captured.
            captured: whether to replay graphs; without, every kernel is launched by itself, with
                the same results.
            lanes: of this network, in place of new ones.
        """
        self.network = network
        self._busy = BusyClock()
        self._limit = RowLimit(ROW_SIZES[-1])
        self._closing = threading.Lock()
        self._lanes: queue.SimpleQueue[_Lane | None] = queue.SimpleQueue()
        """Those that no call uses; None is the last one of an evaluator that is closed."""
        for lane in lanes or [_Lane(network, captured) for _ in range(NUM_LANES)]:
            self._lanes.put(lane)

    def renewed(self, network: InferenceNetwork) -> "CudaEvaluator":
        """Close this evaluator, and return one of ``network``.

        If both networks differ in their weights alone, it has the lanes of this one with their
        graphs: its weights are copied to where the graphs read them. This evaluator is closed
        before that, so if the copy fails nothing can use what it has left.
        """
        lanes = self._take_lanes()
        if not lanes or not self.network.has_shape_of(network):
            return CudaEvaluator(network)
        self.network.load_state_dict(network.state_dict())
        for lane in lanes:
            lane.follow_caller()
        renewed = CudaEvaluator(self.network, lanes=lanes)
        renewed._limit = self._limit
        return renewed

    @property
    def network_seconds(self) -> float:
        """See :attr:`chess_snn.nets.evaluator.Evaluator.network_seconds`."""
        return self._busy.seconds

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
            if lane is None:
                self._lanes.put(None)  # for other callers
                raise RuntimeError("this evaluator is closed")
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
        """Let go of the lanes with their memory, once no call uses them."""
        self._take_lanes()

    def _take_lanes(self) -> "list[_Lane]":
        """All lanes, once no call uses them; a closed evaluator has none."""
        lanes: list[_Lane] = []
        with self._closing:
            while len(lanes) < NUM_LANES and (lane := self._lanes.get()) is not None:
                lanes.append(lane)
            self._lanes.put(None)
        return lanes


class _Lane:
    """A stream with its batches, used by one thread at a time."""

    def __init__(self, network: InferenceNetwork, captured: bool) -> None:
        self._network = network
        self._on_gpu = network.device.type == "cuda"
        self._captured = captured and self._on_gpu
        self._batches: dict[tuple[int, int], StaticBatch] = {}
        if self._on_gpu:
            unused = _unused_streams[network.device]
            self._stream = unused.pop() if unused else _new_stream(network.device)
            weakref.finalize(self, unused.append, self._stream)
            # A thread that waits leaves its core to the trees of another group of games.
            self._finished = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
            self._pool = torch.cuda.graph_pool_handle()
        self.follow_caller()

    def follow_caller(self) -> None:
        """Start nothing before the weights are there that the caller's stream is writing."""
        if self._on_gpu:
            self._stream.wait_stream(torch.cuda.current_stream(self._network.device))

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
            if self._on_gpu:
                # torch captures nothing into a pool whose last graph is gone while memory is left.
                self._pool = torch.cuda.graph_pool_handle()
                torch.cuda.empty_cache()
            raise

    def _answer(
        self, planes: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array,
        answer: Evaluation,
    ) -> None:
        batch = self._batch_for(*legal_actions.shape)
        batch.fill(planes, legal_actions, num_legal)
        self._run(batch)
        found = batch.read(*legal_actions.shape)
        answer.legal_logits[:], answer.value_stm[:] = found.legal_logits, found.value_stm
        answer.wdl_stm[:] = found.wdl_stm

    def _run(self, batch: StaticBatch) -> None:
        if not self._on_gpu:
            batch.start()
            return
        with torch.cuda.stream(self._stream):
            batch.start()
            self._finished.record(self._stream)
        self._finished.synchronize()

    def _batch_for(self, num_rows: int, num_columns: int) -> StaticBatch:
        bucket = row_bucket(num_rows), column_bucket(num_columns, self._network.spec.max_legal)
        if bucket not in self._batches:
            batch = StaticBatch(self._network, *bucket)
            if self._captured:
                batch.capture(self._stream, self._pool)
            self._batches[bucket] = batch
        return self._batches[bucket]


def _new_stream(device: torch.device) -> torch.cuda.Stream:
    stream: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    return stream
