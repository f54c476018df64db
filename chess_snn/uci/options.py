"""The engine's options, as ``uci`` lists them and ``setoption`` sets them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from chess_snn.config import check_choice, check_range
from chess_snn.errors import ConfigError
from chess_snn.nets import Precision
from chess_snn.search import MAX_SIMULATIONS

PrecisionOption = Literal["model", Precision]


@dataclass(frozen=True, slots=True)
class Options:
    """What a user can set; each field's name in UCI stands in ``_KINDS``."""

    model: str = ""
    """The network, as text; empty: none yet."""
    simulations: int = 800
    """Of a ``go`` that does not say how long."""
    temperature: float = 0.0
    """0 plays the best move; above, moves are drawn from visits to the power of 1 / temperature."""
    threads: int = 1
    """Of the network."""
    device: str = "cpu"
    """Where the network runs: ``cpu``, ``cuda``, ``cuda:N`` or ``auto``."""
    ticks: int = 0
    """Spiking time of one evaluation; 0: what the network was trained with."""
    precision: PrecisionOption = "model"
    """Of the network; ``model``: what it was trained with."""
    multipv: int = 1
    """Lines to report."""
    show_wdl: bool = False
    """Whether win, draw and loss are reported."""
    ponder: bool = False
    """The GUI's own: whether it will ponder. The engine can always."""
    hash_mib: int = 256
    """Memory of the tree."""
    move_overhead_ms: int = 100
    """Set aside of the clock at every move."""

    def __post_init__(self) -> None:
        check_range("Simulations", self.simulations, ge=1, le=MAX_SIMULATIONS)
        check_range("Temperature", self.temperature, ge=0, le=_MOST_TEMPERATURE)
        check_range("Threads", self.threads, ge=1, le=_MOST_THREADS)
        check_range("Ticks", self.ticks, ge=0, le=_MOST_TICKS)
        check_choice("Precision", self.precision, _PRECISIONS)
        check_range("MultiPV", self.multipv, ge=1, le=_MOST_LINES)
        check_range("Hash", self.hash_mib, ge=1, le=_MOST_HASH_MIB)
        check_range("Move Overhead", self.move_overhead_ms, ge=0, le=_MOST_OVERHEAD_MS)


def declare(options: Options) -> list[str]:
    """The lines that tell a GUI of every option, with ``options`` as the defaults."""
    return [
        f"option name {name} {kind.declare(getattr(options, kind.field))}"
        for name, kind in _KINDS.items()
    ]


def set_option(options: Options, name: str, value: str) -> Options:
    """``options`` with one of them changed; the case of ``name`` does not matter.

    Raises:
        ConfigError: there is no such option, or it cannot have that value.
    """
    for known, kind in _KINDS.items():
        if known.lower() == name.lower():
            return replace(options, **{kind.field: kind.parse(known, value)})
    raise ConfigError(f"unknown option {name!r}; known: {', '.join(_KINDS)}")


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a field of :class:`Options` is declared and read."""

    field: str
    declare: Callable[[Any], str]
    parse: Callable[[str, str], Any]


def _spin(field: str, least: int, most: int) -> _Kind:
    return _Kind(
        field, lambda value: f"type spin default {value} min {least} max {most}", _parse_whole
    )


def _parse_whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"{name} must be a whole number, got {text!r}") from None


def _parse_real(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ConfigError(f"{name} must be a number, got {text!r}")
    return value


def _parse_check(name: str, text: str) -> bool:
    check_choice(name, text.lower(), ("true", "false"))
    return text.lower() == "true"


def _declare_check(value: bool) -> str:
    return f"type check default {str(value).lower()}"


def _parse_text(_name: str, text: str) -> str:
    return "" if text == _NO_TEXT else text


def _declare_precision(value: str) -> str:
    return " ".join(["type combo default", value, *(f"var {choice}" for choice in _PRECISIONS)])


_NO_TEXT: Final = "<empty>"
_PRECISIONS: Final = get_args(PrecisionOption)
_MOST_TEMPERATURE: Final = 100.0
_MOST_THREADS: Final = 1024
_MOST_TICKS: Final = 64
_MOST_LINES: Final = 218
_MOST_HASH_MIB: Final = 32_768
_MOST_OVERHEAD_MS: Final = 10_000

_KINDS: Final = {
    "Model": _Kind(
        "model", lambda value: f"type string default {value or _NO_TEXT}", _parse_text
    ),
    "Simulations": _spin("simulations", 1, MAX_SIMULATIONS),
    "Temperature": _Kind(
        # UCI has no type for fractions.
        "temperature", lambda value: f"type string default {value:g}", _parse_real
    ),
    "Threads": _spin("threads", 1, _MOST_THREADS),
    "Device": _Kind("device", lambda value: f"type string default {value}", _parse_text),
    "Hash": _spin("hash_mib", 1, _MOST_HASH_MIB),
    "Ticks": _spin("ticks", 0, _MOST_TICKS),
    "Precision": _Kind("precision", _declare_precision, lambda _name, text: text),
    "MultiPV": _spin("multipv", 1, _MOST_LINES),
    "UCI_ShowWDL": _Kind("show_wdl", _declare_check, _parse_check),
    "Ponder": _Kind("ponder", _declare_check, _parse_check),
    "Move Overhead": _spin("move_overhead_ms", 0, _MOST_OVERHEAD_MS),
}
"""By the name that UCI knows it by."""
