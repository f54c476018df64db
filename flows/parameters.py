"""Types of flow parameters, as the form on Prefect's page shows and checks them.

The sentences beside the fields come from the flows' docstrings. Bounds of a campaign's settings are
those of the settings' own fields.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import Field, WithJsonSchema
from pydantic.fields import FieldInfo

from chess_snn.campaign import preset_names
from chess_snn.campaign.configuration.loading import Setting, setting_field
from chess_snn.errors import ConfigError
from chess_snn.settings import bounds, choices

AS_PRESET: Final = "as the preset"
"""Chosen where a setting is left to the preset."""

Preset = Annotated[str, WithJsonSchema({"type": "string", "enum": list(preset_names())})]
"""A list to choose from."""

Count = Annotated[int, Field(ge=1)]
CountOrNone = Annotated[int, Field(ge=0)]
"""At least 1; at least 0."""


def _up_to_bound_of(setting: str) -> FieldInfo:
    """From 0, which leaves the setting to the preset, up to what the setting allows."""
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
    WithJsonSchema({"type": "string", "enum": [AS_PRESET, *choices(setting_field("net.size"))]}),
]
Gpus = list[CountOrNone]
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
    # One takes the place of another, which a preset or a campaign may have.
    replaced = {"campaign.hours": iterations, "execution.workers_per_device": workers}
    return [
        *((name, value) for name, value in values.items() if value),
        *((name, 0) for name, instead in replaced.items() if instead),
    ]
