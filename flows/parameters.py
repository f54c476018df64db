"""Types of flow parameters, as the form on Prefect's page shows and checks them.

The sentences beside the fields come from the flows' docstrings. Bounds of a campaign's settings are
those that the settings themselves check.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, get_type_hints

from pydantic import Field, WithJsonSchema
from pydantic.fields import FieldInfo

from chess_snn.campaign import CampaignConfig, preset_names
from chess_snn.campaign.configuration.reference import field_bounds
from chess_snn.errors import ConfigError
from chess_snn.nets.config import SIZES

AS_PRESET: Final = "as the preset"
"""Chosen where a setting is left to the preset."""

Preset = Annotated[str, WithJsonSchema({"type": "string", "enum": list(preset_names())})]
"""A list to choose from."""

Count = Annotated[int, Field(ge=1)]
CountOrNone = Annotated[int, Field(ge=0)]
"""At least 1; at least 0."""


def _up_to_bound_of(setting: str) -> FieldInfo:
    """From 0, which leaves the setting to the preset, up to what the setting allows."""
    owner = get_type_hints(CampaignConfig)[setting.partition(".")[0]]
    bounds: dict[str, Any] = {**field_bounds(owner)[setting], "ge": 0}
    found: FieldInfo = Field(**bounds)
    return found


# None is no default here: Prefect's form would send it, and its own check would then refuse it.
Iterations = Annotated[int, _up_to_bound_of("campaign.iterations")]
Hours = Annotated[float, _up_to_bound_of("campaign.hours")]
Games = Annotated[int, _up_to_bound_of("self_play.games_per_iteration")]
Simulations = Annotated[int, _up_to_bound_of("search.simulations_first")]
Workers = Annotated[int, _up_to_bound_of("execution.workers")]
Seed = Annotated[int, _up_to_bound_of("campaign.seed")]
NetworkSize = Annotated[
    str, WithJsonSchema({"type": "string", "enum": [AS_PRESET, *SIZES]})
]
Gpus = list[CountOrNone]
CampaignName = Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$", max_length=100)]


@dataclass(frozen=True, slots=True)
class FormSettings:
    """Settings with a field of their own in the form; the defaults leave them to the preset."""

    iterations: int = 0
    hours: float = 0.0
    games_per_iteration: int = 0
    network: str = AS_PRESET
    simulations: int = 0
    gpus: Sequence[int] = ()
    workers: int = 0
    seed: int = 0

    def texts(self) -> list[str]:
        """As :func:`chess_snn.campaign.load_config` takes them.

        Raises:
            ConfigError: both lengths are set.
        """
        if self.iterations and self.hours:
            raise ConfigError(
                f"iterations = {self.iterations} and hours = {self.hours:g} are both set; leave "
                "one of them at 0"
            )
        settings = {
            "campaign.iterations": self.iterations,
            "campaign.hours": self.hours,
            "self_play.games_per_iteration": self.games_per_iteration,
            "net.size": "" if self.network == AS_PRESET else self.network,
            "search.simulations_first": self.simulations,
            "search.simulations_last": self.simulations,
            "execution.gpus": list(self.gpus),
            "execution.workers": self.workers,
            "campaign.seed": self.seed,
        }
        given = [f"{name}={value}" for name, value in settings.items() if value]
        # One takes the place of another, which a preset or a campaign may have.
        given += ["campaign.hours=0"] if self.iterations else []
        given += ["execution.workers_per_device=0"] if self.workers else []
        return given
