"""Devices, workers and clusters as options of commands."""

import json
from typing import Annotated

import typer

from chess_snn.errors import ConfigError

WorkersOption = Annotated[
    int | None,
    typer.Option(help="Processes that play; with several devices lowered to the nearest multiple "
                 "of their number. 0 chooses, as does leaving it out."),
]
WorkersPerDeviceOption = Annotated[int | None, typer.Option(help="The same for each device.")]
GpusOption = Annotated[
    str,
    typer.Option(help="Which GPUs, counted from 0 among those that CUDA_VISIBLE_DEVICES leaves: "
                 "0,2,5, or all."),
]
DeviceOption = Annotated[
    str, typer.Option(help="cpu, cuda, or auto: GPUs where there are any.")
]
NetworkDeviceOption = Annotated[
    str,
    typer.Option("--device", help="Where networks run: cpu, cuda, cuda:N, or auto, a GPU where "
                 "there is one."),
]
SelfPlayDeviceOption = Annotated[
    str, typer.Option(help="cpu plays there, and leaves the GPUs to training; or same.")
]
ClusterOption = Annotated[
    str,
    typer.Option(help="Whose workers: local, slurm, kubernetes, or the address of a scheduler such "
                 "as tls://box-a:8786."),
]

_ALL_GPUS = "all"


def parse_gpus(text: str) -> tuple[int, ...]:
    """``"0,2,5"`` as numbers; ``"all"``, and an empty text, have none.

    Raises:
        ConfigError: it is no list of numbers.
    """
    if text in ("", _ALL_GPUS):
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ConfigError(f"--gpus must be numbers such as 0,2,5, or all, got {text!r}")
    return tuple(map(int, parts))


def pace_settings(
    workers: int | None, workers_per_device: int | None, gpus: str, device: str,
    self_play_device: str, cluster: str,
) -> list[str]:
    """The options that were given, as texts for ``--set``."""
    settings = []
    # One of the two takes the place of the other, also of one that a preset or a campaign has.
    if workers is not None:
        settings += [f"execution.workers={workers}"]
        settings += ["execution.workers_per_device=0"] if workers_per_device is None else []
    if workers_per_device is not None:
        settings += [f"execution.workers_per_device={workers_per_device}"]
        settings += ["execution.workers=0"] if workers is None else []
    if gpus:
        settings.append(f"execution.gpus={list(parse_gpus(gpus))}")
    if device:
        settings.append(f"execution.device={json.dumps(device)}")
    if self_play_device:
        settings.append(f"execution.self_play_device={json.dumps(self_play_device)}")
    if "://" in cluster:
        settings += ['cluster.kind="address"', f"cluster.address={json.dumps(cluster)}"]
    elif cluster:
        settings += [f"cluster.kind={json.dumps(cluster)}", 'cluster.address=""']
    return settings
