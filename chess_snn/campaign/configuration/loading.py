"""From presets, files and ``--set a.b=v`` to a :class:`CampaignConfig`, and back to TOML.

Later sources win: defaults, preset, file, single settings. Nothing unknown is ignored.
"""

import ast
import difflib
import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final, get_type_hints

import tomli_w
from pydantic import TypeAdapter, ValidationError

from chess_snn.campaign.configuration.settings import CampaignConfig, NetworkSettings
from chess_snn.errors import ConfigError
from chess_snn.types import Json

_PRESETS = resources.files("chess_snn.campaign.configuration") / "presets"
_DIGEST_LENGTH = 12

PACE_GROUPS: Final = ("execution", "cluster", "storage")
"""Settings that change the pace of a campaign, and never its result."""


def preset_names() -> list[str]:
    """The presets that come with the package."""
    names = (entry.name for entry in _PRESETS.iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def load_config(
    preset: str | None = None,
    file: Path | None = None,
    settings: Sequence[str] = (),
    *,
    network: NetworkSettings | None = None,
) -> CampaignConfig:
    """Build a configuration; ``settings`` are texts like ``"training.batch_size=512"``.

    With ``network`` the preset's settings of the network do not count, but those do.

    Raises:
        ConfigError: an unknown preset or setting, an unreadable file, a value out of range.
    """
    values: Json = {}
    if preset is not None:
        _merge(values, _read_preset(preset))
    if network is not None:
        values["net"] = asdict(network)
    if file is not None:
        _merge(values, _read_file(file))
    for text in settings:
        _merge(values, _parse_setting(text))
    return build_config(values)


def build_config(values: Mapping[str, Any]) -> CampaignConfig:
    """The configuration with the nested ``values``; what they leave out keeps its default.

    Raises:
        ConfigError: as :func:`load_config`.
    """
    _refuse_unknown(values, CampaignConfig, prefix="")
    try:
        # TOML has dates and JSON has not: as a text it is refused where a number is wanted.
        text = json.dumps(values, default=str)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"a setting has a value that no setting takes: {error}") from error
    try:
        return _configurations().validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        setting = ".".join(str(part) for part in first["loc"])
        reason = first["msg"][:1].lower() + first["msg"][1:]
        raise ConfigError(f"{setting} = {first['input']!r}: {reason}") from error


def config_of_texts(texts: Mapping[str, str]) -> CampaignConfig:
    """The configuration whose settings a store has as texts, by dotted names.

    Unknown settings are left out: another version may have had them.

    Raises:
        ConfigError: a value is out of range.
    """
    values: Json = {}
    for name, default in flat_values(config_values(CampaignConfig())).items():
        if name in texts:
            text = texts[name]
            _merge(values, _nested(name, text if isinstance(default, str) else _parse(text)))
    return build_config(values)


def changed_config(config: CampaignConfig, settings: Sequence[str]) -> CampaignConfig:
    """``config`` with other settings, as texts of :func:`load_config`.

    Raises:
        ConfigError: as of :func:`load_config`.
    """
    values = config_values(config)
    for text in settings:
        _merge(values, _parse_setting(text))
    return build_config(values)


def change_pace(config: CampaignConfig, settings: Sequence[str]) -> CampaignConfig:
    """``config`` with other settings of ``PACE_GROUPS``, as texts of :func:`load_config`.

    Raises:
        ConfigError: a setting of another group, or as of :func:`load_config`.
    """
    values = config_values(config)
    for text in settings:
        parsed = _parse_setting(text)
        if not parsed.keys() <= set(PACE_GROUPS):
            may = ", ".join(f"[{name}]" for name in PACE_GROUPS)
            raise ConfigError(
                f"--set {text}: a campaign keeps the settings that its result depends on; those of "
                f"{may} may change, and for others there is `campaign start`"
            )
        _merge(values, parsed)
    return build_config(values)


def config_values(config: CampaignConfig) -> Json:
    """The nested values of ``config``, JSON- and TOML-able."""
    values: Json = json.loads(json.dumps(asdict(config)))
    return values


def flat_values(values: Mapping[str, Any], prefix: str = "") -> Json:
    """Nested ``values`` by their dotted names."""
    flat: Json = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= flat_values(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def config_digest(config: CampaignConfig) -> str:
    """12 hex digits of the settings that results depend on: the same ones have the same."""
    values = config_values(config)
    decisive = {name: group for name, group in values.items() if name not in PACE_GROUPS}
    canonical = json.dumps(decisive, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:_DIGEST_LENGTH]


def format_toml(values: Mapping[str, Any]) -> str:
    """``values`` as TOML."""
    return tomli_w.dumps(values)


def read_toml(path: Path) -> Json:
    """The tables of a TOML file.

    Raises:
        ConfigError: the file is missing, unreadable or not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text in UTF-8"
        raise ConfigError(f"cannot read {path}: {reason}") from error
    except (ValueError, RecursionError) as error:  # or a number of thousands of digits
        raise ConfigError(f"{path} is not TOML: {error}") from error


@cache
def _configurations() -> TypeAdapter[CampaignConfig]:
    return TypeAdapter(CampaignConfig)


def _read_preset(name: str) -> Json:
    if name not in preset_names():
        raise ConfigError(f"unknown preset {name!r}; known: {', '.join(preset_names())}")
    return tomllib.loads((_PRESETS / f"{name}.toml").read_text(encoding="utf-8"))


def _read_file(path: Path) -> Json:
    values = read_toml(path)
    # A campaign's own campaign.toml can be used as a configuration for the next one.
    for table in ("identity", "origin"):
        values.pop(table, None)
    return values


def _parse_setting(text: str) -> Json:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"--set takes name=value, got {text!r}; e.g. training.batch_size=512")
    try:
        table = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        table = {"value": value.strip()}  # a bare word is a string
    if len(table) > 1:
        raise ConfigError(f"--set takes one setting, got {text!r}; repeat --set for another")
    return _nested(name.strip(), table["value"])


def _nested(name: str, value: object) -> Json:
    """``value`` under its dotted ``name``."""
    for part in reversed(name.split(".")):
        value = {part: value}
    assert isinstance(value, dict)
    return value


def _parse(text: str) -> object:
    """The value that Python wrote as ``text``, or as JSON."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError) as error:
        raise ConfigError(f"{text!r} is no value of a setting") from error


def _merge(onto: Json, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, Mapping) and isinstance(onto.get(key), dict):
            _merge(onto[key], value)
        else:
            onto[key] = dict(value) if isinstance(value, Mapping) else value


def _refuse_unknown(values: Mapping[str, Any], owner: type, prefix: str) -> None:
    types = get_type_hints(owner)
    known = [f.name for f in fields(owner)]
    for key, value in values.items():
        name = prefix + key
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {prefix}{close[0]}?" if close else f"known: {', '.join(known)}"
            raise ConfigError(f"unknown setting {name}; {hint}")
        if is_dataclass(types[key]):
            if not isinstance(value, Mapping):
                raise ConfigError(f"{name} is a group of settings; set one of them, {name}.…")
            _refuse_unknown(value, types[key], prefix=f"{name}.")
