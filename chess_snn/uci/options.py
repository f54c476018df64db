"""The engine's options, as ``uci`` lists them and ``setoption`` sets them."""

from dataclasses import replace
from typing import Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from chess_snn.errors import ConfigError
from chess_snn.known import MAX_SIMULATIONS
from chess_snn.nets import Precision
from chess_snn.settings import bounds, choices, setting_fields, settings_class
from chess_snn.wording import names_hint

PrecisionOption = Literal["model", Precision]

_NO_TEXT: Final = "<empty>"
_WANTED: Final = {bool: "true or false", int: "a whole number", float: "a number"}
"""Text that an option must have, by its type; others are any text."""


@settings_class("uci")
class Options:
    """Options that a user can set; each field's name in UCI is its title."""

    model: str = Field(default="", title="Model")
    """The network, as text; empty: none yet."""
    simulations: int = Field(default=800, ge=1, le=MAX_SIMULATIONS, title="Simulations")
    """Simulations of a ``go`` without a limit."""
    temperature: float = Field(default=0.0, ge=0, le=100, title="Temperature")
    """0 plays the best move; above, moves are drawn from visits to the power of 1 / temperature."""
    threads: int = Field(default=1, ge=1, le=1024, title="Threads")
    """Threads of the network."""
    device: str = Field(default="cpu", title="Device")
    """Device of the network: ``cpu``, ``cuda``, ``cuda:N`` or ``auto``."""
    hash_mib: int = Field(default=256, ge=1, le=32_768, title="Hash")
    """Memory of the tree."""
    ticks: int = Field(default=0, ge=0, le=64, title="Ticks")
    """Spiking time of one evaluation; 0: what the network was trained with."""
    precision: PrecisionOption = Field(default="model", title="Precision")
    """Precision of the network; ``model``: what it was trained with."""
    multipv: int = Field(default=1, ge=1, le=218, title="MultiPV")
    """Lines to report."""
    show_wdl: bool = Field(default=False, title="UCI_ShowWDL")
    """True if win, draw and loss are reported."""
    ponder: bool = Field(default=False, title="Ponder")
    """The GUI's own: whether it will ponder. The engine can always."""
    move_overhead_ms: int = Field(default=100, ge=0, le=10_000, title="Move Overhead")
    """Reserved of the clock at every move."""


def declare(options: Options) -> list[str]:
    """The lines that tell a GUI of every option, with ``options`` as the defaults."""
    return [
        f"option name {field.title} {_declared(field, getattr(options, name))}"
        for name, field in setting_fields(Options).items()
    ]


def set_option(options: Options, name: str, value: str) -> Options:
    """``options`` with one of them changed; the case of ``name`` does not matter.

    Raises:
        ConfigError: there is no such option, or it cannot have that value.
    """
    fields = setting_fields(Options)
    for key, field in fields.items():
        if str(field.title).lower() == name.lower():
            return replace(options, **{key: _parsed(field, value)})
    known = [str(field.title) for field in fields.values()]
    raise ConfigError(f"unknown option {name!r}; {names_hint(name, known)}")


def _declared(field: FieldInfo, value: object) -> str:
    if isinstance(value, bool):
        return f"type check default {str(value).lower()}"
    if isinstance(value, int):
        limits = bounds(field)
        return f"type spin default {value} min {limits['ge']} max {limits['le']}"
    if named := choices(field):
        return " ".join([f"type combo default {value}", *(f"var {choice}" for choice in named)])
    # UCI has no type for fractions.
    text = f"{value:g}" if isinstance(value, float) else value
    return f"type string default {text or _NO_TEXT}"


def _parsed(field: FieldInfo, text: str) -> Any:
    kind: Any = field.annotation
    wanted = _WANTED.get(kind)
    if wanted is None:
        return "" if text == _NO_TEXT else text
    try:
        return TypeAdapter(kind).validate_python(text)
    except ValidationError as error:
        raise ConfigError(f"{field.title} must be {wanted}, got {text!r}") from error
