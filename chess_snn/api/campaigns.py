"""Campaigns from Python: start one, and read its figures, networks and games.

Dimensions: m moves of a game, W words a state row.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chess_snn.api.network import Net, load
from chess_snn.api.positions import Move, moves_at
from chess_snn.campaign import CampaignConfig, CampaignFolder, load_config, read_receipts
from chess_snn.campaign.configuration.loading import Setting
from chess_snn.campaign.integrity.preflight import check_before_run
from chess_snn.campaign.machine.training_launch import choose_ranks, training_gpus
from chess_snn.campaign.machine.workers import config_here, plan_here
from chess_snn.campaign.models.starting import create_campaign, find_start
from chess_snn.campaign.stages.dataset import fix_dataset
from chess_snn.campaign.store.collection import (
    CollectedGame,
    GameCollection,
    games_of_iteration,
    open_collection,
)
from chess_snn.campaign.store.naming import claim_campaign_path
from chess_snn.campaign.viewing.recorded_games import game_positions, to_pgn
from chess_snn.campaign.viewing.results import result_rows
from chess_snn.errors import UsageError
from chess_snn.extras import load_extra
from chess_snn.games import get_game
from chess_snn.interrupts import interruptible
from chess_snn.training import SupervisedSettings
from chess_snn.types import Float32Array

if TYPE_CHECKING:
    import pandas as pd


def open_campaign(path: str | os.PathLike[str]) -> "Campaign":
    """The campaign in the folder ``path``; it may be running, here or elsewhere.

    Raises:
        CampaignError: the folder holds no campaign.
    """
    return Campaign(CampaignFolder.open(Path(path)))


def start_campaign(
    preset: str = "smoke", settings: Mapping[str, object] | None = None, *,
    seed: int | None = None, directory: str | os.PathLike[str] | None = None,
    start_from: str | None = None,
) -> "Campaign":
    """Start a campaign in a new folder, run it to its end, and return it.

    Ctrl-C stops it with a KeyboardInterrupt; everything committed is safe, and
    :meth:`Campaign.resume` goes on.

    Args:
        preset: the settings to begin with: ``smoke``, ``cpu``, ``cpu-2048``, …
        settings: changes by name, such as ``{"campaign.hours": 1}``.
        seed: of everything random; ``campaign.seed``.
        directory: the new folder; by default ``campaigns/<preset>-001`` and so on.
        start_from: the network that is generation 0, as :func:`chess_snn.load` takes it.

    Raises:
        ConfigError: a setting is unknown, or its value out of range.
        CampaignError: the folder holds something already.
        ExtraError: the extra ``orchestration`` is not installed.
    """
    flow = _flow()
    changes = [*(settings or {}).items(), *([] if seed is None else [("campaign.seed", seed)])]
    path = None if directory is None else Path(directory)
    campaign = Campaign(new_campaign(preset, changes, start_from=start_from, directory=path))
    campaign._run(flow)
    return campaign


class Campaign:
    """A campaign's folder: figures, networks and games. Nothing here changes it but a run."""

    def __init__(self, folder: CampaignFolder) -> None:
        self.folder = folder

    def __repr__(self) -> str:
        """Path and progress."""
        return f"<Campaign {self.path}: {self.game}, {self.iterations} iterations finished>"

    @property
    def path(self) -> Path:
        """The folder."""
        return self.folder.path

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def game(self) -> str:
        """``chess`` or ``2048``."""
        return self.folder.config.campaign.game

    @property
    def config(self) -> CampaignConfig:
        """All settings."""
        return self.folder.config

    @property
    def iterations(self) -> int:
        """Iterations that are finished."""
        return len(read_receipts(self.folder))

    @property
    def generations(self) -> list[int]:
        """Numbers of the networks in the folder, rising."""
        return self.folder.generations()

    def figures(self) -> "pd.DataFrame":
        """All figures as a pandas frame, one row a finished iteration, NaN where not measured.

        Rates, shares, scores and progress are in [0, 1], losses in nats, times in seconds.

        Raises:
            ExtraError: pandas is not installed; the extra ``orchestration`` brings it.
            CorruptDataError: a receipt is damaged.
        """
        pandas = load_extra("pandas", "orchestration")
        frame: pd.DataFrame = pandas.DataFrame(
            result_rows(self.folder, read_receipts(self.folder))
        )
        return frame

    def network(self, which: int | str | None = None, **place: Any) -> Net:
        """A network: by generation, ``"champion"``, or the newest (None).

        ``place`` is ``device``, ``precision`` and ``threads`` of :func:`chess_snn.load`.

        Raises:
            CampaignError: there is no such generation.
            CorruptDataError: it is damaged.
        """
        return load(str(self.path) if which is None else f"{self.path}@{which}", **place)

    def games(self, iteration: int | None = None) -> "Iterator[PlayedGame]":
        """The games of self-play, of one iteration or of all, in the order they were played.

        Raises:
            UsageError: there are none.
            CorruptDataError: a shard is damaged; it is named.
        """
        if iteration is None:
            collection = open_collection(self.path)
        else:
            collection = games_of_iteration(self.folder, iteration)
        if not collection.shards:
            raise UsageError(
                f"{self.path} has no games of iteration {iteration}; it has finished "
                f"{self.iterations} iterations, counted from 0"
            )
        return (
            PlayedGame(collection, collection.game(number + 1))
            for number in range(collection.num_games)
        )

    def resume(self) -> None:
        """Run what is left of it, to its end.

        Raises:
            CampaignLockedError: another process is running it.
            ExtraError: the extra ``orchestration`` is not installed.
        """
        self._run(_flow())

    def _run(self, flow: Any) -> None:
        check_before_run(self.folder)
        with interruptible():
            flow.launch_campaign(self.folder, _ignore)


@dataclass(frozen=True, eq=False)
class PlayedGame:
    """A game that a network played against itself, and what it learnt from it."""

    collection: GameCollection = field(repr=False)
    found: CollectedGame = field(repr=False)

    @property
    def iteration(self) -> int | None:
        """The iteration that played it."""
        return self.found.shard.iteration

    @property
    def ending(self) -> str:
        """The rule that ended it, such as ``checkmate``, or ``ply_cap`` if it was truncated."""
        return self.collection.ending(self.found.records, self.found.index)

    @property
    def outcome_white(self) -> int:
        """1 where White won, 0 drawn or truncated, -1 where Black won; 0 in 2048."""
        outcome: int = self.found.records.outcomes_white[self.found.index].item()
        return outcome

    @property
    def values_stm(self) -> Float32Array:
        """float32[m]: the search's value before each move, for the side to move, in rewards."""
        return self.found.records.values_stm[self._rows]

    @cached_property
    def positions(self) -> list[str]:
        """M + 1 texts (chess: FEN): before each move, and at the end."""
        positions: list[str] = self._replayed.positions
        return positions

    @cached_property
    def moves(self) -> list[Move]:
        """The m moves."""
        records, rows = self.found.records, self._rows
        return [
            moves_at(get_game(self.collection.spec.name), state, [action])[0]
            for state, action in zip(
                self._replayed.states[:-1], records.actions[rows].tolist(), strict=True
            )
        ]

    @cached_property
    def policies(self) -> list[dict[Move, float]]:
        """M policy targets: the weight of each move that has one; they sum to 1."""
        records, game = self.found.records, get_game(self.collection.spec.name)
        targets = []
        for ply, state in enumerate(self._replayed.states[:-1], start=self._rows.start):
            entries = slice(*records.target_offsets[ply : ply + 2])
            moves = moves_at(game, state, records.target_actions[entries].tolist())
            targets.append(
                dict(zip(moves, records.target_weights[entries].tolist(), strict=True))
            )
        return targets

    def pgn(self) -> str:
        """The game as PGN.

        Raises:
            UsageError: it is not one of chess.
        """
        if self.collection.spec.name != "chess":
            raise UsageError(
                f"PGN is for chess, and the game is one of {self.collection.spec.name}"
            )
        return to_pgn(self.collection, self.found)

    def __len__(self) -> int:
        """Number of moves, m."""
        return len(self.values_stm)

    @property
    def _rows(self) -> slice:
        first, end = self.found.records.game_offsets[self.found.index : self.found.index + 2]
        return slice(int(first), int(end))

    @cached_property
    def _replayed(self) -> Any:
        records, rows = self.found.records, self._rows
        return game_positions(
            get_game(self.collection.spec.name), records.states[rows], records.actions[rows]
        )


def new_campaign(
    preset: str, settings: Sequence[Setting], *, file: Path | None = None,
    start_from: str | None = None, with_games: bool = False, directory: Path | None = None,
    home: Path = Path("campaigns"), asks_server: bool = True,
    fix_games: Callable[[SupervisedSettings, str], SupervisedSettings] = fix_dataset,
) -> CampaignFolder:
    """Create a campaign, in ``directory`` or else in a folder of ``home`` called after its preset.

    Other arguments are those of :func:`check_before_create`, :func:`.load_config`,
    :func:`.find_start` and :func:`.create_campaign`; ``fix_games`` is :func:`.fix_dataset`.
    """
    start = None if start_from is None else find_start(start_from)
    load = load_config if start is None else start.load_config
    config = config_here(partial(load, preset, file, settings))
    check_before_create(config, asks_server=asks_server)
    config = replace(config, supervised=fix_games(config.supervised, config.campaign.game))
    path = directory or claim_campaign_path(preset, home)
    return create_campaign(path, config, start, with_games=with_games)


def check_before_create(config: CampaignConfig, *, asks_server: bool = True) -> None:
    """Name what cannot be reached or used, before there is a folder.

    Raises:
        ChessSnnError: a teacher, engines, devices, workers or a scheduler are not available, or,
            if ``asks_server``, a Prefect server that is given.
    """
    config.check_labels()
    config.find_engines()
    check_workers(config)
    if asks_server and (server := os.environ.get("PREFECT_API_URL")):
        load_extra("chess_snn.flows.prefect_errors", "orchestration").check_server(server)


def check_workers(config: CampaignConfig) -> None:
    """Name devices, workers or a scheduler that cannot be had, before anything is written."""
    # Prefect, seconds of imports, is left alone where a mistake can be named without it.
    if config.cluster.kind == "local":
        plan_here(config)
        choose_ranks(config, len(training_gpus(config)))
    else:
        load_extra("chess_snn.flows.cluster", "orchestration").check_cluster(config)


def _flow() -> Any:
    return load_extra("chess_snn.flows.campaign", "orchestration")


def _ignore(_event: object) -> None:
    """Take an event and show nothing; the folder's log has all of them."""
