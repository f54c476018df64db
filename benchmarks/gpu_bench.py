"""The device that the parts of the GPU benchmark measure: how to time it and what it did when."""

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch

from benchmarks.harness import QUICK, Pace, Report, Work, rates_in_turn

NEURON_KERNELS: Final = frozenset(
    {"fire", "add_and_fire", "mean_rate", "fire_and_keep_charge", "backward",
     "sum_branch", "find_moments", "normalise_and_fire", "sum_gradients", "differentiate"}
)
"""Kernels that neurons have to themselves, or share with a normalisation."""
_PACE: Final = Pace(rounds=5, turn_s=0.05)
_DEVICE_WORK: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
"""Categories of a torch trace that are work of a GPU."""


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """One kernel or copy in a trace."""

    name: str
    start_us: float
    end_us: float


class GpuBench:
    """One device, and the report that figures of it go to."""

    def __init__(
        self, report: Report, device: torch.device, quick: bool, traces: Path | None
    ) -> None:
        self.report, self.device, self.quick, self.traces = report, device, quick, traces
        self.on_gpu = device.type == "cuda"
        self._peaks: tuple[float, float] | None = None

    @property
    def peaks(self) -> tuple[float, float]:
        """Operations/s of a product of matrices in bf16 and bytes/s of a copy, measured once."""
        if self._peaks is None:
            side, size = (256, 1 << 22) if self.quick else (8192, 1 << 31)
            left, right = self.randn(side, side), self.randn(side, side)
            flops = 2 * side**3 * self.rate(lambda: torch.mm(left, right))
            source = torch.randn(size // 4, device=self.device)
            target = torch.empty_like(source)
            bytes_per_s = 2 * size * self.rate(lambda: target.copy_(source))
            self._peaks = flops, bytes_per_s
            self.report.add("matrix product, bf16", flops / 1e12, "TFLOP/s")
            self.report.add("copy within the device", bytes_per_s / 1e9, "GB/s")
        return self._peaks

    def traced(
        self, name: str, call: Callable[[], object], times: int = 1
    ) -> list[DeviceWork]:
        """The device's work in ``times`` calls; the trace stays if the user named a folder."""
        with tempfile.TemporaryDirectory() as scratch:
            folder = self.traces or Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{name}.trace.json"
            activities = [torch.profiler.ProfilerActivity.CUDA]
            with torch.profiler.profile(activities=activities) as profile:
                for _ in range(times):
                    call()
                self.wait()
            profile.export_chrome_trace(str(path))
            return read_trace(path)

    def rate(self, call: Callable[[], object]) -> float:
        """Calls a second, until the device has finished them."""
        return rates_in_turn({0: Work(call)}, QUICK if self.quick else _PACE, self.wait)[0]

    def wait(self) -> None:
        """Wait for the device."""
        if self.on_gpu:
            torch.cuda.synchronize(self.device)

    def randn(self, *shape: int) -> torch.Tensor:
        """Random numbers on the device, bfloat16; zeros would be computed faster."""
        return torch.randn(shape, device=self.device).to(torch.bfloat16)

    def images(self, ticks: int, rows: int, channels: int) -> torch.Tensor:
        """Random currents [T, B, C, 8, 8] in channels-last memory."""
        folded = self.randn(ticks * rows, channels, 8, 8)
        folded = folded.contiguous(memory_format=torch.channels_last)
        return folded.view(ticks, rows, channels, 8, 8)


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


def add_kernels(report: Report, name: str, works: Sequence[DeviceWork]) -> None:
    """Add the neurons' share of device time, and a note for each of the longest kernels."""
    spent: defaultdict[str, float] = defaultdict(float)
    for work in works:
        spent[work.name] += work.end_us - work.start_us
    total = sum(spent.values()) or 1.0
    neurons = sum(us for kernel, us in spent.items() if kernel in NEURON_KERNELS)
    report.add(name, neurons / total, "share")
    for kernel, us in sorted(spent.items(), key=lambda item: -item[1])[:8]:
        report.note(f"{us / total:6.1%}  {kernel[:90]}")
