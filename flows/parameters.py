"""Parameters of flows: how the form on Prefect's page checks them, and which campaign they mean.

The sentences beside the fields come from the flows' docstrings. Bounds of a campaign's settings are
those of the settings' own fields.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, WithJsonSchema
from pydantic.fields import FieldInfo

from chess_snn.api import campaigns
from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.configuration.loading import (
    Setting,
    changed_config,
    config_values,
    flat_values,
    setting_field,
)
from chess_snn.campaign.configuration.pace import PACE_GROUPS
from chess_snn.campaign.store.folder import CONFIG_FILE
from chess_snn.campaign.store.naming import campaigns_home
from chess_snn.errors import CampaignError, ConfigError
from chess_snn.known import PRESETS
from chess_snn.nets import SIZES
from chess_snn.settings import bounds

AS_PRESET: Final = "as the preset"
"""Chosen where a setting is left to the preset."""

Preset = Annotated[str, WithJsonSchema({"type": "string", "enum": list(PRESETS)})]
"""A list to choose from."""


def _up_to_bound_of(setting: str) -> FieldInfo:
    """Bound a number by 0, which leaves the setting to the preset, and what the setting allows."""
    limits: dict[str, Any] = bounds(setting_field(setting)) | {"ge": 0}
    found: FieldInfo = Field(**limits)
    return found


# None is not a default here: Prefect's form would send it, and its own check would then refuse it.
Iterations = Annotated[int, _up_to_bound_of("campaign.iterations")]
Hours = Annotated[float, _up_to_bound_of("campaign.hours")]
Games = Annotated[int, _up_to_bound_of("self_play.games_per_iteration")]
Simulations = Annotated[int, _up_to_bound_of("search.simulations_first")]
Workers = Annotated[int, _up_to_bound_of("execution.workers")]
Seed = Annotated[int, _up_to_bound_of("campaign.seed")]
NetworkSize = Annotated[
    str,
    WithJsonSchema({"type": "string", "enum": [AS_PRESET, *SIZES]}),
]
Gpus = list[Annotated[int, Field(ge=0)]]
CampaignName = Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$", max_length=100)]


def form_settings(
    iterations: int = 0, hours: float = 0.0, games_per_iteration: int = 0,
    network: str = AS_PRESET, simulations: int = 0, gpus: Sequence[int] = (), workers: int = 0,
    seed: int = 0,
) -> list[Setting]:
    """The settings that were filled in; a default leaves its setting to the preset.

    Raises:
        ConfigError: both lengths are set.
    """
    if iterations and hours:
        raise ConfigError(
            f"iterations = {iterations} and hours = {hours:g} are both set; leave one of them at 0"
        )
    values: dict[str, object] = {
        "campaign.iterations": iterations,
        "campaign.hours": hours,
        "self_play.games_per_iteration": games_per_iteration,
        "net.size": "" if network == AS_PRESET else network,
        "search.simulations_first": simulations,
        "search.simulations_last": simulations,
        "execution.gpus": tuple(gpus),
        "execution.workers": workers,
        "campaign.seed": seed,
    }
    # Iterations take the place of hours, which a preset or a campaign may have.
    return [
        (name, value) for name, value in values.items()
        if value or (iterations and name == "campaign.hours")
    ]


def directory_of(name: str, directory: str) -> Path | None:
    """The folder of the campaign that a form names; None leaves it to :func:`new_campaign`.

    Raises:
        ConfigError: both are set, or ``directory`` is relative; a deployment's run starts in a
            temporary folder.
    """
    if name and directory:
        raise ConfigError(
            f"name = {name!r} and directory = {directory!r} are both set; leave one of them out"
        )
    if name:
        return campaigns_home() / name
    if directory and not Path(directory).is_absolute():
        raise ConfigError(f"directory must be an absolute path, got {directory!r}")
    return Path(directory) if directory else None


def campaign_to_resume(path: Path | None, campaign_id: str | None) -> CampaignFolder | None:
    """The campaign in ``path`` that a run resumes; None if it is to start one.

    ``campaign_id`` is given for a retry: a run resumes the campaign that it had, and no other.

    Raises:
        CampaignError: the campaign of the run is not there any more.
    """
    folder = None
    if path is not None and (path / CONFIG_FILE).exists():
        folder = CampaignFolder.open(path)
    if campaign_id is not None and (folder is None or folder.campaign_id != campaign_id):
        raise CampaignError(
            f"{path} does not hold the campaign of this run any more, whose id is {campaign_id}; "
            "put its folder back, or start a new run instead of retrying this one"
        )
    return folder


def new_campaign(
    directory: Path | None, preset: str, settings: list[Setting], start_from: str,
    with_games: bool,
) -> CampaignFolder:
    """Create a campaign, called after its preset if there is no ``directory``."""
    if with_games and not start_from:
        raise ConfigError("with_games takes the games of start_from; name a network there")
    return campaigns.new_campaign(
        preset, settings, start_from=start_from or None, with_games=with_games,
        directory=directory, home=campaigns_home(), asks_server=False,
    )


def resumed_with(folder: CampaignFolder, settings: list[Setting]) -> CampaignFolder:
    """The campaign under ``settings``, of which only those of its pace may be new to it.

    Raises:
        ConfigError: one of the others differs.
    """
    wanted = changed_config(folder.config, settings)
    before, after = (flat_values(config_values(config)) for config in (folder.config, wanted))
    changed = [name for name in after if after[name] != before[name]]
    frozen = [name for name in changed if name.partition(".")[0] not in PACE_GROUPS]
    if frozen:
        told = ", ".join(f"{name} = {before[name]} (asked for: {after[name]})" for name in frozen)
        raise ConfigError(
            f"{folder.path} holds a campaign with {told}; leave that out to resume it, choose "
            "another name for a new campaign, or make it longer: chess-snn campaign extend "
            f"{folder.path}"
        )
    return folder.with_config(wanted) if changed else folder
