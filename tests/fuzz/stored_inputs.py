"""Inputs of parsers of files: one campaign and a few other files, written once a process."""

from functools import cache
from pathlib import Path

import small_campaigns
from damaged_inputs import scratch

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.strength.champions import promote_by_hand
from chess_snn.data import staged_folder, write_shard
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, build_network, save_network
from chess_snn.pgn.folder import ImportFolder, ImportSource
from chess_snn.pgn.reading import read_games

GAME = get_game("chess")
PGN = b'[Event "a"]\n[Result "0-1"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n\n1. e4 *\n\n1. d4 d5 1/2-1/2\n'


@cache
def stored_campaign() -> CampaignFolder:
    """Two finished iterations, the second evaluated; a champion chosen by hand."""
    folder = small_campaigns.make_campaign(scratch() / "campaign")
    for iteration in range(2):
        small_campaigns.finish(folder, iteration)
    promote_by_hand(folder, 1, "me", "why not")
    return folder


@cache
def stored_shard() -> Path:
    """Two games."""
    records, _ = read_games(PGN)
    assert records is not None
    write_shard(scratch() / "shard", records, {"game": "chess", "iteration": 0, "generation": 0})
    return scratch() / "shard"


@cache
def stored_folder() -> Path:
    """A committed folder of two files."""
    with staged_folder(scratch() / "folder") as stage:
        (stage.path / "inner").mkdir()
        for name in ("a", "inner/b"):
            (stage.path / name).write_text(name)
        stage.commit("test", {"game": "chess"})
    return scratch() / "folder"


@cache
def stored_import() -> ImportFolder:
    _, report = read_games(PGN)
    source = ImportSource("a.pgn", "0123456789ab", 1000)
    folder = ImportFolder.create(scratch() / "imported", source)
    folder.finish(report)
    return folder


@cache
def stored_weights() -> Path:
    """The smallest network there is."""
    path = scratch() / "weights.safetensors"
    config = NetConfig(blocks=1, channels=1, ticks=1, value_channels=1, value_hidden=1)
    save_network(path, build_network(GAME.spec, config, seed=1))
    return path
