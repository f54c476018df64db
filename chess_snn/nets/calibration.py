"""How many positions a chunk on the CPU should have: measured once a machine and network.

A chunk that leaves the cache costs time, and so does a small one; where that happens depends on the
processor and on the network's channels and ticks. Answers do not depend on it. What was measured
is kept in the cache folder (:func:`chess_snn.jit.cache_root`), and may be deleted.
"""

import json
import os
import platform
import statistics
import time
from pathlib import Path
from typing import Final

import torch

from chess_snn.jit import cache_root
from chess_snn.nets.config import NetConfig
from chess_snn.nets.inference import InferenceNetwork, Precision
from chess_snn.nets.planes import expand_planes

CHUNK_SIZES: Final = (32, 64, 128, 256)
_DEFAULT: Final = 64
_DEFAULT_NARROW: Final = 128
_NARROW_CHANNELS: Final = 32
_ROUNDS: Final = 5
_CPU_INFO: Final = Path("/proc/cpuinfo")


def chunk_size_for(config: NetConfig, precision: Precision) -> int:
    """What was measured on this machine; without that, what is right on most."""
    measured = _read().get(_key(config, precision))
    if isinstance(measured, int) and measured in CHUNK_SIZES:
        return measured
    return _DEFAULT_NARROW if config.channels <= _NARROW_CHANNELS else _DEFAULT


def is_calibrated(config: NetConfig, precision: Precision) -> bool:
    """Whether this machine has measured a network of this shape."""
    return _key(config, precision) in _read()


def calibrate(network: InferenceNetwork) -> int:
    """Measure ``network`` on one core in chunks of each size, and keep the fastest; some seconds.

    Returns:
        The size kept.
    """
    rates = _rates(network)
    fastest = max(rates, key=lambda size: rates[size])
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    kept = _read() | {_key(network.config, network.precision): fastest}
    temporary.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    temporary.replace(path)
    return fastest


@torch.inference_mode()
def _rates(network: InferenceNetwork) -> dict[int, float]:
    """Positions/s of each size: the median of turns, so that all meet what else is going on."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        spec = network.spec
        words_BP = torch.randint(2**62, (max(CHUNK_SIZES), spec.num_planes))
        planes = {
            size: expand_planes(words_BP[:size], spec.board_shape, network.input_dtype)
            for size in CHUNK_SIZES
        }
        turns: dict[int, list[float]] = {size: [] for size in CHUNK_SIZES}
        for turn in range(_ROUNDS + 1):
            for size in CHUNK_SIZES:
                start = time.perf_counter()
                for _ in range(max(CHUNK_SIZES) // size):
                    network(planes[size])
                if turn:  # the first compiles
                    turns[size].append(max(CHUNK_SIZES) / (time.perf_counter() - start))
    finally:
        torch.set_num_threads(threads)
    return {size: statistics.median(rates) for size, rates in turns.items()}


def _key(config: NetConfig, precision: Precision) -> str:
    shape = f"{config.blocks}x{config.channels} T{config.ticks} {config.activation} {precision}"
    return f"{_processor()}, torch {torch.__version__}, {shape}"


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
