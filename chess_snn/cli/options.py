"""Options that several commands share, most of them settings of a campaign."""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from chess_snn.campaign.configuration.pace import ExecutionSettings
from chess_snn.cli.console import work_bar
from chess_snn.devices import find_device
from chess_snn.errors import ConfigError, UsageError
from chess_snn.known import (
    GAME_NAMES,
    KNOWN_MODELS,
    MAX_SIMULATIONS,
    PLAYER_NAMES,
    PRESETS,
    SHIPPED_MODELS,
    WEIGHTS,
)
from chess_snn.settings import choices, description, setting_fields

if TYPE_CHECKING:
    from chess_snn.campaign.configuration.loading import Setting
    from chess_snn.training import SupervisedSettings


def _check_device(text: str) -> str:
    if text != "cpu":  # which is there without a look, for which torch would be loaded
        find_device(text)
    return text


def _check_output(parameter: typer.CallbackParam, path: Path | None) -> Path | None:
    if path is not None:
        check_writable(path, str(parameter.opts[0]))
    return path


def output_option(help: str, *names: str) -> Any:
    """An option for a file to write, which is refused before the work if it cannot be written."""
    return typer.Option(*names, help=help, callback=_check_output)


def folders_with(file: str, incomplete: str) -> list[str]:
    """Folders whose path begins with ``incomplete`` and that hold ``file``, two levels deep."""
    root = Path("/" if incomplete.startswith("/") else "")
    begun = glob.escape(incomplete.removeprefix("/"))
    found = (root.glob(f"{begun}{deep}/{file}") for deep in ("*", "*/*"))
    return sorted(str(path.parent) for path in chain(*found))


def complete_campaign(incomplete: str) -> list[str]:
    """Campaigns here that begin like this."""
    return folders_with("campaign.toml", incomplete)


def complete_network(incomplete: str) -> list[str]:
    """Networks that begin like this."""
    campaigns = complete_campaign(incomplete)
    return [*SHIPPED_MODELS, *campaigns, *folders_with(WEIGHTS, incomplete)]


def complete_player(incomplete: str) -> list[str]:
    """Networks and other players that begin like this."""
    return [*PLAYER_NAMES, *complete_network(incomplete)]


def complete_setting(incomplete: str) -> list[str]:
    """Settings as ``--set`` takes them; behind the ``=``, the values of one that has a choice."""
    loading = import_module("chess_snn.campaign.configuration.loading")
    settings = loading.flat_values(loading.config_values(loading.CampaignConfig()))
    name, equals, _ = incomplete.partition("=")
    field = loading.setting_field(name) if equals and name in settings else None
    values = () if field is None else choices(field) or field.examples or ()
    return [f"{name}={value}" for value in values] or [f"{name}=" for name in settings]


NETWORK: Final[dict[str, Any]] = {
    "help": f"A network: {KNOWN_MODELS}.", "autocompletion": complete_network,
}
"""Help and completion of an argument or option."""

NetworkDeviceOption = Annotated[
    str,
    typer.Option("--device", help="Where networks run: cpu, cuda, cuda:N, or auto, a GPU where "
                 "there is one.", callback=_check_device),
]
ClusterOption = Annotated[
    str,
    typer.Option(help="Whose workers: local, or the address of a scheduler such "
                 "as tls://box-a:8786."),
]
CampaignArgument = Annotated[
    Path, typer.Argument(help="The campaign folder.", autocompletion=complete_campaign)
]
ThreadsOption = Annotated[
    int, typer.Option(min=0, max=1024, help="Of a network or engine; 0 chooses automatically.")
]
SimulationsOption = Annotated[
    int, typer.Option(min=0, max=MAX_SIMULATIONS,
                      help="Of a network at each move; 0 plays its policy without search.")
]
DescentsOption = Annotated[
    int, typer.Option(min=1, max=MAX_SIMULATIONS, help="Descents of the search a position.")
]
SeedOption = Annotated[
    int, typer.Option(min=0, max=2**63 - 1, help="Of openings, games and random players.")
]
GameOption = Annotated[
    str, typer.Option("--game", help=f"{' or '.join(GAME_NAMES)}; by default the networks' game.")
]
ADVISER: Final = "expectimax:2"
"""Says what it would play in a game of one player, beside a network or without one."""
AsJsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]
JsonFile = Annotated[Path | None, output_option("Write what was found to this file as well.")]
PresetOption = Annotated[
    str, typer.Option(help=f"Where to begin: {', '.join(PRESETS)}.", autocompletion=lambda: PRESETS)
]
ConfigOption = Annotated[
    Path | None, typer.Option(help="TOML file with settings, over the preset's.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="One setting, such as training.batch_size=512. May be repeated.",
                 autocompletion=complete_setting),
]

_ALL_GPUS = "all"


def setting_option(setting: str, more: str = "", owner: type = ExecutionSettings) -> Any:
    """An option for ``setting``, whose help is the setting's description and ``more``."""
    return typer.Option(help=f"{description(setting_fields(owner)[setting])} {more}".strip())


WorkersOption = Annotated[int | None, setting_option("workers")]
GpusOption = Annotated[
    str,
    setting_option(
        "gpus",
        "Give a number of GPUs such as 4, a list such as 0,2,5 (3, is GPU 3 alone), or all; "
        "CUDA_VISIBLE_DEVICES hides the others.",
    ),
]
DeviceOption = Annotated[str, setting_option("device")]


def parse_gpus(text: str) -> tuple[int, ...]:
    """The indices in ``"0,2,5"`` or ``"3,"``, or as many as ``"4"`` says; none for ``"all"``.

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
    workers: int | None, gpus: str, device: str, cluster: str
) -> list[Setting]:
    """The settings of the options that were given."""
    kind, address = ("address", cluster) if "://" in cluster else (cluster, "")
    chosen: list[Setting] = [("cluster.kind", kind), ("cluster.address", address)]
    return given_settings({
        "execution.workers": workers,
        "execution.gpus": parse_gpus(gpus) if gpus else None,
        "execution.device": device,
    }) + (chosen if cluster else [])


def check_dataset(settings: SupervisedSettings, game: str) -> SupervisedSettings:
    """Return ``settings`` with the games that are there now, looked at under a bar."""
    if not settings.games:
        return settings
    from chess_snn.campaign.stages.dataset import fix_dataset  # noqa: PLC0415 - not for the help
    with work_bar("looking at the games to learn from", "shards") as on_progress:
        return fix_dataset(settings, game, on_progress)


def check_writable(path: Path | None, option: str) -> None:
    """Raise UsageError before the work if ``path``, the value of ``option``, cannot be written."""
    if path is None:
        return
    nearest = next(parent for parent in path.absolute().parents if parent.exists())
    try:
        if path.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}; choose another {option}"
        ) from error
    refuse_in_campaign(path, option)


def refuse_in_campaign(path: Path, option: str) -> None:
    """Raise UsageError if ``path``, the value of ``option``, lies in a campaign's folder."""
    from chess_snn.campaign.store.folder import campaign_around  # noqa: PLC0415 - as above
    campaign = campaign_around(path)
    if campaign is not None:
        raise UsageError(
            f"cannot write {path}: it lies in the campaign {campaign}, whose files are its own; "
            f"choose another {option}, outside of it"
        )
