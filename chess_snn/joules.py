"""Joules by the counters of this machine: NVML's and ROCm's of GPUs, RAPL's of processors.

zeus reads them, the extra ``energy``; it follows counters that wrap. They belong to the whole
machine: what else runs is in them, and a virtual machine often has none.
"""

import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

from chess_snn.extras import load_extra

_MODULE: Final = "zeus"
_LEAST_S: Final = 1.0
"""Seconds in which a counter moves, if it does at all."""


@dataclass(frozen=True, slots=True)
class Joules:
    """Energy of a span of time; None where no counter measured it."""

    gpus: float | None
    processors: float | None
    """Packages, and the memory beside them where it has a counter."""
    seconds: float
    note: str = ""
    """Why nothing was measured, or not all of it."""

    @property
    def total(self) -> float | None:
        """The sum of what was measured."""
        parts = [part for part in (self.gpus, self.processors) if part is not None]
        return sum(parts) if parts else None

    @property
    def counters(self) -> str:
        """The counters that were read, for people."""
        kinds = {"GPUs": self.gpus, "processors": self.processors}
        return " and ".join(name for name, joules in kinds.items() if joules is not None)


class EnergyCounters:
    """Counters that were opened once and are read at the end of each lap."""

    def __init__(self) -> None:
        """Begin the first lap.

        Raises:
            ExtraError: the extra ``energy`` is not installed.
        """
        self._gpus = _open_gpus()
        self._processors, self._note = _open_processors()
        self._last = self._read()

    def lap(self) -> Joules:
        """Return what was used since the last lap, or since the beginning, and begin another."""
        last, now = self._last, self._read()
        self._last = now
        gpus, processors = _less(now.gpus, last.gpus), _less(now.processors, last.processors)
        seconds, note = now.seconds - last.seconds, self._note
        if seconds > _LEAST_S and 0 in (gpus, processors):
            gpus, processors = gpus or None, processors or None
            note = f"a counter stood still for {seconds:,.0f} s"
        if gpus is None and processors is None:
            note = note or "no counter on this machine"
        return Joules(gpus, processors, seconds, note)

    def _read(self) -> Joules:
        """Read the counters, in joules, and the clock."""
        gpus = [self._gpus.get_total_energy_consumption(place) for place in range(len(self._gpus))]
        found = [
            self._processors.get_total_energy_consumption(place)
            for place in range(len(self._processors))
        ]
        processors = [processor.cpu_mj + (processor.dram_mj or 0.0) for processor in found]
        return Joules(
            sum(gpus) / 1e3 if gpus else None, sum(processors) / 1e3 if processors else None,
            time.monotonic(),
        )


def _less(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before


def counters_if_installed() -> EnergyCounters | None:
    """Open the counters; None without the extra ``energy``."""
    return EnergyCounters() if find_spec(_MODULE) else None


def _open_gpus() -> Any:
    """The GPUs of zeus; none if one of them has no counter."""
    gpus = load_extra("zeus.device.gpu", "energy")
    try:
        found = gpus.get_gpus()
    except gpus.ZeusGPUInitError:
        return ()
    return found if all(map(found.supports_get_total_energy_consumption, range(len(found)))) else ()


def _open_processors() -> tuple[Any, str]:
    """The processors of zeus, and why they have no counter that can be read."""
    cpus = load_extra("zeus.device.cpu", "energy")
    common = load_extra("zeus.device.cpu.common", "energy")
    try:
        return cpus.get_cpus(), ""
    except common.ZeusCPUNoPermissionError:
        return (), (
            "the processor's counter needs privileges: let this user read "
            "/sys/class/powercap/intel-rapl*/energy_uj"
        )
    except common.ZeusCPUInitError:
        return (), ""
