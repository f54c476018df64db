"""Folders of imported games, put there by the library's own functions; no process is started."""

import hashlib
from dataclasses import replace
from pathlib import Path

from benchmarks.random_data import play_random_games
from chess_snn.campaign import CampaignConfig
from chess_snn.campaign.stages.dataset import fix_dataset
from chess_snn.data import GameRecords, write_shard
from chess_snn.games import get_game
from chess_snn.pgn.folder import ImportFolder, ImportSource
from chess_snn.pgn.report import ImportReport

GAMES_EACH = 12


def fixed_games(config: CampaignConfig) -> CampaignConfig:
    """``config`` with the path and the digest of the games that it names."""
    fixed = fix_dataset(config.supervised, config.campaign.game)
    return replace(config, supervised=fixed)


class Killed(BaseException):
    """Stands for kill -9: nothing catches it."""


def make_import(path: Path, num_shards: int = 2, *, finished: bool = True, **meta) -> Path:
    """Shards of 12 games each, the longer the later; ``meta`` goes on the last one."""
    content = hashlib.sha256(b"").hexdigest()[:12]
    folder = ImportFolder.create(path, ImportSource("some.pgn", content, GAMES_EACH))
    for index in range(num_shards):
        changes = meta if index == num_shards - 1 else {}
        records = easy_games(GAMES_EACH, ply_cap=20 + 4 * index)
        write_shard(folder.shard(index), records, {"game": "chess"} | changes)
    if finished:
        folder.finish(ImportReport())
    return path


def easy_games(num_games: int, ply_cap: int) -> GameRecords:
    """Positions of random games, in each of which the first legal action is said to be played."""
    game = get_game("chess")
    records = play_random_games(game, num_games, ply_cap)
    legal_actions, _ = game.legal_actions(records.states)
    first = legal_actions[:, 0].copy()
    return replace(records, actions=first, target_actions=first)
