"""Whether a GPU computes: one matrix product and one Triton kernel; if not, why, and the fix."""

import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chess_snn.devices import Device, num_simulated_gpus
from chess_snn.later import torch
from chess_snn.nets.model.neuron import lif, lif_on_gpu

LEAVE_OUT: Final = "look at nvidia-smi; leave it out by --gpus or CUDA_VISIBLE_DEVICES"
_NO_DRIVER_FOR_IT: Final = "update the NVIDIA driver, or install a torch for an older CUDA"
_COMPILER: Final = "install gcc and libc6-dev, or name another compiler in CC"
_REMEDIES: Final = (
    ("Failed to find C compiler", f"Triton needs one: {_COMPILER}"),
    ("libcuda.so", "run ldconfig as root; start a container with --gpus all"),
    ("driver on your system is too old", _NO_DRIVER_FOR_IT),
    ("unsupported toolchain", _NO_DRIVER_FOR_IT),
    ("no kernel image", "install a torch that is built for this GPU"),
    ("out of memory", "end the processes that hold its memory, which nvidia-smi lists, or leave "
     "it out by --gpus or CUDA_VISIBLE_DEVICES"),
    ("busy or unavailable", "another process has it alone: end that, or allow several by "
     "nvidia-smi --compute-mode 0"),
    ("not yet initialized", "start nvidia-fabricmanager, which connects the GPUs of this machine"),
    ("CUDA error", LEAVE_OUT),
)
"""Advice by a part of the message of torch, Triton or CUDA."""


@dataclass(frozen=True, slots=True)
class GpuFault:
    """Why a GPU cannot be used."""

    fact: str
    """One line."""
    remedy: str
    """Advice; empty for an error that is not known to be a GPU's."""

    def __str__(self) -> str:
        """Both, in one line."""
        return f"{self.fact}; {self.remedy}" if self.remedy else self.fact


def explain(error: BaseException) -> GpuFault:
    """The fault that ``error``, of torch, Triton or a C compiler, tells of."""
    if isinstance(error, subprocess.CalledProcessError):  # of Triton's launcher
        if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
            return GpuFault(
                "Triton finds no Python.h", "install the headers of this Python: python3-dev"
            )
        return GpuFault(f"Triton's C compiler ended with {error.returncode}", _COMPILER)
    text = str(error).strip()
    fact = text.partition("\n")[0] or type(error).__name__
    for sign, remedy in _REMEDIES:
        if sign in text:
            return GpuFault(fact, remedy)
    if type(error).__module__.startswith("triton."):
        return GpuFault(
            f"Triton cannot compile a kernel: {fact}",
            "install the triton that this torch requires (pip check says which), and delete "
            "~/.triton/cache",
        )
    return GpuFault(fact, "")


def gpu_fault(device: str) -> GpuFault | None:
    """Why ``device``, as torch calls it, does not compute; None if it does."""
    try:
        ones = torch.ones(64, 64, device=device)
        currents = torch.linspace(-1.0, 2.0, 4 * 64).view(4, 64)
        spikes = lif_on_gpu()(currents.to(device), 0.5, 1.0, 2.0).cpu()
        computes = float((ones @ ones).sum()) == 64.0**3
    except Exception as error:  # noqa: BLE001 - compilers fail in many ways
        fault = explain(error)
        return GpuFault(fault.fact, fault.remedy or LEAVE_OUT)
    if not computes or not torch.equal(spikes, lif(currents, 0.5, 1.0)):
        return GpuFault("it computes wrongly", LEAVE_OUT)
    return None


def device_fault_of(device: Device) -> str:
    """Why this process, which sees no GPU but ``device``, cannot compute on it; empty if it can."""
    if not device.is_gpu:
        return ""
    if simulated := num_simulated_gpus():
        return "" if device.index < simulated else "it is not there any more"
    if not torch.cuda.device_count():
        return "it is not there any more"
    return str(gpu_fault("cuda") or "")
