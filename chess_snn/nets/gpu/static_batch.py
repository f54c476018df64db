"""Batches of fixed size in fixed memory, so that their work can be one CUDA graph.

Copies to the device, the network and the copies back are one graph: a batch of any network costs
the host one launch. On a CPU the same work runs as it stands, which is what the tests of everything
but the capture itself rely on.

Dimensions: B positions (rows of the bucket), n of them in use, P bitplanes, L columns for legal
actions, X columns for win, draw and loss: 3 or 0.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from chess_snn.nets.evaluator import Evaluation
from chess_snn.nets.inference import InferenceNetwork
from chess_snn.nets.model.planes import expand_planes
from chess_snn.nets.model.values import num_wdl, read_value
from chess_snn.types import Int16Array, Int32Array, UInt64Array

_WARM_UP_RUNS = 3
"""Before the capture: kernels are compiled, and libraries choose theirs."""

capture_lock: Final = threading.Lock()
"""A process captures one graph at a time, of play or of training."""
ROW_SIZES: Final = (64, 128, 256, 512, 1024, 2048, 4096)
"""Positions of a batch; less than half of one is padding, if it has more than 64."""
COLUMN_SIZES: Final = (128,)
"""Legal actions of a position; nearly all of chess has fewer. The game's own limit comes behind."""


@contextmanager
def deterministic_cudnn() -> Iterator[None]:
    """Let cuDNN give the same answer every time; one thread at a time, as its flags are global."""
    with capture_lock, torch.backends.cudnn.flags(
        enabled=True, deterministic=True, allow_tf32=False
    ):
        yield


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

        self._words_BP = host_memory(num_rows, network.num_planes, dtype=torch.int64)
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
        words_BP = self._words_BP.numpy()
        seen = planes[:, : words_BP.shape[1]]
        words_BP[:num_rows, : seen.shape[1]] = seen.view(np.int64)
        self._legal_actions_BL.numpy()[:num_rows, :num_columns] = legal_actions
        counts = self._num_legal_B.numpy()
        counts[:num_rows] = num_legal
        # Padding keeps the planes of an earlier batch, and asks for nothing.
        counts[num_rows:] = 0

    def start(self) -> None:
        """Put the work on the current stream."""
        if self._graph is not None:
            self._graph.replay()
            return
        with deterministic_cudnn():
            self._work()

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
        with deterministic_cudnn(), torch.cuda.stream(stream):
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
