"""Settings as options of commands."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from chess_snn.campaign.configuration.loading import Setting, setting_field
from chess_snn.errors import ConfigError
from chess_snn.settings import description


def setting_option(setting: str, more: str = "") -> Any:
    """An option for ``setting``, whose help is the setting's description and ``more``."""
    return typer.Option(help=f"{description(setting_field(setting))} {more}".strip())


WorkersOption = Annotated[int | None, setting_option("execution.workers")]
WorkersPerDeviceOption = Annotated[int | None, setting_option("execution.workers_per_device")]
GpusOption = Annotated[
    str,
    setting_option(
        "execution.gpus",
        "Give a number of GPUs such as 4, a list such as 0,2,5 (3, is GPU 3 alone), or all; "
        "CUDA_VISIBLE_DEVICES hides the others.",
    ),
]
DeviceOption = Annotated[str, setting_option("execution.device")]
NetworkDeviceOption = Annotated[
    str,
    typer.Option("--device", help="Where networks run: cpu, cuda, cuda:N, or auto, a GPU where "
                 "there is one."),
]
SelfPlayDeviceOption = Annotated[str, setting_option("execution.self_play_device")]
ClusterOption = Annotated[
    str,
    typer.Option(help="Whose workers: local, slurm, kubernetes, or the address of a scheduler such "
                 "as tls://box-a:8786."),
]

_ALL_GPUS = "all"


def parse_gpus(text: str) -> tuple[int, ...]:
    """The indices that a text stands for.

    ``"0,2,5"`` lists them, ``"3,"`` is GPU 3 alone, and ``"4"`` is the first four GPUs. ``"all"``,
    and an empty text, have none.

    Raises:
        ConfigError: it is neither a number of GPUs nor a list.
    """
    if text in ("", _ALL_GPUS):
        return ()
    parts = [part.strip() for part in text.removesuffix(",").split(",")]
    is_count = "," not in text
    if not all(part.isascii() and part.isdigit() for part in parts) or (is_count and text == "0"):
        raise ConfigError(
            f"--gpus must be a number of GPUs such as 4, a list such as 0,2,5, or all, got {text!r}"
        )
    return tuple(range(int(text))) if is_count else tuple(map(int, parts))


def given_settings(values: Mapping[str, object]) -> list[Setting]:
    """The settings whose options were given."""
    return [(name, value) for name, value in values.items() if value not in (None, "")]


def pace_settings(
    workers: int | None, workers_per_device: int | None, gpus: str, device: str,
    self_play_device: str, cluster: str,
) -> list[Setting]:
    """The settings of the options that were given."""
    # One of the two takes the place of the other, also of one that a preset or a campaign has.
    if workers is not None or workers_per_device is not None:
        workers, workers_per_device = workers or 0, workers_per_device or 0
    kind, address = ("address", cluster) if "://" in cluster else (cluster, "")
    chosen: list[Setting] = [("cluster.kind", kind), ("cluster.address", address)]
    return given_settings({
        "execution.workers": workers,
        "execution.workers_per_device": workers_per_device,
        "execution.gpus": parse_gpus(gpus) if gpus else None,
        "execution.device": device,
        "execution.self_play_device": self_play_device,
    }) + (chosen if cluster else [])
