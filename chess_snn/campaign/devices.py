"""Which devices of this machine networks run on."""

from typing import Literal

import torch

from chess_snn.errors import ConfigError

DeviceChoice = Literal["auto", "cpu", "cuda"]


def find_devices(choice: DeviceChoice) -> list[str]:
    """Names of the devices, as torch knows them: ``["cpu"]`` or ``["cuda:0", "cuda:1"]``.

    Raises:
        ConfigError: a GPU is asked for, and there is none.
    """
    num_gpus = torch.cuda.device_count() if choice != "cpu" else 0
    if choice == "cuda" and not num_gpus:
        raise ConfigError(
            'execution.device = "cuda", and torch sees no GPU; look at CUDA_VISIBLE_DEVICES and '
            'the installed torch, or set execution.device = "auto"'
        )
    return [f"cuda:{index}" for index in range(num_gpus)] or ["cpu"]


def is_gpu(device: str) -> bool:
    """Whether ``device`` is a GPU."""
    return device.startswith("cuda")
