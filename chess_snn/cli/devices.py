"""Devices as options of commands."""

from typing import Annotated

import typer

from chess_snn.errors import ConfigError

GpusOption = Annotated[
    str,
    typer.Option(help="Which GPUs, counted from 0 among those that CUDA_VISIBLE_DEVICES leaves: "
                 "0,2,5. All without it."),
]
DeviceOption = Annotated[
    str, typer.Option(help="cpu, cuda, or auto: GPUs where there are any.")
]


def parse_gpus(text: str) -> tuple[int, ...]:
    """``"0,2,5"`` as numbers; an empty text has none.

    Raises:
        ConfigError: it is no list of numbers.
    """
    if not text:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ConfigError(f"--gpus must be numbers such as 0,2,5, got {text!r}")
    return tuple(map(int, parts))
