"""Settings classes: each field has bounds and a description, checked whenever an object is made.

A settings class belongs to the component that reads it::

    @settings_class("search")
    class SearchSettings:
        considered_actions: int = Field(default=16, ge=2, le=1024)

It is a frozen dataclass with slots, made by pydantic; the docstring under a field is the field's
description. TOML files, ``--set``, options of commands, Prefect's form and docs/configuration.md
take names, types, bounds and descriptions from the fields. Checks that involve several fields
belong in ``__post_init__`` and raise ConfigError. Arguments that are no settings are checked by
:func:`check_range` and :func:`check_choice`.
"""

from collections.abc import Callable, Collection
from functools import wraps
from typing import Any, Final, TypeVar, cast, dataclass_transform, get_args

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo

from chess_snn.errors import ConfigError
from chess_snn.wording import nearest

Settings = TypeVar("Settings")

_CONFIG: Final = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)
_SIGNS: Final = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
_OUT_OF_BOUNDS: Final = {
    "greater_than_equal", "greater_than", "less_than_equal", "less_than", "literal_error",
}
"""Types of pydantic's errors about a value that is not among the allowed ones."""


@dataclass_transform(frozen_default=True, field_specifiers=(Field,))
def settings_class(group: str) -> Callable[[type[Settings]], type[Settings]]:
    """Turn a class into a settings class.

    Making an object of it raises ConfigError for an unknown name, another type (nothing is
    converted but whole numbers to floats), or a value out of bounds. The message calls a field by
    its title, or else ``group.field``.
    """

    def decorate(owner: type[Settings]) -> type[Settings]:
        made: Any = dataclass(frozen=True, slots=True, config=_CONFIG)(owner)
        validate = made.__init__

        @wraps(validate)
        def init(self: Any, /, *args: Any, **kwargs: Any) -> None:
            try:
                validate(self, *args, **kwargs)
            except ValidationError as error:
                raise _config_error(group, made, error) from error

        made.__init__ = init
        return cast(type[Settings], made)

    return decorate


def setting_fields(owner: Any) -> dict[str, FieldInfo]:
    """The fields of a settings class by name, with types, defaults, bounds and descriptions."""
    fields: dict[str, FieldInfo] = vars(owner)["__pydantic_fields__"]
    return fields


def description(field: FieldInfo) -> str:
    """The sentences under a field, on one line."""
    return " ".join((field.description or "").split())


def bounds(field: FieldInfo) -> dict[str, float]:
    """The bounds of a number: ``{"ge": 0, "le": 1024}``."""
    return {
        name: getattr(bound, name)
        for bound in field.metadata for name in _SIGNS if hasattr(bound, name)
    }


def choices(field: FieldInfo) -> tuple[str, ...]:
    """The texts that a field is chosen from; none for any other field."""
    found = get_args(field.annotation)
    return found if all(isinstance(choice, str) for choice in found) else ()


def bounds_text(field: FieldInfo) -> str:
    """The bounds for people: ``>= 0 and <= 1024``."""
    return " and ".join(
        f"{_SIGNS[name]} {bound if isinstance(bound, int) else format(bound, 'g')}"
        for name, bound in bounds(field).items()
    )


def _config_error(group: str, owner: type, error: ValidationError) -> ConfigError:
    """The first of the errors in one line, with the setting's name, its value, and the fix."""
    first = error.errors(include_url=False)[0]
    place, value = [str(part) for part in first["loc"]], first["input"]
    prefix = f"{group}." if group else ""
    known = setting_fields(owner)
    if not place:  # the name itself cannot be one
        return ConfigError(f"unknown setting {prefix}{value!r}; known: {', '.join(known)}")
    if place[0] not in known:
        close = nearest(place[0], known)
        hint = f"did you mean {prefix}{close}?" if close else f"known: {', '.join(known)}"
        return ConfigError(f"unknown setting {prefix}{place[0]}; {hint}")
    field = known[place[0]]
    name = field.title or prefix + ".".join(place)
    if len(place) > 1 or first["type"] not in _OUT_OF_BOUNDS:
        reason = first["msg"][:1].lower() + first["msg"][1:]
        return ConfigError(f"{name} = {value!r}: {reason}")
    wanted = bounds_text(field) or f"one of {', '.join(choices(field))}"
    return ConfigError(f"{name} must be {wanted}, got {value!r}")


def check_range(
    setting: str, value: float, *, ge: float | None = None, gt: float | None = None,
    le: float | None = None, lt: float | None = None,
) -> None:
    """Raise ConfigError unless ``value`` satisfies every bound given; NaN satisfies none."""
    bounds = [
        (ge, ">=", ge is None or value >= ge),
        (gt, ">", gt is None or value > gt),
        (le, "<=", le is None or value <= le),
        (lt, "<", lt is None or value < lt),
    ]
    if all(holds for _, _, holds in bounds):
        return
    wanted = " and ".join(f"{sign} {bound:g}" for bound, sign, _ in bounds if bound is not None)
    raise ConfigError(f"{setting} must be {wanted}, got {value}")


def check_choice(setting: str, value: str, choices: Collection[str]) -> None:
    """Raise ConfigError unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ConfigError(f"{setting} must be one of {', '.join(choices)}, got {value!r}")
