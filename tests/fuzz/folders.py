"""Folders that file parsers read from: one campaign and a few others, written once a process."""

import os
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import made_campaigns
import numpy as np
from stored_shards import as_folder

from chess_snn.campaign import CampaignFolder, Receipt, read_receipt
from chess_snn.campaign.store.receipts import PromotionFacts
from chess_snn.campaign.strength.champions import promote_by_hand
from chess_snn.data import write_shard
from chess_snn.evaluation import GreedyPlayer, RandomPlayer, book_openings, play_match
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, build_network, save_network
from chess_snn.pgn import read_games
from chess_snn.pgn.folder import ImportFolder

GAME = get_game("chess")
PGN = b'[Event "a"]\n[Result "0-1"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n\n1. e4 *\n\n1. d4 d5 1/2-1/2\n'


@cache
def scratch() -> Path:
    """In memory where the system has room there; gone when the process ends."""
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) else None
    _KEPT.append(tempfile.TemporaryDirectory(prefix="chess-snn-fuzz-", dir=where))
    return Path(_KEPT[-1].name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


@cache
def campaign() -> CampaignFolder:
    """Two finished iterations, the second evaluated; a champion chosen by hand."""
    folder = made_campaigns.make_campaign(scratch() / "campaign")
    for iteration in range(2):
        made_campaigns.finish(folder, iteration)
    promote_by_hand(folder, 1, "me", "why not")
    return folder


@cache
def receipts() -> tuple[Receipt, ...]:
    """Of the second iteration: as it stands there, and one with all that a receipt may hold."""
    plain = read_receipt(campaign(), 1)
    games = PromotionFacts(
        candidate=2, champion=1, verdict="accept", llr=3.0, lower=-2.9, upper=2.9, elo0=0.0,
        elo1=75.0, simulations=0, games=4, wins=3, draws=1, losses=0, capped=0,
        pairs=[0, 0, 0, 1, 1], score=0.875,
    )
    rating = {"elo": 120.0, "elo_low": 80.0, "elo_high": None, "games": 60, "opponents": 3}
    return plain, replace(plain, promotion=games, rating=rating)


@cache
def shard() -> Path:
    """Two games."""
    records, _ = read_games(PGN)
    assert records is not None
    write_shard(scratch() / "shard", records, {"game": "chess", "iteration": 0, "generation": 0})
    return scratch() / "shard"


@cache
def shard_folder() -> Path:
    """The same games as an earlier version stored them."""
    return as_folder(shard(), scratch() / "shard-folder")


@cache
def imported() -> ImportFolder:
    """An import that is finished."""
    _, report = read_games(PGN)
    folder = ImportFolder.create(scratch() / "imported", "a.pgn", "0123456789ab" * 6, 1000)
    folder.finish(report)
    return folder


@cache
def match() -> MatchResult:
    """Four short games."""
    states = book_openings(GAME, 2, seed=1)
    return play_match(
        GAME, RandomPlayer(), GreedyPlayer(GAME), np.asarray(states), seed=1, max_plies=12
    )


@cache
def weights() -> Path:
    """The smallest network there is."""
    path = scratch() / "weights.safetensors"
    config = NetConfig(blocks=1, channels=1, ticks=1, value_channels=1, value_hidden=1)
    save_network(path, build_network(GAME.spec, config, seed=1))
    return path
