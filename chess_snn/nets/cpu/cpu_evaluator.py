"""The :class:`chess_snn.nets.evaluator.Evaluator` of networks on a CPU.

A batch is cut into chunks that stay in the cache, and threads take whole chunks.

A network's activations are allocated and freed in every call. glibc gives such large blocks back
to the kernel at once, and the next call faults every page in again: 18,000 page faults for 256
positions of `small`, and the kernel's lock makes threads wait for each other. Told to keep what is
freed (:func:`keep_freed_memory`), it has none, at the price of memory that stays at its highest
mark.

Dimensions: B positions, P bitplanes, M columns for legal actions, L columns in use, X columns for
win, draw and loss: 3 or 0.
"""

import ctypes
import math
import sys
import threading
import time
from collections.abc import Iterator
from functools import cache
from typing import Final

import numpy as np
import torch
from torch import Tensor

from chess_snn.cores import num_cores
from chess_snn.nets.cpu.torch_threads import single_torch_threads
from chess_snn.nets.evaluator import Evaluation
from chess_snn.nets.inference import InferenceNetwork
from chess_snn.nets.model.planes import expand_planes
from chess_snn.nets.model.values import num_wdl, read_value
from chess_snn.settings import check_range
from chess_snn.types import Closeable, Float32Array, Int16Array, Int32Array, UInt64Array

_SQUARES: Final = 16_384
"""Squares of all ticks. Half as many cost up to an eighth of the evaluations/s."""

_M_TRIM_THRESHOLD: Final = -1
_M_TOP_PAD: Final = -2
_M_MMAP_THRESHOLD: Final = -3
"""Names of glibc's ``mallopt(3)``."""

_KEEP_BYTES: Final = 1 << 30
_GROW_BYTES: Final = 1 << 24
_LARGEST_HEAP_BLOCK_BYTES: Final = 1 << 25
"""The most that glibc accepts on 64-bit machines."""


class CpuEvaluator(Closeable):
    """A frozen network with its threads. Use it in a ``with`` block, or call :meth:`close`.

    Calls from several threads are safe. The network runs in threads of the evaluator's own with
    one torch thread each, whatever torch's setting is in the thread that calls.
    """

    def __init__(
        self, network: InferenceNetwork, num_threads: int | None = 1,
        chunk_size: int | None = None,
    ) -> None:
        """Start the threads.

        Args:
            network: on the CPU.
            num_threads: that evaluate chunks side by side; None takes one a core.
            chunk_size: most positions a chunk; None takes 256 in chess with one tick, as many more
                as a board is smaller, and fewer with ticks.
        """
        num_threads = num_cores() if num_threads is None else num_threads
        if chunk_size is None:
            chunk_size = _SQUARES // math.prod(network.spec.board_shape) // network.config.ticks
        check_range("num_threads", num_threads, ge=1, le=1024)
        check_range("chunk_size", chunk_size, ge=1, le=1_000_000)
        keep_freed_memory()
        self.network, self.num_threads = network, num_threads
        self.network_seconds = 0.0
        """See :attr:`chess_snn.nets.evaluator.Evaluator.network_seconds`."""
        self._chunk_size = chunk_size
        self._counters_lock = threading.Lock()
        self._threads = single_torch_threads(num_threads, "evaluator")

    def evaluate(
        self, planes: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array
    ) -> Evaluation:
        """Evaluate ``planes`` uint64[B, P] with legal lists int16[B, M] and counts int32[B].

        A row's answer is the same to the bit whatever rows come with it.
        """
        num_columns = int(num_legal.max(initial=0))
        in_use = legal_actions[:, :num_columns]
        legal_logits = np.full(legal_actions.shape, -np.inf, dtype=np.float32)
        value_stm = np.empty(len(planes), dtype=np.float32)
        wdl_stm = np.empty((len(planes), num_wdl(self.network.spec)), dtype=np.float32)

        def answer(rows: slice) -> None:
            # Time of this thread alone, which may lose its core to others meanwhile.
            start = time.thread_time()
            legal_logits[rows, :num_columns], value_stm[rows], wdl_stm[rows] = self._answer(
                planes[rows], in_use[rows], num_legal[rows]
            )
            with self._counters_lock:
                self.network_seconds += (time.thread_time() - start) / self.num_threads

        # list: wait for all, and raise what a thread raised.
        list(self._threads.map(answer, self._chunks(len(planes))))
        return Evaluation(legal_logits, value_stm, wdl_stm)

    def close(self) -> None:
        """End the threads; the evaluator cannot be used afterwards."""
        self._threads.shutdown()

    def _chunks(self, num_rows: int) -> Iterator[slice]:
        """Equal shares of the rows for every thread, in as few rounds as the chunk size allows."""
        rounds = -(-num_rows // (self._chunk_size * self.num_threads))
        size = -(-num_rows // max(1, rounds * self.num_threads))
        for lo in range(0, num_rows, max(1, size)):
            yield slice(lo, min(lo + size, num_rows))

    @torch.inference_mode()
    def _answer(
        self, planes: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array
    ) -> tuple[Float32Array, Float32Array, Float32Array]:
        """Legal logits float32[B, L], values float32[B] and WDL float32[B, X] of one chunk."""
        num_rows = len(planes)
        seen = planes.view(np.int64)[:, : self.network.num_planes]
        multiple = self.network.rows_multiple
        words_BP = _tensor(_pad(seen, -(-num_rows // multiple) * multiple))
        spec = self.network.spec
        logits_BL, value_logits_BV = self.network.answer(
            expand_planes(words_BP, spec.board_shape, self.network.input_dtype),
            _tensor(legal_actions), _tensor(num_legal),
        )
        wdl_BX, value_B = read_value(spec, value_logits_BV)
        return logits_BL.numpy(), value_B.numpy(), wdl_BX.numpy()


def _pad(array: np.ndarray, num_rows: int) -> np.ndarray:
    if len(array) == num_rows:
        return array
    padded = np.zeros((num_rows, *array.shape[1:]), dtype=array.dtype)
    padded[: len(array)] = array
    return padded


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))


@cache
def keep_freed_memory() -> bool:
    """Set it once a process; whether this system has it (Linux with glibc)."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    wanted = (
        (_M_TRIM_THRESHOLD, _KEEP_BYTES),
        (_M_TOP_PAD, _GROW_BYTES),
        (_M_MMAP_THRESHOLD, _LARGEST_HEAP_BLOCK_BYTES),
    )
    accepted = [mallopt(name, value) for name, value in wanted]
    return all(accepted)
