"""Types of flow parameters, as the form on Prefect's page shows and checks them.

The sentences beside the fields come from the flows' docstrings. Bounds of a campaign's settings are
those that the settings themselves check.
"""

from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

from pydantic import Field, GetJsonSchemaHandler, WithJsonSchema
from pydantic.fields import FieldInfo

from chess_snn.campaign import CampaignConfig, preset_names
from chess_snn.campaign.configuration.reference import field_bounds
from chess_snn.errors import ConfigError
from chess_snn.nets.config import SIZES

Preset = Annotated[str, WithJsonSchema({"type": "string", "enum": list(preset_names())})]
"""A list to choose from."""

Count = Annotated[int, Field(ge=1)]
CountOrNone = Annotated[int, Field(ge=0)]
"""At least 1; at least 0."""


class _PlainField:
    """A value that may be left out, as one field rather than as a choice between it and None."""

    def __get_pydantic_json_schema__(
        self, core_schema: Any, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        given, _ = handler(core_schema)["anyOf"]
        return dict(given)


def _bounds_of(setting: str) -> FieldInfo:
    owner = get_type_hints(CampaignConfig)[setting.partition(".")[0]]
    bounds: dict[str, Any] = dict(field_bounds(owner)[setting])
    found: FieldInfo = Field(**bounds)
    return found


Iterations = Annotated[int | None, _bounds_of("campaign.iterations"), _PlainField()]
Hours = Annotated[float | None, Field(gt=0), _bounds_of("campaign.hours"), _PlainField()]
Games = Annotated[int | None, _bounds_of("self_play.games_per_iteration"), _PlainField()]
Simulations = Annotated[int | None, _bounds_of("search.simulations_first"), _PlainField()]
Workers = Annotated[int | None, _bounds_of("execution.workers"), _PlainField()]
Seed = Annotated[int | None, _bounds_of("campaign.seed"), _PlainField()]
NetworkSize = Annotated[
    str | None, WithJsonSchema({"type": "string", "enum": [None, *SIZES]})
]
Gpus = Annotated[list[CountOrNone] | None, _PlainField()]
CampaignName = Annotated[
    str | None, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100), _PlainField()
]
OptionalText = Annotated[str | None, _PlainField()]


@dataclass(frozen=True, slots=True)
class FormSettings:
    """Settings with a field of their own in the form; None leaves a setting to the preset."""

    iterations: int | None = None
    hours: float | None = None
    games_per_iteration: int | None = None
    network: str | None = None
    simulations: int | None = None
    gpus: list[int] | None = None
    workers: int | None = None
    seed: int | None = None

    def texts(self) -> list[str]:
        """As :func:`chess_snn.campaign.load_config` takes them.

        Raises:
            ConfigError: both lengths are set.
        """
        if self.iterations is not None and self.hours is not None:
            raise ConfigError(
                f"iterations = {self.iterations} and hours = {self.hours:g} are both set; leave "
                "one of them out"
            )
        settings = {
            "campaign.iterations": self.iterations,
            # A preset may count hours.
            "campaign.hours": self.hours if self.iterations is None else 0.0,
            "self_play.games_per_iteration": self.games_per_iteration,
            "net.size": self.network,
            "search.simulations_first": self.simulations,
            "search.simulations_last": self.simulations,
            "execution.gpus": self.gpus,
            "execution.workers": self.workers,
            "execution.workers_per_device": None if self.workers is None else 0,
            "campaign.seed": self.seed,
        }
        return [f"{name}={value}" for name, value in settings.items() if value is not None]
