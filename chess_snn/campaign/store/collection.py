"""Games on the disk, whether a campaign played them or an import brought them: one view of both."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from chess_snn.campaign.configuration.loading import config_digest
from chess_snn.campaign.store.folder import CONFIG_FILE, CampaignFolder, campaign_around
from chess_snn.campaign.store.notes import read_removals
from chess_snn.data import GameRecords, Manifest, is_committed, read_manifest, read_shard_of
from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.games import ONGOING, GameSpec, get_game
from chess_snn.pgn.folder import ImportFolder, is_import
from chess_snn.self_play import PLY_LIMIT
from chess_snn.settings import check_range
from chess_snn.types import Json

RESIGNED: Final = "resigned"
"""Name of the ending of an imported game that a player won without the rules."""
AGREED: Final = "agreed"
"""Name of the ending of an imported game that was drawn without the rules."""
OUTCOMES: Final = {"white": 1, "draw": 0, "black": -1}
"""Outcomes by name, as in ``outcomes_white``."""
_CHESS: Final = get_game("chess").spec

_SHARD: Final = re.compile(r"shard-[0-9]+")
_COUNTS: Final = ("num_games", "num_positions")
_PLAYED_BY: Final = ("iteration", "generation")
"""Keys that the manifest of a shard notes; an import's has none of the latter."""


@dataclass(frozen=True, slots=True)
class CollectedShard:
    """One committed shard of a collection."""

    spec: GameSpec
    """Facts of the game."""
    path: Path
    num_games: int
    num_positions: int
    created: str
    """ISO 8601, UTC."""
    iteration: int | None
    """None in an import, as the generation that played."""
    generation: int | None

    @property
    def name(self) -> str:
        """``iter-000012/shard-0003``."""
        return f"{self.path.parent.name}/{self.path.name}"

    def read(self) -> tuple[GameRecords, Manifest]:
        """Its games, and its manifest; see :func:`chess_snn.data.read_shard_of`."""
        return read_shard_of(self.spec, self.path)


@dataclass(frozen=True, slots=True)
class CollectedGame:
    """One game of a collection."""

    number: int
    """Its place in the collection, from 1."""
    shard: CollectedShard
    records: GameRecords
    """All games of the shard."""
    index: int
    """Its place there, from 0."""


@dataclass(frozen=True, slots=True)
class GameCollection:
    """The games in a folder, in the order they were played or stood in the file."""

    spec: GameSpec
    """Facts of the game that is played in all of them."""
    name: str
    """The campaign's, or the PGN file's."""
    config_digest: str | None
    """Digest of the campaign's settings; None in an import."""
    shards: tuple[CollectedShard, ...]

    @property
    def is_import(self) -> bool:
        """Return whether the games came from elsewhere."""
        return self.config_digest is None

    @property
    def num_games(self) -> int:
        """Games in all shards."""
        return sum(shard.num_games for shard in self.shards)

    def game(self, number: int) -> CollectedGame:
        """The game with this number, from 1.

        Raises:
            UsageError: there is none, or it is of another game.
            CorruptDataError: its shard is damaged.
        """
        if not 1 <= number <= self.num_games:
            raise UsageError(
                f"{self.name} has no game {number}; it has {self.num_games:,}, counted from 1"
            )
        before = 0
        for shard in self.shards:
            if number <= before + shard.num_games:
                break
            before += shard.num_games
        records, _ = shard.read()
        return CollectedGame(number, shard, records, number - before - 1)

    def games(self, wanted: "GameFilter") -> Iterator[CollectedGame]:
        """The games that ``wanted`` lets through, a shard at a time in memory.

        Raises:
            UsageError: it asks for iterations of an import, or a shard is of another game.
            CorruptDataError: a shard is damaged; it is named.
        """
        if self.is_import and (wanted.iterations or wanted.generations):
            raise UsageError(
                f"{self.name} was imported: its games have no iteration or generation; leave "
                "those filters out"
            )
        before = num_found = 0
        for shard in self.shards:
            if wanted.takes_shard(shard):
                records, _ = shard.read()
                for index in wanted.select(records.outcomes_white):
                    if wanted.limit is not None and num_found >= wanted.limit:
                        return
                    yield CollectedGame(before + index + 1, shard, records, index)
                    num_found += 1
            before += shard.num_games

    def endings(self, records: GameRecords) -> list[str]:
        """Return how each game of ``records`` ended; see :meth:`ending`."""
        return [self.ending(records, index) for index in range(records.num_games)]

    def ending(self, records: GameRecords, index: int) -> str:
        """Return how game ``index`` of ``records`` ended: by a rule, resigned, agreed or cut."""
        code = records.terminations[index]
        if code != ONGOING:
            return self.spec.terminations[int(code)]
        if records.outcomes_white[index]:
            return RESIGNED
        return AGREED if self.is_import else PLY_LIMIT


@dataclass(frozen=True, slots=True)
class GameFilter:
    """Filter of the games of a collection; None asks for nothing."""

    iterations: range | None = None
    generations: range | None = None
    outcome: str | None = None
    """One of ``OUTCOMES``."""
    limit: int | None = None
    """Most games."""

    def __post_init__(self) -> None:
        if self.limit is not None:
            check_range("--limit", self.limit, ge=1)

    def takes_shard(self, shard: CollectedShard) -> bool:
        """Return whether a shard may have wanted games."""
        return (self.iterations is None or shard.iteration in self.iterations) and (
            self.generations is None or shard.generation in self.generations
        )

    def select(self, outcomes_white: NDArray[np.integer]) -> list[int]:
        """Indices of the wanted games, in order, but for the limit.

        ``outcomes_white`` [n] is 1 where white won, -1 where black did.
        """
        if self.outcome is None:
            return list(range(len(outcomes_white)))
        return [int(index) for index in np.flatnonzero(outcomes_white == OUTCOMES[self.outcome])]


def open_collection(path: Path) -> GameCollection:
    """The games of the campaign or the import in ``path``, or of one shard of a campaign.

    Raises:
        UsageError: it holds none of them, or no game yet.
        CorruptDataError: a manifest is damaged.
    """
    campaign = campaign_around(path)
    if is_import(path):
        imported = ImportFolder.open(path)
        collection = GameCollection(
            _CHESS, imported.source.file, None,
            tuple(_collected(_CHESS, shard) for shard in imported.shards()),
        )
    elif (path / CONFIG_FILE).is_file():
        collection = _collection(CampaignFolder.open(path), "iter-*/shard-*")
    elif campaign is not None and _SHARD.fullmatch(path.name) and is_committed(path):
        collection = _collection(
            CampaignFolder.open(campaign), f"{path.resolve().parent.name}/{path.name}"
        )
    else:
        raise UsageError(
            f"{path} holds no games; give a campaign's folder, a shard in it, or a folder made by "
            "`chess-snn games import`"
        )
    if not collection.shards:
        if not collection.is_import and read_removals(CampaignFolder.open(path)):
            raise UsageError(f"{path} holds no games any more: `chess-snn gc` removed them")
        raise UsageError(f"{path} holds no games yet; play or import some first")
    return collection


def joined(collections: Sequence[GameCollection]) -> GameCollection:
    """The games of all ``collections``, at least one, in their order.

    Raises:
        UsageError: they are not of the same game.
    """
    first, *others = collections
    for other in others:
        if other.spec.name != first.spec.name:
            raise UsageError(
                f"{first.name} holds games of {first.spec.name}, and {other.name} of "
                f"{other.spec.name}; give games of one kind"
            )
    return GameCollection(
        first.spec, ", ".join(each.name for each in collections),
        None if others else first.config_digest,
        tuple(shard for each in collections for shard in each.shards),
    )


def games_of_iteration(folder: CampaignFolder, iteration: int) -> GameCollection:
    """The games that are left of one iteration of a campaign, maybe none; numbered from 1."""
    return _collection(folder, f"iter-{iteration:06d}/shard-*")


def _collection(folder: CampaignFolder, wanted: str) -> GameCollection:
    spec = get_game(folder.config.campaign.game).spec
    shards = sorted((folder.path / "games").glob(wanted))
    return GameCollection(
        spec, folder.name, config_digest(folder.config),
        tuple(_collected(spec, shard) for shard in shards),
    )


def _collected(spec: GameSpec, shard: Path) -> CollectedShard:
    manifest = read_manifest(shard)
    numbers: Json = {name: manifest.meta.get(name) for name in (*_COUNTS, *_PLAYED_BY)}
    for name, number in numbers.items():
        if type(number) is not int and (name in _COUNTS or number is not None):
            raise CorruptDataError(
                f"{shard} is not a shard of games: {name} must be a whole number, found "
                f"{number!r}; restore it from a copy"
            )
    return CollectedShard(spec=spec, path=shard, created=manifest.created, **numbers)
