"""The :class:`chess_snn.nets.evaluator.Evaluator` of networks on a CUDA device.

Bitboards and legal lists go to the device, legal logits and values come back, and nothing else. An
evaluator has *lanes*: each is a stream with memory and captured graphs of its own, so that while
one batch is in the network another is on its way. A caller waits for its own batch alone.

Copies to the device, the network and the copies back are one CUDA graph, so that a batch of any
network costs the host one launch. On a CPU the same work runs as it stands, which is what the tests
of everything but the capture itself rely on. A captured graph takes one size of batch only, so any
batch is padded to the next of a few sizes; they lie close enough together that at most a third of a
large batch is padding.

Dimensions: B positions (rows of the bucket), n of them in use, P bitplanes, M columns for legal
actions, L columns of the bucket, X columns for win, draw and loss: 3 or 0.
"""

import queue
import threading
import time
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import torch
from torch import Tensor

from chess_snn.nets.evaluator import Evaluation, RowLimit
from chess_snn.nets.inference import InferenceNetwork
from chess_snn.nets.planes import expand_planes
from chess_snn.nets.values import num_wdl, read_value
from chess_snn.types import Int16Array, Int32Array, UInt64Array

_NUM_LANES = 2
"""One in the network, one on its way."""
_WARM_UP_RUNS = 3
"""Before the capture: kernels are compiled, and libraries choose theirs."""

_capturing = threading.Lock()
"""One capture at a time in a process."""
ROW_SIZES: Final = (32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
"""Positions of a batch."""
COLUMN_SIZES: Final = (64, 128)
"""Legal actions of a position; most of chess needs the first. The game's own limit comes behind."""


class StaticBatch:
    """A batch of at most ``num_rows`` positions with at most ``num_columns`` legal actions each.

    One thread at a time may :meth:`fill`, :meth:`start` and :meth:`read`; on a GPU it waits for the
    stream between the last two.
    """

    def __init__(self, network: InferenceNetwork, num_rows: int, num_columns: int) -> None:
        self._network = network
        on_gpu = network.device.type == "cuda"

        def host_memory(*shape: int, dtype: torch.dtype) -> Tensor:
            # Pinned: only then does a copy run beside everything else.
            return torch.zeros(shape, dtype=dtype, pin_memory=on_gpu)

        self._words_BP = host_memory(num_rows, network.spec.num_planes, dtype=torch.int64)
        self._legal_actions_BL = host_memory(num_rows, num_columns, dtype=torch.int16)
        self._num_legal_B = host_memory(num_rows, dtype=torch.int32)
        self._logits_BL = host_memory(num_rows, num_columns, dtype=torch.float32)
        self._value_B = host_memory(num_rows, dtype=torch.float32)
        self._wdl_BX = host_memory(num_rows, num_wdl(network.spec), dtype=torch.float32)
        self._graph: torch.cuda.CUDAGraph | None = None

    def fill(
        self, planes: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array
    ) -> None:
        """Take in uint64[n, P], int16[n, <= L] and int32[n]; the rows behind n are padding."""
        num_rows, num_columns = legal_actions.shape
        self._words_BP.numpy()[:num_rows] = planes.view(np.int64)
        self._legal_actions_BL.numpy()[:num_rows, :num_columns] = legal_actions
        counts = self._num_legal_B.numpy()
        counts[:num_rows] = num_legal
        # Padding keeps the planes of an earlier batch, and asks for nothing.
        counts[num_rows:] = 0

    def start(self) -> None:
        """Put the work on the current stream."""
        if self._graph is None:
            self._work()
        else:
            self._graph.replay()

    def read(self, num_rows: int, num_columns: int) -> Evaluation:
        """Views of the answer for n rows with this many columns, until the next start."""
        return Evaluation(
            self._logits_BL.numpy()[:num_rows, :num_columns], self._value_B.numpy()[:num_rows],
            self._wdl_BX.numpy()[:num_rows],
        )

    def capture(self, stream: torch.cuda.Stream, pool: Any) -> None:
        """Make a graph of the work, for ``stream`` alone.

        Args:
            stream: on which it will be started.
            pool: of memory, shared with graphs that never run at the same time as this.
        """
        with _capturing, torch.cuda.stream(stream):
            for _ in range(_WARM_UP_RUNS):
                self._work()
            stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            # Other threads may use the device meanwhile.
            with torch.cuda.graph(
                graph, pool=pool, stream=stream, capture_error_mode="thread_local"
            ):
                self._work()
            self._graph = graph

    @torch.inference_mode()
    @torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False)
    def _work(self) -> None:
        network, device = self._network, self._network.device
        planes_BPHW = expand_planes(
            self._words_BP.to(device, non_blocking=True), network.spec.board_shape,
            network.input_dtype,
        )
        logits_BL, value_logits_BV = network.answer(
            planes_BPHW,
            self._legal_actions_BL.to(device, non_blocking=True),
            self._num_legal_B.to(device, non_blocking=True),
        )
        self._logits_BL.copy_(logits_BL, non_blocking=True)
        wdl_BX, value_B = read_value(network.spec, value_logits_BV)
        self._value_B.copy_(value_B, non_blocking=True)
        self._wdl_BX.copy_(wdl_BX, non_blocking=True)


def row_bucket(num_rows: int) -> int:
    """The smallest prepared number of rows that holds ``num_rows``, at most the largest."""
    return next(size for size in ROW_SIZES if size >= num_rows)


def column_bucket(num_columns: int, max_legal: int) -> int:
    """The smallest prepared number of columns that holds ``num_columns``."""
    fitting = (size for size in COLUMN_SIZES if num_columns <= size < max_legal)
    return next(fitting, max_legal)


class BusyClock:
    """Seconds of wall clock during which at least one ``with`` block was open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._num_open = 0
        self._since = 0.0
        self._seconds = 0.0

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        with self._lock:
            running = time.perf_counter() - self._since if self._num_open else 0.0
            return self._seconds + running

    def __enter__(self) -> None:
        """One more is using it."""
        with self._lock:
            if self._num_open == 0:
                self._since = time.perf_counter()
            self._num_open += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """One less is using it."""
        with self._lock:
            self._num_open -= 1
            if self._num_open == 0:
                self._seconds += time.perf_counter() - self._since


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
