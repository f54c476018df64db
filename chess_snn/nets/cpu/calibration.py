"""How many positions a CPU best evaluates at once: measured once a machine and network.

A chunk of positions that leaves the cache costs time, and so does a small one; where that happens
depends on the processor and on the network's channels and ticks. Answers do not depend on it. What
was measured is kept in the cache folder (:func:`chess_snn.caches.cache_root`), and may be deleted.

The number of threads is not measured: it is the number of cores. A measurement beside other work
found one thread to be as fast as two, and kept self-play on one worker from then on.
"""

import json
import math
import os
import platform
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import torch

from chess_snn.caches import cache_root
from chess_snn.cores import num_cores
from chess_snn.games.base import GameSpec
from chess_snn.nets.cpu.trunk_cpu import can_compile_trunk
from chess_snn.nets.eight_bits import eight_bit_config
from chess_snn.nets.inference import InferenceNetwork
from chess_snn.nets.model.config import NetConfig, Precision
from chess_snn.nets.model.planes import expand_planes

_CHUNK_SQUARES: Final = (2048, 4096, 8192, 16384)
_DEFAULT_SQUARES: Final = 4096
_DEFAULT_SQUARES_NARROW: Final = 8192
_NARROW_CHANNELS: Final = 32
_ROUNDS: Final = 5
_USUAL_NUM_LEGAL: Final = 32
_CPU_INFO: Final = Path("/proc/cpuinfo")


def chunk_sizes(spec: GameSpec) -> tuple[int, ...]:
    """Positions of a chunk that are tried, rising: as many more as the game's board is smaller."""
    return tuple(squares // math.prod(spec.board_shape) for squares in _CHUNK_SQUARES)


def chunk_size_for(spec: GameSpec, config: NetConfig, precision: Precision) -> int:
    """Positions of a chunk as measured on this machine; without that, what is right on most."""
    measured = _measured(spec, config, precision)
    if measured is not None:
        return measured
    narrow = config.channels <= _NARROW_CHANNELS
    squares = _DEFAULT_SQUARES_NARROW if narrow else _DEFAULT_SQUARES
    return squares // math.prod(spec.board_shape)


def is_calibrated(spec: GameSpec, config: NetConfig, precision: Precision) -> bool:
    """Whether this machine has measured a network of this shape."""
    return _measured(spec, config, precision) is not None


def calibrate(network: InferenceNetwork) -> int:
    """Measure ``network`` in chunks of each size on one core; some seconds.

    Returns:
        The fastest size, which is kept.
    """
    chunk_size = _fastest_chunk_size(network)
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    kept = _read() | {_key(network.spec, network.config, network.precision): chunk_size}
    temporary.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    temporary.replace(path)
    return chunk_size


def _fastest_chunk_size(network: InferenceNetwork) -> int:
    sizes = chunk_sizes(network.spec)
    rates: dict[int, list[float]] = {size: [] for size in sizes}
    with single_torch_threads(1, "calibration") as thread:
        # Sizes take turns, so that all meet what else is going on; the first turn compiles.
        for turn in range(_ROUNDS + 1):
            for size in sizes:
                rate = _rate(network, size, max(sizes) // size, thread)
                if turn:
                    rates[size].append(rate)
    return max(sizes, key=lambda size: statistics.median(rates[size]))


def _rate(
    network: InferenceNetwork, chunk_size: int, num_calls: int, thread: ThreadPoolExecutor
) -> float:
    """Positions/s of one thread that evaluates ``num_calls`` chunks."""
    spec = network.spec
    words_BP = torch.randint(2**62, (chunk_size, network.num_planes))
    num_legal = min(_USUAL_NUM_LEGAL, spec.num_actions)
    legal_actions_BL = torch.randint(spec.num_actions, (chunk_size, num_legal))
    num_legal_B = torch.full((chunk_size,), num_legal)

    @torch.inference_mode()
    def ask() -> None:
        for _ in range(num_calls):
            planes_BPHW = expand_planes(words_BP, spec.board_shape, network.input_dtype)
            network.answer(planes_BPHW, legal_actions_BL, num_legal_B)

    start = time.perf_counter()
    thread.submit(ask).result()
    return num_calls * chunk_size / (time.perf_counter() - start)


def _measured(spec: GameSpec, config: NetConfig, precision: Precision) -> int | None:
    """The size that :func:`calibrate` kept, or None if it tries no such size."""
    kept = _read().get(_key(spec, config, precision))
    return kept if isinstance(kept, int) and kept in chunk_sizes(spec) else None


def _key(spec: GameSpec, config: NetConfig, precision: Precision) -> str:
    if precision == "int8":
        config = eight_bit_config(config)
    board = "x".join(map(str, spec.board_shape))
    neurons = f"ilif{config.levels}" if config.activation == "ilif" else config.activation
    shape = f"{config.blocks}x{config.channels} T{config.ticks} {neurons} {precision}"
    is_compiled = precision == "int8" and can_compile_trunk(spec, config)
    shape = f"board {board}, {shape}{', compiled' if is_compiled else ''}"
    return f"{_processor()}, {num_cores()} cores, torch {torch.__version__}, {shape}"


def _processor() -> str:
    if _CPU_INFO.exists():
        for line in _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _path() -> Path:
    return cache_root() / "calibration.json"


def _read() -> dict[str, object]:
    """Read the stored measurements; none if they are missing or damaged: they can be repeated."""
    try:
        kept = json.loads(_path().read_bytes())
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def single_torch_threads(num_threads: int, name: str) -> ThreadPoolExecutor:
    """A pool of ``num_threads`` threads called ``name``; what torch does elsewhere stays the same.

    torch keeps its number of threads for each thread, but remembers the last one set for threads to
    come. So all are started here, and what the caller's threads will see is set back.
    """
    before = torch.get_num_threads()
    threads = ThreadPoolExecutor(
        num_threads, thread_name_prefix=name, initializer=_use_one_torch_thread
    )
    all_started = threading.Barrier(num_threads)
    list(threads.map(lambda _: all_started.wait(), range(num_threads)))
    torch.set_num_threads(before)
    return threads


def _use_one_torch_thread() -> None:
    torch.set_num_threads(1)
    # A thread that has not asked yet takes the remembered number when it first does: ask now.
    torch.get_num_threads()
