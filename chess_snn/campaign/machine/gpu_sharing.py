"""How many workers a GPU takes: measured once a kind of GPU and network, else by rule.

While one worker is in its trees, another can be in the network; beyond that they only queue. What
was measured is kept in the cache folder (:func:`chess_snn.caches.cache_root`), and may be deleted.
"""

import json
import os
from collections.abc import Callable, Sequence
from typing import Final

import torch

from chess_snn.caches import cache_root
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.devices import Device

MOST_A_GPU: Final = 4
WORTH_A_WORKER: Final = 1.05
"""One worker more on a GPU must do at least so many times as much to be taken."""

_USUAL: Final = 2
_LEAST_BYTES_EACH: Final = 4 * 2**30
"""Of the GPU's memory."""

Measure = Callable[[int], float]
"""Positions/s of all of so many workers on one GPU together."""


def workers_a_gpu(config: CampaignConfig, gpus: Sequence[Device], num_cores: int) -> int:
    """Workers on each of ``gpus``, in [1, ``MOST_A_GPU``].

    As measured; without that two, where each has a core and memory of the GPU.
    """
    most = most_a_gpu(gpus, num_cores)
    measured = _read().get(_key(config, gpus[0]))
    if isinstance(measured, int) and 1 <= measured <= MOST_A_GPU:
        return min(measured, most)
    return min(_USUAL, most)


def most_a_gpu(gpus: Sequence[Device], num_cores: int) -> int:
    """Workers on each of ``gpus`` that have a core and memory of the GPU to themselves, >= 1."""
    most = min(MOST_A_GPU, num_cores // len(gpus))
    smallest = min(gpu.memory_bytes for gpu in gpus)
    if smallest:  # simulated ones have none
        most = min(most, smallest // _LEAST_BYTES_EACH)
    return max(1, most)


def is_measured(config: CampaignConfig, gpu: Device) -> bool:
    """Whether this machine has tried how many workers of ``config`` such a GPU takes."""
    return _key(config, gpu) in _read()


def measure_sharing(config: CampaignConfig, gpu: Device, most: int, measure: Measure) -> int:
    """Try one worker on ``gpu``, then two, and so on while it pays; keep how many were best.

    Args:
        config: of the campaign.
        gpu: the device that ``measure`` uses.
        most: as :func:`most_a_gpu`.
        measure: plays for a moment.
    """
    count, pace = 1, measure(1)
    while count < most:
        more = measure(count + 1)
        if more < WORTH_A_WORKER * pace:
            break
        count, pace = count + 1, more
    _keep(_key(config, gpu), count)
    return count


def _key(config: CampaignConfig, gpu: Device) -> str:
    shape, search = config.net.network(), config.search
    return (
        f"{gpu.model}, torch {torch.__version__}, {shape.blocks}x{shape.channels} T{shape.ticks} "
        f"{shape.activation} {config.net.precision}, {search.kind} {search.simulations_last}, "
        f"{config.self_play.concurrent_games} games"
    )


def _keep(key: str, count: int) -> None:
    path = cache_root() / "gpu-sharing.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    kept = json.dumps(_read() | {key: count}, indent=2, sort_keys=True) + "\n"
    temporary.write_text(kept, encoding="utf-8")
    temporary.replace(path)


def _read() -> dict[str, object]:
    """What is kept; nothing where that is missing or damaged, since it can be measured again."""
    try:
        kept = json.loads((cache_root() / "gpu-sharing.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}
