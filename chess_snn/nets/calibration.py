"""How a network is best run on this machine's CPU: measured once a machine and network.

A chunk of positions that leaves the cache costs time, and so does a small one; where that happens
depends on the processor and on the network's channels and ticks. As many threads as cores are the
fastest where each has a core of its own; where two share one, half as many may do as much. Answers
depend on neither. What was measured is kept in the cache folder
(:func:`chess_snn.caches.cache_root`), and may be deleted.
"""

import itertools
import json
import math
import os
import platform
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

import torch

from chess_snn.caches import cache_root
from chess_snn.cores import num_cores
from chess_snn.games.base import GameSpec
from chess_snn.nets.config import NetConfig
from chess_snn.nets.inference import InferenceNetwork, Precision
from chess_snn.nets.planes import expand_planes

_CHUNK_SQUARES: Final = (2048, 4096, 8192, 16384)
_DEFAULT_SQUARES: Final = 4096
_DEFAULT_SQUARES_NARROW: Final = 8192
_NARROW_CHANNELS: Final = 32
_ROUNDS: Final = 5
_USUAL_NUM_LEGAL: Final = 32
_WORTH_A_THREAD: Final = 1.03
"""Twice the threads are used if they are faster by at least this factor."""
_CPU_INFO: Final = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Calibration:
    """How to run one network on one machine."""

    chunk_size: int
    """Positions of a chunk, one of :func:`chunk_sizes`."""
    num_threads: int
    """Threads that evaluate chunks side by side, in [1, cores]."""

    @classmethod
    def from_json(cls, kept: object, spec: GameSpec) -> Self | None:
        """What :func:`calibrate` kept, or None if it is not a calibration of this machine."""
        if not isinstance(kept, dict) or kept.keys() != {"chunk_size", "num_threads"}:
            return None
        chunk_size, num_threads = kept["chunk_size"], kept["num_threads"]
        if chunk_size not in chunk_sizes(spec) or num_threads not in range(1, num_cores() + 1):
            return None
        return cls(chunk_size, num_threads)


def chunk_sizes(spec: GameSpec) -> tuple[int, ...]:
    """Positions of a chunk that are tried, rising: as many more as the game's board is smaller."""
    return tuple(squares // math.prod(spec.board_shape) for squares in _CHUNK_SQUARES)


def calibration_for(spec: GameSpec, config: NetConfig, precision: Precision) -> Calibration:
    """What was measured on this machine; without that, what is right on most."""
    measured = _measured(spec, config, precision)
    if measured is not None:
        return measured
    narrow = config.channels <= _NARROW_CHANNELS
    squares = _DEFAULT_SQUARES_NARROW if narrow else _DEFAULT_SQUARES
    return Calibration(squares // math.prod(spec.board_shape), num_cores())


def is_calibrated(spec: GameSpec, config: NetConfig, precision: Precision) -> bool:
    """Whether this machine has measured a network of this shape."""
    return _measured(spec, config, precision) is not None


def calibrate(network: InferenceNetwork) -> Calibration:
    """Measure ``network`` in chunks of each size on one core, then in threads; some seconds.

    Returns:
        The fastest, which is kept.
    """
    chunk_size = _fastest_chunk_size(network)
    fastest = Calibration(chunk_size, _fastest_thread_count(network, chunk_size))
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    kept = _read() | {
        _key(network.spec, network.config, network.precision): asdict(fastest)
    }
    temporary.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    temporary.replace(path)
    return fastest


def _fastest_chunk_size(network: InferenceNetwork) -> int:
    sizes = chunk_sizes(network.spec)
    rates: dict[int, list[float]] = {size: [] for size in sizes}
    with single_torch_threads(1, "calibration") as thread:
        # Sizes take turns, so that all meet what else is going on; the first turn compiles.
        for turn in range(_ROUNDS + 1):
            for size in sizes:
                rate = _rate(network, size, max(sizes) // size, thread, 1)
                if turn:
                    rates[size].append(rate)
    return max(sizes, key=lambda size: statistics.median(rates[size]))


def _fastest_thread_count(network: InferenceNetwork, chunk_size: int) -> int:
    """All cores or, where the others add nothing, half of them, or a quarter, and so on."""
    counts = [num_cores()]
    while counts[-1] > 1:
        counts.append(counts[-1] // 2)
    rates: dict[int, list[float]] = {count: [] for count in counts}
    with single_torch_threads(counts[0], "calibration") as threads:
        for _ in range(_ROUNDS):
            for count in counts:
                rates[count].append(_rate(network, chunk_size, _ROUNDS, threads, count))
    for more, fewer in itertools.pairwise(counts):
        if statistics.median(rates[more]) > _WORTH_A_THREAD * statistics.median(rates[fewer]):
            return more
    return counts[-1]


def _rate(
    network: InferenceNetwork, chunk_size: int, num_calls: int, threads: ThreadPoolExecutor,
    count: int,
) -> float:
    """Positions/s of ``count`` threads that evaluate ``num_calls`` chunks each."""
    spec = network.spec
    words_BP = torch.randint(2**62, (chunk_size, spec.num_planes))
    num_legal = min(_USUAL_NUM_LEGAL, spec.num_actions)
    legal_actions_BL = torch.randint(spec.num_actions, (chunk_size, num_legal))
    num_legal_B = torch.full((chunk_size,), num_legal)

    @torch.inference_mode()
    def ask(_: int) -> None:
        for _ in range(num_calls):
            planes_BPHW = expand_planes(words_BP, spec.board_shape, network.input_dtype)
            network.answer(planes_BPHW, legal_actions_BL, num_legal_B)

    start = time.perf_counter()
    list(threads.map(ask, range(count)))
    return count * num_calls * chunk_size / (time.perf_counter() - start)


def _measured(spec: GameSpec, config: NetConfig, precision: Precision) -> Calibration | None:
    return Calibration.from_json(_read().get(_key(spec, config, precision)), spec)


def _key(spec: GameSpec, config: NetConfig, precision: Precision) -> str:
    board = "x".join(map(str, spec.board_shape))
    neurons = f"ilif{config.levels}" if config.activation == "ilif" else config.activation
    shape = f"{config.blocks}x{config.channels} T{config.ticks} {neurons} {precision}"
    shape = f"board {board}, {shape}"
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
    """What is kept; nothing where that is missing or damaged, since it can be measured again."""
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
