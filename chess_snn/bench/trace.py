"""What a device did, read from a trace that torch's profiler exported.

Kernels and copies have a beginning and an end on the device's own clock. The device is busy while
at least one runs; the rest is waiting for the host.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_DEVICE_WORK: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
"""Categories of the trace that are work of a GPU."""
_ROW_HEIGHT, _WIDTH, _LEFT = 28, 1000, 90
_COLOURS: Final = {
    "neurons": "#d1495b", "convolutions": "#30638e", "copies": "#edae49", "others": "#9aa5b1",
}


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """One kernel or copy."""

    name: str
    stream: str
    start_us: float
    end_us: float

    @property
    def us(self) -> float:
        """How long it took."""
        return self.end_us - self.start_us


def read_trace(path: Path) -> list[DeviceWork]:
    """What the device did in the trace at ``path``, by its beginning; copies are named so."""
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    works = [
        DeviceWork(
            event["name"], str(event.get("tid", "")), event["ts"], event["ts"] + event["dur"]
        )
        for event in events
        if event.get("ph") == "X" and event.get("cat") in _DEVICE_WORK
    ]
    return sorted(works, key=lambda work: work.start_us)


def busy_us(works: Iterable[DeviceWork]) -> float:
    """Microseconds in which at least one of ``works`` ran; they come by their beginning."""
    total, until = 0.0, float("-inf")
    for work in works:
        total += max(0.0, work.end_us - max(work.start_us, until))
        until = max(until, work.end_us)
    return total


def busy_share(works: list[DeviceWork]) -> float:
    """Share of the time from the first beginning to the last end in which the device was busy."""
    if not works:
        return 0.0
    return busy_us(works) / (max(work.end_us for work in works) - works[0].start_us)


def kind_of(name: str, neuron_kernels: frozenset[str]) -> str:
    """Which kind of work a kernel's ``name`` stands for: a key of the colours of the picture."""
    lower = name.lower()
    if name in neuron_kernels:
        return "neurons"
    if lower.startswith(("memcpy", "memset")):
        return "copies"
    if any(part in lower for part in ("conv", "gemm", "cutlass", "xmma", "wgrad", "dgrad")):
        return "convolutions"
    return "others"


def shares_by_kind(
    works: Iterable[DeviceWork], neuron_kernels: frozenset[str]
) -> Mapping[str, float]:
    """Of all device time, what each kind of work took; sums to 1."""
    spent: dict[str, float] = defaultdict(float)
    for work in works:
        spent[kind_of(work.name, neuron_kernels)] += work.us
    total = sum(spent.values()) or 1.0
    return {kind: us / total for kind, us in sorted(spent.items(), key=lambda item: -item[1])}


def longest_kernels(works: Iterable[DeviceWork], count: int) -> list[tuple[str, float, int]]:
    """The ``count`` names that took most, each with its share of device time and its calls."""
    spent: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    for work in works:
        spent[work.name] += work.us
        calls[work.name] += 1
    total = sum(spent.values()) or 1.0
    longest = sorted(spent, key=lambda name: -spent[name])[:count]
    return [(name, spent[name] / total, calls[name]) for name in longest]


def timeline_svg(
    works: list[DeviceWork], neuron_kernels: frozenset[str], first_us: float, length_us: float
) -> str:
    """A picture of ``length_us`` microseconds of the trace: a row a stream, a bar a kernel.

    Args:
        works: of :func:`read_trace`.
        neuron_kernels: names of the kernels that are neurons.
        first_us: where the picture begins, after the beginning of the trace.
        length_us: what it shows.
    """
    begin = (works[0].start_us if works else 0.0) + first_us
    seen = [w for w in works if w.end_us > begin and w.start_us < begin + length_us]
    streams = sorted({work.stream for work in seen})
    scale = _WIDTH / length_us
    height = _ROW_HEIGHT * (len(streams) + 1) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH + _LEFT + 10}" '
        f'height="{height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for row, stream in enumerate(streams):
        top = 5 + row * _ROW_HEIGHT
        parts.append(f'<text x="5" y="{top + 16}">stream {stream}</text>')
        for work in seen:
            if work.stream != stream:
                continue
            left = max(0.0, work.start_us - begin) * scale
            width = min(length_us, work.end_us - begin) * scale - left
            colour = _COLOURS[kind_of(work.name, neuron_kernels)]
            parts.append(
                f'<rect x="{_LEFT + left:.2f}" y="{top}" width="{max(width, 0.2):.2f}" '
                f'height="{_ROW_HEIGHT - 6}" fill="{colour}"/>'
            )
    for index, (kind, colour) in enumerate(_COLOURS.items()):
        left, top = _LEFT + 150 * index, height - 18
        parts.append(f'<rect x="{left}" y="{top}" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{left + 18}" y="{top + 11}">{kind}</text>')
    parts.append(
        f'<text x="{_LEFT + _WIDTH}" y="{height - 7}" text-anchor="end">'
        f"{length_us:g} µs in all</text></svg>"
    )
    return "\n".join(parts) + "\n"
