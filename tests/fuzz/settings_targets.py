"""Configurations as people write them: TOML, ``--set``, a campaign's own file, players by name."""

import contextlib
import random
import tomllib
from typing import Any

import folders
import tomli_w
from fuzzing import Target, Verdict
from mutation import change_value, octets, one_of, words
from position_targets import text_of

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.configuration.loading import (
    build_config,
    config_values,
    format_toml,
    preset_names,
)
from chess_snn.campaign.store.folder import CONFIG_FILE
from chess_snn.cli.players import find_entrant
from chess_snn.errors import ConfigError, EngineError
from chess_snn.evaluation import EngineSettings, check_player, make_player
from chess_snn.games import get_game

GAME = get_game("chess")


def try_config(data: bytes) -> Verdict:
    """A file: what is accepted says all of itself again, and the same when it is read again."""
    path = folders.scratch() / "config.toml"
    path.write_bytes(data)
    config = load_config(file=path)
    values = config_values(config)
    assert build_config(tomllib.loads(format_toml(values))) == config
    return Verdict(True, str(_changed(values)))


def try_setting(data: bytes) -> Verdict:
    """One ``--set``: it changes the setting that it names, and no other."""
    text = text_of(data)
    changed = _changed(config_values(load_config(settings=[text])))
    name = text.partition("=")[0].strip()
    assert not changed or all(
        setting == name or setting.startswith(f"{name}.") for setting in changed
    ), f"{name} changed {changed}"
    return Verdict(True, tuple(changed))


def try_campaign(data: bytes) -> Verdict:
    """A campaign's frozen configuration and identity."""
    path = folders.scratch() / "opened"
    path.mkdir(exist_ok=True)
    (path / CONFIG_FILE).write_bytes(data)
    folder = CampaignFolder.open(path)
    assert len(folder.campaign_id) == 32
    assert folder.campaign_id.isalnum()
    return Verdict(True, str(_changed(config_values(folder.config))))


def try_player(data: bytes) -> Verdict:
    """A name: whoever answers to it is called by a name that is understood again."""
    text = text_of(data)
    check_player(GAME, text)
    try:
        player = make_player(GAME, text, EngineSettings(1))
    except EngineError:
        return Verdict(True, "not installed")
    except ConfigError as error:
        raise AssertionError("refused by make_player alone") from error
    check_player(GAME, player.name)
    return Verdict(True, type(player).__name__)


def try_entrant(data: bytes) -> Verdict:
    """A player of `chess-snn match`: by name, or a network by its place."""
    with contextlib.chdir(folders.campaign().path.parent):
        entrant = find_entrant(GAME, text_of(data), 0)
    assert entrant.name
    if entrant.model is not None:
        assert entrant.model.weights is not None
    return Verdict(True, (entrant.model is None, entrant.simulations, entrant.random_percent))


def _changed(values: dict[str, Any]) -> list[str]:
    """Names of settings that are not at their defaults."""
    return sorted(
        f"{group}.{name}" for group, settings in _DEFAULTS.items()
        for name, default in settings.items() if values[group][name] != default
    )


_DEFAULTS = config_values(load_config())


def _change_toml(stream: random.Random, data: bytes, other: bytes) -> bytes:
    """Values changed and written again; what is no TOML has its octets changed."""
    try:
        values = tomllib.loads(data.decode())
        for _ in range(stream.choice((1, 1, 2))):
            values = change_value(stream, values)
        return tomli_w.dumps(values).encode("utf-8", "surrogatepass")
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return octets(TOML_WORDS)(stream, data, other)


TOML_WORDS = (
    b"true", b"false", b"inf", b"nan", b"-1", b"0", b"0.5", b"1e400", b"0x" + b"f" * 40,
    b"9" * 5000, b"1979-05-27", b"07:32:00", b"[" * 3000, b"{a=1}", b'"""', b"'", b'"auto"', b"#",
    b"=", b".", b"\n", b"\nnet.size = 'base'", b"[net]", b"[[net]]", b"campaign.iterations",
    b"evaluation.opponents", b'["random"]', b'["uci:\\u0000@1"]', b"__class__", b"identity",
)
PLAYERS = (
    "random", "greedy", "minimax:2", "stockfish@1000", "stockfish:depth=1", "greedy~25",
    "stockfish:depth=1~75.5", "uci:/path/to/engine@100", "uci:engine:depth=8",
)
NETWORKS = (
    "campaign", "campaign@1", "campaign@champion", "campaign@2:16",
    "campaign/checkpoints/gen-000001", "weights.safetensors", "weights.safetensors~25", "shard",
    "random", "stockfish@100",
)
PLAYER_WORDS = (
    b"random", b"greedy", b"minimax", b"stockfish", b"uci", b":", b"@", b"~", b"=", b"nodes",
    b"depth", b"1", b"0", b"100", b"99.999", b"1e3", b"-1", b"999999999999", b"9999999999999",
    b"/", b"..", b"~/x", b"\0", b"\n", b"\xd9\xa3", b"9" * 400,
)


def _settings() -> list[bytes]:
    names = [f"{group}.{name}" for group, values in _DEFAULTS.items() for name in values]
    texts = [
        f"{name} = {format_toml({'v': _DEFAULTS[name.split('.')[0]][name.split('.')[1]]})[4:]}"
        for name in names
    ]
    return [text.strip().encode() for text in texts]


def _networks() -> list[bytes]:
    folders.campaign(), folders.weights(), folders.shard()
    return [name.encode() for name in NETWORKS]


def _config_files() -> list[bytes]:
    presets = [format_toml(config_values(load_config(preset))) for preset in preset_names()]
    return [text.encode() for text in presets]


_TOML = one_of((3, _change_toml), (1, octets(TOML_WORDS)), (1, words(TOML_WORDS)))

TARGETS = (
    Target("config", try_config, _TOML, _config_files, weight=70),
    Target("setting", try_setting, one_of((1, octets(TOML_WORDS)), (1, words(TOML_WORDS))),
           _settings, weight=70),
    Target("campaign", try_campaign, _TOML,
           lambda: [(folders.campaign().path / CONFIG_FILE).read_bytes()], weight=40),
    Target("player", try_player, one_of((2, octets(PLAYER_WORDS)), (1, words(PLAYER_WORDS))),
           lambda: [name.encode() for name in PLAYERS], weight=60),
    Target("entrant", try_entrant, one_of((2, octets(PLAYER_WORDS)), (1, words(PLAYER_WORDS))),
           _networks, weight=40),
)
