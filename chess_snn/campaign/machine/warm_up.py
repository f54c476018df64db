"""Compile every kernel a campaign uses, and measure its network, once a machine."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import torch

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.data import GameRecords, ReplayWindow, write_shard
from chess_snn.devices import find_devices, is_gpu
from chess_snn.evaluation.matches import play_match
from chess_snn.evaluation.named_players import make_player
from chess_snn.evaluation.openings import choose_openings
from chess_snn.evaluation.players import SearchPlayer
from chess_snn.games import Game, get_game
from chess_snn.nets import build_network, freeze, make_evaluator
from chess_snn.nets.cpu.calibration import calibrate, is_calibrated
from chess_snn.nets.inference import usual_layers
from chess_snn.search import PolicySearch, make_search, make_tree_search
from chess_snn.self_play import play_games
from chess_snn.training import IterationPlan, Trainer

_SIMULATIONS = 2


def warm_up(config: CampaignConfig) -> None:
    """Do a little of everything: two short games, a shard, one optimiser step, one short match.

    How its network is best run on a CPU is measured too. Takes about 30 s the first time on a
    machine and after an update, and about 1 s with kernels and measurement in the cache.

    Raises:
        ConfigError: this machine is to play, and its device cannot have the network's precision.
    """
    game = get_game(config.campaign.game)
    precision, shape = config.net.precision, config.net.network()
    device = find_devices(config.execution.device)[0]
    if config.cluster.kind == "local":  # elsewhere other machines' devices play
        usual_layers(game.spec, shape, precision, torch.device(device))
    network = build_network(game.spec, shape, seed=0)
    with make_evaluator(network, precision=precision) as evaluator:
        search = make_search(
            game, evaluator, config.search, simulations=_SIMULATIONS, num_games=2
        )
        settings = replace(config.self_play, max_plies_first=2, max_plies_last=2)
        records, _ = play_games(game, [search], settings, num_games=2, seed=0)
        in_tree = make_tree_search(
            game, evaluator, config.search, simulations=_SIMULATIONS, num_games=2
        )
        openings = choose_openings(game, "random", 1, num_plies=1, seed=0)
        for opponent in ("random", "greedy", *config.evaluation.opponents):
            play_match(
                game, SearchPlayer(in_tree, "warm-up"), make_player(game, opponent), openings,
                seed=0, max_plies=2,
            )
        PolicySearch(game, evaluator).run(
            game.allocate(0), np.empty(0, np.uint64), np.empty(0, np.int32),
            np.empty(0, np.float32),
        )
    if not is_gpu(device) and not is_calibrated(game.spec, shape, precision):
        calibrate(freeze(network, precision))
    trainer = Trainer(game, network, config.training, seed=0)
    trainer.run(
        scratch_window(game, records),
        IterationPlan(num_steps=1, progress_first=0.0, progress_last=1.0),
    )


_NONE_HELD_OUT: Final = 1_000_000


def scratch_window(game: Game, records: GameRecords) -> ReplayWindow:
    """The window of ``records`` and nothing else, none held out; nothing stays on the disk."""
    with tempfile.TemporaryDirectory() as scratch:
        shard = Path(scratch) / "shard"
        write_shard(shard, records, {"game": game.spec.name})
        return ReplayWindow.load(
            game, [shard], capacity=records.num_positions, holdout_every=_NONE_HELD_OUT
        )
