"""Settings as people write them: TOML, ``--set``; players and networks by name."""

import contextlib
import tomllib
from functools import cache

import pytest
import tomli_w
from damaged_inputs import (
    changed_bytes,
    changed_json,
    changed_words,
    either,
    fuzz,
    scratch,
    text_of,
)
from stored_inputs import stored_campaign, stored_shard, stored_weights

from chess_snn.api.matches import player
from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.configuration.loading import (
    build_config,
    config_values,
    format_toml,
)
from chess_snn.campaign.store.folder import CONFIG_FILE
from chess_snn.errors import ConfigError, EngineError
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.named_players import check_player, make_player
from chess_snn.games import get_game
from chess_snn.known import PRESETS

GAME = get_game("chess")
_WORDS = (
    b"true", b"false", b"inf", b"nan", b"-1", b"0", b"0.5", b"1e400", b"0x" + b"f" * 40,
    b"9" * 5000, b"1979-05-27", b"07:32:00", b"[" * 3000, b"{a=1}", b'"""', b"'", b'"auto"', b"#",
    b"=", b".", b"\n", b"\nnet.size = 'base'", b"[net]", b"[[net]]", b"campaign.iterations",
    b"evaluation.opponents", b'["random"]', b'["uci:\\u0000@1"]', b"__class__", b"identity",
)
_PLAYERS = (
    b"random", b"greedy", b"minimax:2", b"stockfish@1000", b"stockfish:depth=1", b"greedy~25",
    b"stockfish:depth=1~75.5", b"uci:/path/to/engine@100", b"uci:engine:depth=8",
)
_NETWORKS = (
    b"campaign", b"campaign@1", b"campaign@champion", b"campaign@2:16",
    b"campaign/checkpoints/gen-000001", b"weights.safetensors", b"weights.safetensors~25", b"shard",
)
_NAME_PARTS = (
    b"random", b"greedy", b"minimax", b"stockfish", b"uci", b":", b"@", b"~", b"=", b"nodes",
    b"depth", b"1", b"0", b"100", b"99.999", b"1e3", b"-1", b"999999999999", b"9999999999999",
    b"/", b"..", b"~/x", b"\0", b"\n", b"\xd9\xa3", b"9" * 400,
)


def _write_toml(values):
    """Write it as TOML; what TOML cannot hold, such as null, as its JSON-like text."""
    try:
        return tomli_w.dumps(values).encode("utf-8", "surrogatepass")
    except (ValueError, TypeError, AttributeError, OverflowError):
        return repr(values).encode("utf-8", "surrogatepass")


changed_toml = either(
    changed_json(_write_toml, read=lambda data: tomllib.loads(data.decode())),
    changed_bytes(*_WORDS), changed_words(*_WORDS),
)
changed_name = either(changed_bytes(*_NAME_PARTS), changed_words(*_NAME_PARTS))


@cache
def _defaults():
    return config_values(load_config())


def _changed(values):
    """Names of the settings that are not at their defaults."""
    return [
        f"{group}.{name}" for group, settings in _defaults().items()
        for name, default in settings.items() if values[group][name] != default
    ]


@fuzz(
    lambda: [format_toml(config_values(load_config(p))).encode() for p in PRESETS],
    changed_toml,
)
def test_config_file(data):
    """The settings of an accepted file are the same when they are written and read again."""
    path = scratch() / "config.toml"
    path.write_bytes(data)
    config = load_config(file=path)
    assert build_config(tomllib.loads(format_toml(config_values(config)))) == config


@fuzz(
    lambda: [
        f"{group}.{name} = {format_toml({'v': value})[4:]}".strip().encode()
        for group, settings in _defaults().items() for name, value in settings.items()
    ],
    either(changed_bytes(*_WORDS), changed_words(*_WORDS)),
)
def test_one_setting(data):
    """``--set`` changes the setting that it names, and no other."""
    text = text_of(data)
    changed = _changed(config_values(load_config(settings=[text])))
    name = text.partition("=")[0].strip()
    assert all(f"{setting}.".startswith(f"{name}.") for setting in changed), (name, changed)


@fuzz(lambda: [(stored_campaign().path / CONFIG_FILE).read_bytes()], changed_toml)
def test_campaign_identity(data):
    path = scratch() / "opened"
    path.mkdir(exist_ok=True)
    (path / CONFIG_FILE).write_bytes(data)
    folder = CampaignFolder.open(path)
    assert len(folder.campaign_id) == 32
    assert folder.campaign_id.isalnum()


@fuzz(lambda: _PLAYERS, changed_name, b"greedy" + b"~10" * 1000, b"minimax:2 mini\r\n" * 50)
def test_player_name(data):
    """An accepted name makes a player whose own name is accepted again."""
    text = text_of(data)
    check_player(GAME, text)
    try:
        player = make_player(GAME, text, EngineSettings(1))
    except EngineError:  # it is not installed
        return
    except ConfigError:
        pytest.fail("refused by make_player alone")
    check_player(GAME, player.name)


@fuzz(
    lambda: [stored_campaign() and stored_weights() and stored_shard() and b"random", *_NETWORKS],
    changed_name,
)
def test_match_player_name(data):
    """A player of ``chess-snn match``, by name, or a network by its place."""
    with (
        contextlib.chdir(scratch()),
        player(text_of(data), game=GAME.spec.name, simulations=0) as named,
    ):
        assert named.name
        assert named.game == GAME.spec.name
