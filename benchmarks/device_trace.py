"""What a GPU did and when, as torch's profiler writes it."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.report import Report

NEURON_KERNELS: Final = frozenset(
    {"fire", "add_and_fire", "mean_rate", "fire_and_keep_charge", "backward",
     "sum_branch", "find_moments", "normalise_and_fire", "sum_gradients", "differentiate"}
)
"""That neurons have to themselves, or share with a normalisation."""
_DEVICE_WORK: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
"""Categories of a torch trace that are work of a GPU."""


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """One kernel or copy in a trace."""

    name: str
    start_us: float
    end_us: float


def read_trace(path: Path) -> list[DeviceWork]:
    """The work of GPUs in a trace that torch's profiler exported, by its start."""
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    works = [
        DeviceWork(event["name"], event["ts"], event["ts"] + event["dur"])
        for event in events if event.get("ph") == "X" and event.get("cat") in _DEVICE_WORK
    ]
    return sorted(works, key=lambda work: work.start_us)


def busy_share(works: Sequence[DeviceWork]) -> float:
    """Share of the time from the first start to the last end in which the device worked."""
    if not works:
        return 0.0
    busy, until = 0.0, works[0].start_us
    for work in works:
        busy += max(0.0, work.end_us - max(work.start_us, until))
        until = max(until, work.end_us)
    return busy / (until - works[0].start_us)


def add_kernels(
    report: Report, name: str, works: Sequence[DeviceWork], *,
    predicted: float | None = None,
) -> None:
    """Add the neurons' share of device time, and a note for each of the longest kernels."""
    spent: defaultdict[str, float] = defaultdict(float)
    for work in works:
        spent[work.name] += work.end_us - work.start_us
    total = sum(spent.values()) or 1.0
    neurons = sum(us for kernel, us in spent.items() if kernel in NEURON_KERNELS)
    report.add(name, neurons / total, "share", predicted=predicted)
    for kernel, us in sorted(spent.items(), key=lambda item: -item[1])[:8]:
        report.note(f"{us / total:6.1%}  {kernel[:90]}")
