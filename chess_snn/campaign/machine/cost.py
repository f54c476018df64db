"""Cost of an iteration: its seconds from games, simulations and the network's pace.

Self-play asks the network once for a position and once for every simulation; training presents
every new position a fixed number of times. So two paces of a machine, evaluations/s and samples/s,
give the length of an iteration.

The warm-up of a machine is here too: kernels are compiled once.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from chess_snn import nets, training
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.machine.training_launch import choose_ranks, training_gpus
from chess_snn.campaign.machine.workers import plan_here
from chess_snn.campaign.stages.networks import self_play_searches
from chess_snn.campaign.stages.self_play import label_played
from chess_snn.cores import num_cores
from chess_snn.data import GameRecords, ReplayWindow, write_shard
from chess_snn.devices import find_devices
from chess_snn.evaluation.matches import play_match
from chess_snn.evaluation.named_players import make_player
from chess_snn.evaluation.openings import choose_openings
from chess_snn.evaluation.players import SearchPlayer
from chess_snn.games import Game, get_game
from chess_snn.later import torch
from chess_snn.search import PolicySearch, make_search
from chess_snn.self_play import play_games
from chess_snn.training import IterationPlan
from chess_snn.types import Progress

OPTIMISM: Final = (1.2, 2.3)
"""Factors of the predicted duration that iterations of a campaign took, the quickest and the
slowest: few games are left at the end of a shard, and stages have to be started."""
_PARAMETER_BYTES: Final = 16
"""Size of a parameter in a checkpoint: the weight, its average, and two moments."""
_POSITION_BYTES: Final = 80
"""Largest size of a packed position with its policy; 40 to 75 were measured."""
_SERVICES_BYTES: Final = 7_000_000
"""Databases of a campaign's servers."""
_MEASURED_PLIES, _WARM_PLIES = 8, 1
_MEASURED_STEPS, _WARM_STEPS = 12, 3


@dataclass(frozen=True, slots=True)
class Pace:
    """Pace of this machine with one configuration."""

    evaluations_per_s: float
    """Evaluations of self-play, all workers together, with trees, rules and labels beside them.
    Positions that need no answer, since the game is over or won at once, count too."""
    samples_per_s: float
    """Samples of training."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of an iteration's stages that cannot be hidden behind one another."""

    positions: float
    """New ones."""
    self_play_s: float
    training_s: float

    @property
    def iteration_s(self) -> float:
        """Return the seconds of both."""
        return self.self_play_s + self.training_s

    @property
    def positions_per_s(self) -> float:
        """New positions a second of the iteration."""
        return self.positions / self.iteration_s


def measure_pace(
    config: CampaignConfig, on_progress: Progress | None = None
) -> Pace:
    """Play some plies as one worker of a campaign of ``config`` would, and train some steps.

    Takes some seconds. The other workers, and the other processes that share a step, are taken to
    be as fast at the same time. ``on_progress`` is called with (measurements done, 2).
    """
    slots = plan_here(config).slots
    records, evaluations_per_s = measure_self_play(
        config, slots[0].num_threads, num_workers=len(slots)
    )
    if on_progress is not None:
        on_progress(1, 2)
    num_ranks = choose_ranks(config, len(training_gpus(config))).number
    share = replace(config.training, batch_size=-(-config.training.batch_size // num_ranks))
    trained = measure_training(replace(config, training=share), records, num_cores())
    if on_progress is not None:
        on_progress(2, 2)
    return Pace(len(slots) * evaluations_per_s, num_ranks * trained.samples_per_s)


def measure_training(
    config: CampaignConfig, records: GameRecords, num_threads: int
) -> training.TrainingReport:
    """Train some steps on ``records`` with ``num_threads`` of the CPU; how that went."""
    torch.set_num_threads(num_threads)
    game, device = get_game(config.campaign.game), find_devices(config.execution.device)[0]
    network = nets.build_network(game.spec, config.net.network(), seed=0)
    trainer = training.Trainer(game, network, config.training, seed=0, device=device)
    plan = IterationPlan(_WARM_STEPS + _MEASURED_STEPS, progress_first=0.0, progress_last=1.0)
    window = scratch_window(game, records)
    trainer.run(window, plan, stop_at=_WARM_STEPS)
    return trainer.run(window, plan)


def measure_self_play(
    config: CampaignConfig, num_threads: int, num_workers: int = 1
) -> tuple[GameRecords, float]:
    """Play some plies as one worker with ``num_threads`` would; the records, and evaluations/s.

    The games of an iteration are divided among ``num_workers``.
    """
    game, device = get_game(config.campaign.game), find_devices(config.execution.device)[0]
    network = nets.build_network(game.spec, config.net.network(), seed=0)
    self_play = config.self_play
    shard_games = -(-self_play.games_per_iteration // self_play.num_shards(num_workers))
    num_games = min(self_play.concurrent_games, shard_games)
    simulations = config.search.simulations_first
    with nets.make_evaluator(
        network, device=device, precision=config.net.precision, num_threads=num_threads
    ) as evaluator:
        searches = self_play_searches(
            config, evaluator, device, num_threads, simulations, num_games
        )
        for plies in (_WARM_PLIES, _MEASURED_PLIES):
            settings = replace(config.self_play, max_plies_first=plies, max_plies_last=plies)
            records, statistics = play_games(
                game, searches, settings, num_games=num_games, seed=0
            )
    evaluations = statistics.positions * _evaluations_a_position(config, simulations)
    begun_s = time.perf_counter()
    records = label_played(config, records, num_threads)
    labelling_s = time.perf_counter() - begun_s
    return records, evaluations / (statistics.seconds + labelling_s)


def predict(config: CampaignConfig, pace: Pace, positions: float, simulations: int) -> Cost:
    """The cost of an iteration that plays ``positions`` with ``simulations`` a position."""
    evaluations = positions * _evaluations_a_position(config, simulations)
    samples = config.training.num_steps(round(positions)) * config.training.batch_size
    return Cost(positions, evaluations / pace.evaluations_per_s, samples / pace.samples_per_s)


def predict_campaign(
    config: CampaignConfig, pace_at: Callable[[float], Pace], mean_plies: float | None = None
) -> tuple[Cost, Cost]:
    """The cost of a campaign's first and last iteration; None takes games of the usual length.

    ``pace_at`` gives the pace after a share of the campaign: its network may grow.
    """
    mean_plies = mean_plies or get_game(config.campaign.game).spec.typical_plies
    positions = config.self_play.games_per_iteration * mean_plies
    first, last = (
        predict(config, pace_at(progress), positions, config.search.simulations(progress))
        for progress in (0.0, 1.0)
    )
    return first, last


def predict_bytes(config: CampaignConfig, iterations: float) -> int:
    """Disk space of a campaign of so many iterations of games of the usual length."""
    game = get_game(config.campaign.game).spec
    parameters = nets.num_parameters(game, config.net.at(1.0).network())
    positions = config.self_play.games_per_iteration * game.typical_plies
    return _SERVICES_BYTES + round(
        iterations * (_PARAMETER_BYTES * parameters + _POSITION_BYTES * positions)
    )


def _evaluations_a_position(config: CampaignConfig, simulations: int) -> int:
    """At most: the root's, and one for every simulation."""
    return 1 if config.search.kind == "policy" else 1 + simulations


_SIMULATIONS = 2


def warm_up(config: CampaignConfig) -> None:
    """Do a little of everything: two short games, a shard, one optimiser step, one short match.

    Takes about 30 s the first time on a machine and after an update, and about 1 s with kernels in
    the cache.

    Raises:
        ConfigError: this machine is to play, and its device cannot have the network's precision.
    """
    game = get_game(config.campaign.game)
    precision, shape = config.net.precision, config.net.network()
    device = find_devices(config.execution.device)[0]
    if config.cluster.kind == "local":  # elsewhere other machines' devices play
        nets.usual_layers(game.spec, shape, precision, torch.device(device))
    network = nets.build_network(game.spec, shape, seed=0)
    with nets.make_evaluator(network, precision=precision) as evaluator:
        search = make_search(
            game, evaluator, config.search, simulations=_SIMULATIONS, num_games=2
        )
        settings = replace(config.self_play, max_plies_first=2, max_plies_last=2)
        records, _ = play_games(game, [search], settings, num_games=2, seed=0)
        in_tree = make_search(
            game, evaluator, config.search, simulations=_SIMULATIONS, num_games=2, in_play=True
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
    trainer = training.Trainer(game, network, config.training, seed=0)
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
