"""Devices that networks may run on: the GPUs that a program may see, or the processor."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from chess_snn.errors import ConfigError
from chess_snn.later import torch
from chess_snn.settings import check_range

DeviceChoice = Literal["auto", "cpu", "cuda"]
Backend = Literal["auto", "nccl", "gloo"]
"""Library of ranks for exchange; ``auto`` is NCCL if each has a GPU of its own, else gloo."""

VISIBLE_GPUS: Final = "CUDA_VISIBLE_DEVICES"
"""Names the GPUs that CUDA lets a program see, by number or by identifier."""

SIMULATED_GPUS: Final = "CHESS_SNN_SIMULATED_GPUS"
"""Number of devices dealt out like GPUs, while the processor computes: to try a layout."""

ASSIGNED_KIND: Final = "CHESS_SNN_DEVICE"
"""``cpu`` or ``cuda`` in a process that was given a device; it settles what ``auto`` means."""

_MOST_SIMULATED: Final = 1024


@dataclass(frozen=True, slots=True)
class Device:
    """One device of this machine."""

    kind: Literal["cpu", "cuda"]
    index: int
    """Among the GPUs that are visible, from 0; 0 of the processor."""
    token: str
    """Name in ``CUDA_VISIBLE_DEVICES``; empty for the processor."""
    model: str
    """``NVIDIA H200``, for people."""
    memory_bytes: int
    """Memory of the GPU; 0 where it has none of its own."""

    @property
    def is_gpu(self) -> bool:
        """Whether work is dealt to it as to a GPU; simulated ones count."""
        return self.kind == "cuda"

    @property
    def shares_cores(self) -> bool:
        """Whether its networks run on the processor's cores, as those of a simulated GPU do."""
        return not self.memory_bytes

    def __str__(self) -> str:
        """``GPU 1 (NVIDIA H200)``."""
        return f"GPU {self.index} ({self.model})" if self.is_gpu else "the processor"


def visible_gpus() -> list[Device]:
    """The GPUs that this program may use; ``CUDA_VISIBLE_DEVICES`` is respected.

    Raises:
        ConfigError: ``CHESS_SNN_SIMULATED_GPUS`` is not a number.
    """
    if simulated := num_simulated_gpus():
        return [Device("cuda", i, str(i), "simulated", 0) for i in range(simulated)]
    tokens = gpu_tokens(os.environ.get(VISIBLE_GPUS), torch.cuda.device_count())
    gpus = []
    for index, token in enumerate(tokens):
        properties = torch.cuda.get_device_properties(index)
        gpus.append(Device("cuda", index, token, properties.name, properties.total_memory))
    return gpus


def gpu_tokens(visible: str | None, count: int) -> list[str]:
    """Names in ``CUDA_VISIBLE_DEVICES`` of ``count`` GPUs, where it now is ``visible``."""
    if visible is None:
        return [str(index) for index in range(count)]
    return [token.strip() for token in visible.split(",")][:count]


def num_simulated_gpus() -> int:
    """How many devices are simulated, mostly 0.

    Raises:
        ConfigError: ``CHESS_SNN_SIMULATED_GPUS`` is not a number.
    """
    text = os.environ.get(SIMULATED_GPUS, "0")
    if not text.isascii() or not text.isdigit():
        raise ConfigError(f"{SIMULATED_GPUS} must be a number of devices, got {text!r}")
    check_range(SIMULATED_GPUS, int(text), ge=0, le=_MOST_SIMULATED)
    return int(text)


def name_devices(devices: Iterable[Device]) -> str:
    """Names of ``devices``, each once: ``GPUs 0-3, 6 (NVIDIA H200)`` or ``the processor``."""
    indices: dict[str, list[int]] = {}
    for device in sorted(set(devices), key=lambda device: device.index):
        indices.setdefault(device.model if device.is_gpu else "", []).append(device.index)
    return " and ".join(
        f"GPU{'s' if len(found) > 1 else ''} {_runs(found)} ({model})" if model else "the processor"
        for model, found in indices.items()
    )


def gpus_option(numbers: Sequence[int]) -> str:
    """The text for ``--gpus`` that means exactly these GPUs: ``"0,2"``, and ``"2,"`` for one."""
    return ",".join(map(str, numbers)) + ("," if len(numbers) == 1 else "")


def _runs(numbers: Sequence[int]) -> str:
    """``0-3, 6`` of rising ``numbers``."""
    firsts = [number for number in numbers if number - 1 not in numbers]
    lasts = [number for number in numbers if number + 1 not in numbers]
    return ", ".join(
        str(first) if first == last else f"{first}-{last}"
        for first, last in zip(firsts, lasts, strict=True)
    )


@cache
def processor_has_bfloat16() -> bool:
    """Whether the processor computes in bfloat16: with AVX-512, AMX or AVX-VNNI 2.

    On other processors torch's convolutions in bfloat16 are hundreds of times slower than in
    float32.
    """
    has_onednn = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return bool(has_onednn and torch.ops.mkldnn._is_mkldnn_bf16_supported())


def processor() -> Device:
    """The processor as a device."""
    return Device("cpu", 0, "", "", 0)


def choose_devices(
    choice: DeviceChoice, wanted: Sequence[int], gpus: Sequence[Device]
) -> list[Device]:
    """The devices of ``gpus`` that are to be used, or the processor.

    Args:
        choice: as ``execution.device``.
        wanted: numbers of GPUs among those visible, as ``execution.gpus``; empty takes all.
        gpus: as :func:`visible_gpus` finds them.

    Raises:
        ConfigError: a GPU is asked for that does not exist; names those that do.
    """
    if choice == "cpu" and wanted:
        raise ConfigError(
            f'execution.gpus = {_numbers(wanted)} and execution.device = "cpu" contradict each '
            "other; leave one of them out"
        )
    if choice == "cpu":
        return [processor()]
    missing = [number for number in wanted if number not in range(len(gpus))]
    if missing:
        raise ConfigError(f"there is no GPU {_numbers(missing)}: {_what_there_is(gpus)}")
    if choice == "cuda" and not gpus:
        raise ConfigError(
            'execution.device = "cuda", and torch sees no GPU; look at CUDA_VISIBLE_DEVICES and '
            'the installed torch, or set execution.device = "auto"'
        )
    return [gpus[number] for number in wanted or range(len(gpus))] or [processor()]


def find_devices(choice: DeviceChoice) -> list[str]:
    """Names of this process's devices, as torch knows them: ``["cpu"]``, ``["cuda:0", "cuda:1"]``.

    A process that was given a device has that one alone.

    Raises:
        ConfigError: a GPU is asked for, and there is none.
    """
    assigned = os.environ.get(ASSIGNED_KIND)
    if num_simulated_gpus() or "cpu" in (choice, assigned):
        return ["cpu"]
    num_gpus = torch.cuda.device_count()
    if "cuda" in (choice, assigned) and not num_gpus:
        choose_devices("cuda", (), [])
    return [f"cuda:{index}" for index in range(num_gpus)] or ["cpu"]


def find_device(device: torch.device | str) -> torch.device:
    """The device of this process that ``cpu``, ``cuda``, ``cuda:1`` or ``auto`` names.

    ``auto`` is the first of :func:`find_devices`.

    Raises:
        ConfigError: there is no such device.
    """
    try:
        found = torch.device(find_devices("auto")[0] if device == "auto" else device)
    except RuntimeError as error:
        raise ConfigError(f"unknown device {device!r}; use cpu, cuda, cuda:N or auto") from error
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"device {device} is not here, torch sees {torch.cuda.device_count()} CUDA devices; "
            "use cpu, or look at CUDA_VISIBLE_DEVICES"
        )
    if found.type not in ("cpu", "cuda"):
        raise ConfigError(f"device {device} is not supported; use cpu, cuda, cuda:N or auto")
    return found


def is_gpu(device: str) -> bool:
    """Whether ``device``, a name of torch's, is a GPU."""
    return device.startswith("cuda")


def _what_there_is(gpus: Sequence[Device]) -> str:
    if not gpus:
        return (
            "torch sees none here; look at CUDA_VISIBLE_DEVICES and the installed torch, or leave "
            "execution.gpus (--gpus) out"
        )
    found = ", ".join(f"{gpu.index} ({gpu.model})" for gpu in gpus)
    return f"this machine has {found}; name some of these in execution.gpus (--gpus)"


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
