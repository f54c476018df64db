"""Read presets, files and ``--set a.b=v`` into a :class:`CampaignConfig`, and write it as TOML.

Later sources win: defaults, preset, file, single settings. Nothing unknown is ignored, except that
a campaign's own file may still have settings that were removed.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, time
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeAlias

import tomli_w
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from chess_snn.campaign.configuration.pace import PACE_GROUPS
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.data import json_digest
from chess_snn.errors import ConfigError
from chess_snn.known import PRESETS
from chess_snn.nets import net_config
from chess_snn.settings import setting_fields
from chess_snn.types import Json
from chess_snn.wording import names_hint

_PRESETS = resources.files("chess_snn.campaign.configuration") / "presets"
_DIGEST_LENGTH = 12
_OF_ONE_CAMPAIGN: Final = ("identity", "origin")
"""Tables of a campaign's file that are no settings."""
_MOST_BYTES = 1 << 20
"""Limit of a file of settings; a sparse one could be larger than the memory."""
_REMOVED: Final = {
    **dict.fromkeys((
        "cluster.wait_s", "execution.retries", "net.value_channels", "net.value_hidden",
        "search.visit_offset", "search.unvisited_reduction", "self_play.mismatch_plies",
        "self_play.restart_value_limit", "training.clip_norm", "training.advantage_clip",
        "training.window_exponent", "training.surprise_cap", "training.mirror",
        "training.entropy_bonus",
        "evaluation.opening_plies", "promotion.alpha", "promotion.beta", "promotion.simulations",
    ), "leave it out: the value that it had by default is fixed now"),
    **dict.fromkeys((
        "self_play.resignation", "self_play.resignation_error_limit",
        "self_play.resignation_played_on",
    ), "games end by the rules, or at self_play.max_plies_last"),
    **dict.fromkeys(("cluster.training_machines", "cluster.trust_network"),
                    "start training on several machines by torchrun: docs/cluster.md"),
    **dict.fromkeys(("cluster.shared_storage", "storage.worker_cache_mib"),
                    "share the campaign's folder with its workers: docs/cluster.md"),
    **dict.fromkeys(("storage.object_store", "storage.endpoint", "storage.patience_s"),
                    "copy the folder with rclone or aws s3 sync: docs/reliability.md"),
    **dict.fromkeys(("net.blocks", "net.channels"), 'net.size = "8x96" has blocks and channels'),
    "evaluation.ladder_test_pairs": "evaluation.ladder_test_games decides",
    "execution.self_play_device": "self-play and training use execution.device",
    "execution.workers_per_device": "execution.workers is the number on all devices together",
    "net.policy_gain": "net.readout_gain is the initial scale of policy and values",
    "training.policy_loss": "the policy target is learnt; games without search have that of "
                            "self_play.teacher",
    "training.any_tick": "play with fewer ticks by NETWORK#ticks=N",
}
"""Settings that were removed, and the replacement; campaigns are read without them."""

Setting: TypeAlias = str | tuple[str, object]
"""A text such as ``training.batch_size=512``, or a dotted name and its value."""


def load_config(
    preset: str | None = None,
    file: Path | None = None,
    settings: Sequence[Setting] = (),
    *,
    network: Json | None = None,
    over_preset: Sequence[Setting] = (),
) -> CampaignConfig:
    """Build a configuration; later sources and later ``settings`` win.

    ``network`` replaces the preset's settings of the network. The preset's precision stays where
    ``network`` names none and has neurons that spike. ``over_preset`` wins over the preset alone.

    Raises:
        ConfigError: an unknown preset or setting, an unreadable file, a value out of range.
    """
    values: Json = {}
    if preset is not None:
        _merge(values, _read_preset(preset))
    if network is not None:
        keeps = ("precision",) if network.get("activation") != "relu" else ()
        preset_net = values.get("net", {})
        values["net"] = {n: v for n, v in preset_net.items() if n in keeps} | network
    _merge_settings(values, over_preset)
    if file is not None:
        _merge(values, _read_file(file))
    return _with_settings(values, settings)


def build_config(values: Mapping[str, Any]) -> CampaignConfig:
    """The configuration with the stored, nested ``values``; a missing one has its default.

    Raises as :func:`load_config`.
    """
    return _build(_of_present_version(values))


def _build(values: Mapping[str, Any]) -> CampaignConfig:
    owners = {name: field.annotation for name, field in setting_fields(CampaignConfig).items()}
    groups = {}
    try:
        for name, group in values.items():
            owner = owners.get(name)
            if owner is not None and not isinstance(group, Mapping):
                raise ConfigError(f"{name} is a group of settings; set one of them, {name}.…")
            groups[name] = group if owner is None else owner(**group)
        return CampaignConfig(**groups)
    except RecursionError as error:
        raise ConfigError("a setting is nested deeper than any setting is") from error


def changed_config(config: CampaignConfig, settings: Sequence[Setting]) -> CampaignConfig:
    """``config`` with other settings. Raises as :func:`load_config`."""
    return _with_settings(config_values(config), settings)


def change_pace(config: CampaignConfig, settings: Sequence[Setting]) -> CampaignConfig:
    """``config`` with other settings of ``PACE_GROUPS``.

    Raises:
        ConfigError: a setting of another group, or as of :func:`load_config`.
    """
    for name, _ in map(_name_and_value, settings):
        if name.partition(".")[0] not in PACE_GROUPS:
            may = ", ".join(f"[{group}]" for group in PACE_GROUPS)
            raise ConfigError(
                f"{name} cannot change in a campaign, because its result depends on it; only "
                f"settings of {may} may change; for others use `campaign start` or `campaign fork`"
            )
    return changed_config(config, settings)


def config_values(config: CampaignConfig) -> Json:
    """The nested values of ``config``, JSON- and TOML-able."""
    values: Json = to_jsonable_python(asdict(config))
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


def first_difference(before: Json, now: Json) -> str | None:
    """``seed = 1, which is 2 now``: the first dotted name whose values differ; None if none do."""
    old, new = flat_values(before), flat_values(now)
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            return f"{name} = {old.get(name)!r}, which is {new.get(name)!r} now"
    return None


def setting_field(name: str) -> FieldInfo:
    """The field of a setting by its dotted ``name``."""
    group, _, field = name.partition(".")
    return setting_fields(setting_fields(CampaignConfig)[group].annotation)[field]


def config_digest(config: CampaignConfig) -> str:
    """12 hex digits of the settings that results depend on: the same ones have the same."""
    values = config_values(config)
    decisive = {name: group for name, group in values.items() if name not in PACE_GROUPS}
    return json_digest(decisive)[:_DIGEST_LENGTH]


def format_toml(values: Mapping[str, Any]) -> str:
    """``values`` as TOML."""
    return tomli_w.dumps(values)


def read_toml(path: Path) -> Json:
    """The tables of a TOML file. Raises as :func:`read_text` and :func:`parse_toml`."""
    return parse_toml(read_text(path), path)


def read_text(path: Path) -> str:
    """The content of ``path``.

    Raises:
        ConfigError: the file is missing, unreadable, not text, or far too large.
    """
    try:
        if (num_bytes := path.stat().st_size) > _MOST_BYTES:
            raise ConfigError(f"{path} has {num_bytes:,} bytes; settings have a few thousand")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text in UTF-8"
        raise ConfigError(f"cannot read {path}: {reason}") from error


def parse_toml(text: str, path: Path) -> Json:
    """The tables of ``text``, the content of ``path``.

    Raises:
        ConfigError: it is not TOML.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # or a number of thousands of digits
        raise ConfigError(f"{path} is not TOML: {error}") from error


def _read_preset(name: str) -> Json:
    if name not in PRESETS:
        raise ConfigError(f"unknown preset {name!r}; {names_hint(name, PRESETS)}")
    return tomllib.loads((_PRESETS / f"{name}.toml").read_text(encoding="utf-8"))


def _read_file(path: Path) -> Json:
    values = read_toml(path)
    if "identity" in values:  # a campaign's own file can be the configuration of the next one
        return _of_present_version({k: v for k, v in values.items() if k not in _OF_ONE_CAMPAIGN})
    for name in flat_values(values):
        _refuse_removed(name)
    return values


def _with_settings(values: Json, settings: Sequence[Setting]) -> CampaignConfig:
    _merge_settings(values, settings)
    return _build(values)


def _merge_settings(onto: Json, settings: Sequence[Setting]) -> None:
    for setting in settings:
        _merge(onto, _nested(*_name_and_value(setting)))


def _name_and_value(setting: Setting) -> tuple[str, object]:
    if not isinstance(setting, str):
        _refuse_removed(setting[0])
        return setting
    name, equals, value = setting.partition("=")
    _refuse_removed(name.strip())
    if not equals or not name.strip():
        raise ConfigError(f"--set takes name=value, got {setting!r}; e.g. training.batch_size=512")
    try:
        table = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        table = {"value": value.strip()}  # a bare word is a string
    if isinstance(table["value"], date | time):  # no setting has one, but a name may look like one
        table["value"] = value.strip()
    if len(table) > 1:
        raise ConfigError(f"--set takes one setting, got {setting!r}; repeat --set for another")
    return name.strip(), table["value"]


def _refuse_removed(name: str) -> None:
    if name in _REMOVED:
        raise ConfigError(f"{name} is gone: {_REMOVED[name]}")


def _nested(name: str, value: object) -> Json:
    """``value`` under its dotted ``name``."""
    for part in reversed(name.split(".")):
        value = {part: value}
    assert isinstance(value, dict)
    return value


def _merge(onto: Json, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, Mapping) and isinstance(onto.get(key), dict):
            _merge(onto[key], value)
        else:
            onto[key] = dict(value) if isinstance(value, Mapping) else value


def _of_present_version(values: Mapping[str, Any]) -> Json:
    """``values`` without removed settings; a size in two of them becomes one text."""
    present: Json = dict(values)
    for name, group in values.items():
        if isinstance(group, Mapping):
            present[name] = {key: group[key] for key in group if f"{name}.{key}" not in _REMOVED}
            if group and not present[name]:
                del present[name]  # the group may be gone too
    net = values.get("net")
    if isinstance(net, Mapping) and (net.get("blocks") or net.get("channels")):
        shape = net_config(str(net.get("size", "tiny")))
        kept = present.setdefault("net", {})
        kept["size"] = (
            f'{net.get("blocks") or shape.blocks}x{net.get("channels") or shape.channels}'
        )
        if net.get("activation", "lif") == "lif":
            kept["ticks"] = net.get("ticks") or shape.ticks
    return present
