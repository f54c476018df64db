"""The replay window: the newest games, packed in memory, to train on and to hold out.

A window is defined by the sequence of shards it was given, oldest first: it holds the longest run
of newest whole games whose positions fit the capacity. How the shards arrived, at once or one
iteration at a time, makes no difference.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, Literal, get_args

import numpy as np

from chess_snn.data.records import GameRecords, concatenate
from chess_snn.data.samples import (
    Samples,
    SurpriseDraw,
    check_td_lambda,
    gather,
    returns_of,
)
from chess_snn.data.shard import read_shard_of
from chess_snn.errors import UsageError
from chess_snn.games.base import Game
from chess_snn.rng import derive_seed
from chess_snn.settings import check_choice, check_range
from chess_snn.types import BoolArray, Int32Array

Subset = Literal["training", "holdout"]
"""The two parts of a window; every game is in exactly one."""

GAMES_BEFORE: Final = "games_before"
"""Key in the meta of a shard: how many games of its iteration the shards before it have."""

_HOLDOUT_SEED: Final = 0
"""Not a campaign's seed: a game is held out in every window that contains it, or in none."""
_DIGEST_LENGTH: Final = 16
INHERITED: Final = "from-"
"""Begins the folder of shards that another campaign played: ``from-iter-000011/shard-0003``."""


@dataclass(frozen=True, slots=True)
class _Games:
    """Some whole games and what the window knows of each."""

    records: GameRecords
    is_holdout: BoolArray
    """bool[n]."""
    shard_names: tuple[str, ...]
    """n names: the shard each game came from."""

    def newest(self, num_positions: int) -> "_Games":
        """The longest run of newest games with at most ``num_positions`` positions in all.

        It is empty where not even the newest fits, and ``self`` where all do.
        """
        starts = self.records.game_offsets[:-1]
        first = int(np.searchsorted(starts, self.records.num_positions - num_positions))
        if first == 0:
            return self
        return _Games(
            _drop_games(self.records, first), self.is_holdout[first:], self.shard_names[first:]
        )


class ReplayWindow:
    """The newest whole games of some shards, at most ``capacity`` positions of them.

    Memory is 8 R + 26 bytes a position and 6 bytes an entry of its policy target, R being the
    game's record words: for chess (R = 5) 72 bytes a position played without search, 258 with
    targets of 32 entries. Sampling by surprise adds 8 bytes a position, a game with returns 12.
    :meth:`load` needs up to twice that while it runs. Zarr is touched there only.
    """

    def __init__(self, game: Game, games: _Games, discount: float, td_lambda: float) -> None:
        """Hold ``games``; see :meth:`load`."""
        lengths = np.diff(games.records.game_offsets)
        is_holdout = np.repeat(games.is_holdout, lengths)
        self._game, self._games = game, games
        self._returns = returns_of(game, games.records, discount, td_lambda)
        self._discount, self._td_lambda = discount, td_lambda
        self._game_of: Int32Array = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        self._rows: dict[str, Int32Array] = {
            "training": np.flatnonzero(~is_holdout).astype(np.int32),
            "holdout": np.flatnonzero(is_holdout).astype(np.int32),
        }
        self._surprises: SurpriseDraw | None = None

    @classmethod
    def load(
        cls, game: Game, shard_folders: Sequence[Path], capacity: int, holdout_every: int = 16,
        discount: float = 1.0, *, td_lambda: float = 1.0, setting: str = "window.capacity",
    ) -> "ReplayWindow":
        """Read shards newest first, only until the capacity is met.

        Args:
            game: whose shards they are.
            shard_folders: oldest first.
            capacity: positions, held-out ones included.
            holdout_every: about one game in this many is held out, chosen by a hash of its number
                and its iteration's name; in a shard that does not note ``GAMES_BEFORE``, by a hash
                of its place there and the shard's name.
            discount: factor of an outcome, or a reward, for each ply between it and a position.
            td_lambda: see :mod:`chess_snn.data.samples`; 1 in a game without returns.
            setting: what a user raises for a larger ``capacity``.

        Raises:
            ConfigError: a number is out of its range.
            CorruptDataError: a shard is damaged; it is named.
            UsageError: a shard is of another game or given twice, the newest game alone exceeds the
                capacity, or no game is left to train on.
        """
        check_range("window.capacity", capacity, ge=1)
        check_range("window.holdout_every", holdout_every, ge=2)
        check_range("window.discount", discount, gt=0, le=1)
        check_td_lambda(game.spec, td_lambda)
        _check_names(shard_folders)
        kept: list[_Games] = []
        room = capacity
        for folder in reversed(shard_folders):
            games = _read(game, folder, holdout_every)
            kept.append(games.newest(room))
            room -= kept[-1].records.num_positions
            if kept[-1] is not games:
                break
        kept.reverse()
        games = _Games(
            concatenate([part.records for part in kept]),
            np.concatenate([part.is_holdout for part in kept]),
            tuple(name for part in kept for name in part.shard_names),
        )
        if not games.shard_names:
            raise UsageError(
                f"the newest game of {shard_folders[-1]} alone has more than the "
                f"{capacity} positions of the window; raise {setting}"
            )
        if games.is_holdout.all():
            raise UsageError(
                f"all games of the window are held out ({len(games.is_holdout)} in all); "
                f"add games; one in {holdout_every} is held out, by its number"
            )
        return cls(game, games, discount, td_lambda)

    @property
    def records(self) -> GameRecords:
        """All games held, oldest first, training and held out; not to be changed."""
        return self._games.records

    @property
    def shard_names(self) -> tuple[str, ...]:
        """``<parent>/<folder>`` of each shard with a game in the window, oldest first."""
        return tuple(dict.fromkeys(self._games.shard_names))

    def digest(self) -> str:
        """16 hex digits over every game held, and which are held out; equal windows are equal."""
        digest = hashlib.sha256()
        for field in fields(GameRecords):
            digest.update(np.ascontiguousarray(getattr(self.records, field.name)).data)
        digest.update(np.ascontiguousarray(self.rows("holdout")).data)
        digest.update(np.float64(self._discount).tobytes())
        if self._returns is not None:
            digest.update(np.float64(self._td_lambda).tobytes())
        return digest.hexdigest()[:_DIGEST_LENGTH]

    def rows(self, subset: Subset) -> Int32Array:
        """int32[...]: the positions of ``records`` in ``subset``, in order; not to be changed."""
        check_choice("window.subset", subset, get_args(Subset))
        return self._rows[subset]

    def sample(
        self, batch_size: int, rng: np.random.Generator, *, surprise_share: float = 0.0
    ) -> Samples:
        """``batch_size`` training positions, drawn as :meth:`draw` does.

        Raises:
            ConfigError: the share is out of its range.
        """
        return self.gather(self.draw(batch_size, rng, surprise_share=surprise_share))

    def draw(
        self, batch_size: int, rng: np.random.Generator, *, surprise_share: float = 0.0
    ) -> Int32Array:
        """int32[B]: rows of ``batch_size`` training positions, independent and with replacement.

        Args:
            batch_size: how many.
            rng: decides the draw.
            surprise_share: probability that a position is drawn by its surprise and not uniformly;
                see :class:`chess_snn.data.samples.SurpriseDraw`.

        Raises:
            ConfigError: the share is out of its range.
        """
        check_range("window.surprise_share", surprise_share, ge=0, le=1)
        rows = self.rows("training")
        chosen = rng.integers(0, len(rows), size=batch_size)
        if surprise_share:
            by_surprise = rng.random(batch_size) < surprise_share
            surprising = self._draw_by_surprise().draw(batch_size, rng)
            chosen = np.where(by_surprise, surprising, chosen)
        drawn: Int32Array = rows[chosen]
        return drawn

    def neighbours(self, rows: Int32Array) -> Int32Array:
        """int32[B]: for each row one of the same game and mover, the next one if there is any.

        A row without another of its mover is its own neighbour.
        """
        apart, offsets = self._game.spec.num_players, self.records.game_offsets
        games = self._game_of[rows]
        later, earlier = rows + apart, rows - apart
        found: Int32Array = np.where(
            later < offsets[games + 1], later, np.where(earlier >= offsets[games], earlier, rows)
        ).astype(np.int32)
        return found

    def iterate(self, batch_size: int, subset: Subset = "holdout") -> Iterator[Samples]:
        """Every position of ``subset`` once, in a fixed order; the last batch may be smaller."""
        rows = self.rows(subset)
        for start in range(0, len(rows), batch_size):
            yield self.gather(rows[start : start + batch_size])

    def gather(self, rows: Int32Array) -> Samples:
        """The samples at ``rows`` (int32[B]) of ``records``; rows may repeat."""
        return gather(
            self._game, self.records, self._game_of, rows.astype(np.int64), self._discount,
            self._returns,
        )

    def _draw_by_surprise(self) -> SurpriseDraw:
        if self._surprises is None:
            self._surprises = SurpriseDraw(self.records.surprises[self.rows("training")])
        return self._surprises


def _check_names(shard_folders: Sequence[Path]) -> None:
    if not shard_folders:
        raise UsageError("a replay window needs at least one shard, got none; play games first")
    seen: set[str] = set()
    for folder in shard_folders:
        name = _shard_name(folder)
        if name in seen:
            raise UsageError(f"shard {folder} is in the window already; give it only once")
        seen.add(name)


def _read(game: Game, folder: Path, holdout_every: int) -> _Games:
    records, manifest = read_shard_of(game.spec, folder)
    name, before = _shard_name(folder), manifest.meta.get(GAMES_BEFORE)
    # Use the first name: a game held out where it was played is held out in other campaigns too.
    first_name = name.rpartition(INHERITED)[2]
    if before is None:
        draws = [derive_seed(_HOLDOUT_SEED, first_name, k) for k in range(records.num_games)]
    else:
        iteration = first_name.partition("/")[0]
        numbers = range(int(before), int(before) + records.num_games)
        draws = [derive_seed(_HOLDOUT_SEED, iteration, "games", k) for k in numbers]
    is_holdout = np.array([draw % holdout_every == 0 for draw in draws])
    return _Games(records, is_holdout, (name,) * records.num_games)


def _shard_name(folder: Path) -> str:
    """Return what tells a shard from others, wherever its campaign lies: iteration and shard."""
    return f"{folder.parent.name}/{folder.name}"


def _drop_games(records: GameRecords, num_games: int) -> GameRecords:
    """``records`` less the first ``num_games`` games."""
    row = records.game_offsets[num_games]
    entry = records.target_offsets[row]
    return GameRecords(
        states=records.states[row:],
        actions=records.actions[row:],
        values_stm=records.values_stm[row:],
        surprises=records.surprises[row:],
        target_offsets=records.target_offsets[row:] - entry,
        target_actions=records.target_actions[entry:],
        target_weights=records.target_weights[entry:],
        game_offsets=records.game_offsets[num_games:] - row,
        outcomes_white=records.outcomes_white[num_games:],
        terminations=records.terminations[num_games:],
        cut_values_white=records.cut_values_white[num_games:],
        start_kinds=records.start_kinds[num_games:],
    )
