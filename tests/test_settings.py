"""Settings classes: what they refuse, and that they are dataclasses in every other way."""

import pickle
from dataclasses import asdict, replace
from typing import Literal

import pytest
from pydantic import Field

from chess_snn.errors import ConfigError
from chess_snn.settings import (
    bounds,
    bounds_text,
    choices,
    description,
    setting_fields,
    settings_class,
)


@settings_class("pond")
class PondSettings:
    """A pond."""

    num_ducks: int = Field(default=3, ge=0, le=10)
    """Ducks
    on it."""
    depth_m: float = Field(default=1.5, gt=0)
    """Depth to its bottom."""
    shore: Literal["sand", "reed"] = "reed"
    """Plants around it."""
    names: tuple[str, ...] = Field(default=(), strict=False)
    """Names of the ducks."""
    boats: int = Field(default=0, ge=0, title="--boats")
    """An option of a command."""

    def __post_init__(self) -> None:
        if len(self.names) > self.num_ducks:
            raise ConfigError("pond.names has more names than there are ducks")


@pytest.mark.parametrize(("values", "message"), [
    ({"num_ducks": 11}, "pond.num_ducks must be >= 0 and <= 10, got 11"),
    ({"num_ducks": True}, "pond.num_ducks = True: "),
    ({"num_ducks": 2.0}, "pond.num_ducks = 2.0: "),
    ({"num_ducks": "2"}, "pond.num_ducks = '2': "),
    ({"num_ducks": None}, "pond.num_ducks = None: "),
    ({"depth_m": float("nan")}, "pond.depth_m must be > 0, got nan"),
    ({"shore": "rock"}, "pond.shore must be one of sand, reed, got 'rock'"),
    ({"names": ["a", 2]}, "pond.names.1 = 2: "),
    ({"names": ["a"] * 4}, "pond.names has more names than there are ducks"),
    ({"boats": -1}, "--boats must be >= 0, got -1"),
    ({"num_duks": 2}, "unknown setting pond.num_duks; did you mean pond.num_ducks?"),
    ({"self": 2}, "unknown setting pond.self; known: num_ducks, depth_m, shore, names, boats"),
])
def test_what_does_not_fit_is_refused_by_its_name(values, message):
    with pytest.raises(ConfigError) as caught:
        PondSettings(**values)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError):
        replace(PondSettings(), **values)


def test_lists_become_tuples_and_whole_numbers_floats():
    found = PondSettings(names=["a", "b"], depth_m=2)
    assert found == PondSettings(3, 2.0, "reed", ("a", "b"))
    assert isinstance(found.depth_m, float)
    assert hash(found) == hash(pickle.loads(pickle.dumps(found)))
    assert asdict(found)["names"] == ("a", "b")
    with pytest.raises(AttributeError):
        found.depth_m = 3.0


def test_fields_say_what_they_are():
    fields = setting_fields(PondSettings)
    assert description(fields["num_ducks"]) == "Ducks on it."
    assert bounds(fields["num_ducks"]) == {"ge": 0, "le": 10}
    assert bounds_text(fields["depth_m"]) == "> 0"
    assert choices(fields["shore"]) == ("sand", "reed")
    assert choices(fields["names"]) == ()
    assert list(fields) == ["num_ducks", "depth_m", "shore", "names", "boats"]
