"""Games that a network is to learn from before it plays any: looked at before the work begins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.store.collection import GameCollection, open_collection
from chess_snn.data import Manifest, check_shard, json_digest, read_manifest
from chess_snn.errors import UsageError
from chess_snn.games import GameSpec, get_game
from chess_snn.pgn.folder import ImportFolder, is_import
from chess_snn.training import (
    DatasetShard,
    SupervisedSettings,
    TrainingSchedule,
    plan_schedule,
)
from chess_snn.types import Json, Progress

_DIGEST_LENGTH: Final = 32

@dataclass(frozen=True, slots=True)
class SupervisedDataset:
    """A collection to learn from."""

    path: Path
    """Absolute."""
    name: str
    """Name of the PGN file, or of the campaign that played them."""
    shards: tuple[DatasetShard, ...]
    num_games: int
    digest: str
    """32 hex digits of the shards' names and contents: two imports of one file have the same."""

    @property
    def num_positions(self) -> int:
        """Return the positions of all games."""
        return sum(shard.num_positions for shard in self.shards)

    def to_json(self) -> Json:
        """Return what is noted of them beside a network that has learnt from them."""
        return {
            "name": self.name, "path": str(self.path), "digest": self.digest,
            "games": self.num_games, "positions": self.num_positions,
        }


def find_dataset(
    path: Path, spec: GameSpec, *, verify: bool = True, on_progress: Progress | None = None
) -> SupervisedDataset:
    """The games of the import or the campaign in the folder ``path``, which are of game ``spec``.

    With ``verify``, every file is read and its digest compared; else manifests are believed.

    Raises:
        UsageError: there are none, the import is not finished, or they are of another game.
        CorruptDataError: a shard is damaged; it is named.
    """
    _check_finished(path)
    collection = open_collection(path)
    manifests = []
    for done, shard in enumerate(collection.shards, start=1):
        manifest = check_shard(shard.path) if verify else read_manifest(shard.path)
        _check_game(shard.path, manifest, spec)
        manifests.append(manifest)
        if on_progress is not None:
            on_progress(done, len(collection.shards))
    return SupervisedDataset(
        path=path.absolute(),
        name=collection.name,
        shards=tuple(DatasetShard(shard.path, shard.num_positions) for shard in collection.shards),
        num_games=collection.num_games,
        digest=_digest(collection, manifests),
    )


def fix_dataset(
    settings: SupervisedSettings, game: str, on_progress: Progress | None = None
) -> SupervisedSettings:
    """``settings`` with the absolute path and the digest of the games they name, if any.

    Raises:
        UsageError, CorruptDataError: as :func:`find_dataset`, or where ``settings`` have the
            digest of other games.
    """
    if not settings.games:
        return settings
    given = find_dataset(Path(settings.games), get_game(game).spec, on_progress=on_progress)
    _check_digest(given, settings.digest or given.digest)
    return replace(settings, games=str(given.path), digest=given.digest)


def fixed_dataset(config: CampaignConfig) -> SupervisedDataset:
    """The games that a campaign with this frozen configuration learns from.

    Manifests alone are read; readers of a shard compare it with its digests.

    Raises:
        UsageError, CorruptDataError: they are not there any more, or not the same.
    """
    settings = config.supervised
    spec = get_game(config.campaign.game).spec
    given = find_dataset(Path(settings.games), spec, verify=False)
    _check_digest(given, settings.digest)
    return given


def schedule_of(given: SupervisedDataset, config: CampaignConfig) -> TrainingSchedule:
    """Return the order in which ``config`` has a network go through the games."""
    return plan_schedule(given.shards, config.supervised, config.training, config.campaign.seed)


def _check_finished(path: Path) -> None:
    if is_import(path) and (folder := ImportFolder.open(path)).report() is None:
        command = "label" if folder.source.teacher else "import"
        raise UsageError(
            f"{path} is not finished; run the command again: chess-snn games {command} "
            f"{folder.source.file} --out {path}"
        )


def _check_game(shard: Path, manifest: Manifest, spec: GameSpec) -> None:
    found = (manifest.meta.get("game"), manifest.meta.get("record_words"))
    if found != (spec.name, spec.record_words):
        raise UsageError(
            f"{shard} holds {found[0]} in records of {found[1]} words, and {spec.name} in records "
            f"of {spec.record_words} is to be learnt; give games of {spec.name}"
        )


def _check_digest(given: SupervisedDataset, wanted: str) -> None:
    if given.digest != wanted:
        raise UsageError(
            f"{given.path} holds other games than supervised.digest = \"{wanted}\" says: theirs is "
            f"\"{given.digest}\"; put the games back, or start anew with these"
        )


def _digest(collection: GameCollection, manifests: Sequence[Manifest]) -> str:
    contents = [
        [shard.name, manifest.sha256s]
        for shard, manifest in zip(collection.shards, manifests, strict=True)
    ]
    return json_digest(contents)[:_DIGEST_LENGTH]
