"""One size of batch: memory that never moves, and the work on it as one captured graph.

Copies to the device, the network and the copies back are one CUDA graph, so that a batch of any
network costs the host one launch. On a CPU the same work runs as it stands, which is what the tests
of everything but the capture itself rely on.

Dimensions: B rows of the bucket, n of them in use, P bitplanes, L columns of the bucket, X columns
for win, draw and loss: 3 or 0.
"""

import threading
from typing import Any

import numpy as np
import torch
from torch import Tensor

from chess_snn.nets.evaluator import Evaluation
from chess_snn.nets.inference import InferenceNetwork
from chess_snn.nets.planes import expand_planes
from chess_snn.nets.values import num_wdl, read_value
from chess_snn.types import Int16Array, Int32Array, UInt64Array

_WARM_UP_RUNS = 3
"""Before the capture: kernels are compiled, and libraries choose theirs."""

_capturing = threading.Lock()
"""One capture at a time in a process."""


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
        """Views of the answer for n rows with so many columns, until the next start."""
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
