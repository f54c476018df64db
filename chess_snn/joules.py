"""Joules by the counters of this machine: NVML's and ROCm's of GPUs, RAPL's of processors.

zeus reads them, the extra ``energy``; it follows counters that wrap. They belong to the whole
machine: what else runs is in them, and a virtual machine often has none.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from chess_snn.extras import load_extra

_MODULE: Final = "zeus"
_WINDOW: Final = "lap"
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
        self._monitor = load_extra("zeus.monitor", "energy").ZeusMonitor()
        self._note = "" if self._monitor.cpu_indices else _why_no_processor()
        self._begin()

    def lap(self) -> Joules:
        """Return what was used since the last lap, or since the beginning, and begin another."""
        found = self._monitor.end_window(_WINDOW, sync_execution=False)
        self._begin()
        gpus = sum(found.gpu_energy.values()) if found.gpu_energy else None
        parts = [part for part in (found.cpu_energy, found.dram_energy) if part]
        processors = sum(sum(part.values()) for part in parts) if parts else None
        note = self._note
        if found.time > _LEAST_S and 0 in (gpus, processors):
            gpus, processors = gpus or None, processors or None
            note = f"a counter stood still for {found.time:,.0f} s"
        if gpus is None and processors is None:
            note = note or "no counter on this machine"
        return Joules(gpus, processors, found.time, note)

    def _begin(self) -> None:
        self._monitor.begin_window(_WINDOW, sync_execution=False)


def counters_if_installed() -> EnergyCounters | None:
    """Open the counters; None without the extra ``energy``."""
    return EnergyCounters() if find_spec(_MODULE) else None


def _why_no_processor() -> str:
    """The error of the counter that may not be read; empty where there is none."""
    cpus = load_extra("zeus.device.cpu", "energy")
    common = load_extra("zeus.device.cpu.common", "energy")
    try:
        cpus.get_cpus()
    except common.ZeusCPUNoPermissionError:
        return (
            "the processor's counter needs privileges: let this user read "
            "/sys/class/powercap/intel-rapl*/energy_uj"
        )
    except common.ZeusCPUInitError:
        pass  # there is none
    return ""
