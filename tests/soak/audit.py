"""What is proved of a campaign once it is finished: of its folder, against itself and a twin.

The twin is a campaign with the same settings and seed that nobody disturbed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chess_snn.campaign import CampaignFolder, Receipt, read_receipts
from chess_snn.campaign.artifacts.checks import CLOCKS
from chess_snn.data import Manifest, read_manifest, read_shard, verify_folder
from chess_snn.errors import CorruptDataError
from chess_snn.nets import load_network, network_digest
from chess_snn.training.checkpoint import WEIGHTS
from chess_snn.types import Json

from .campaigns import committed_checkpoints, committed_shards
from .checks import Check
from .replaying import illegal_games

TEMPORARY = (".tmp-*", "*.partial")


@dataclass(frozen=True, slots=True)
class Twin:
    """What an undisturbed campaign committed, by name of the folder in it."""

    shards: dict[str, Manifest]
    weights: dict[str, str]
    """Digests of the generations."""

    @classmethod
    def of(cls, directory: Path) -> "Twin":
        """Of the finished campaign in ``directory``."""
        return cls(
            {_name(path): read_manifest(path) for path in committed_shards(directory)},
            {
                _name(path): read_manifest(path).meta["weights_digest"]
                for path in committed_checkpoints(directory)
            },
        )


def audit_folder(directory: Path, twin: Twin) -> list[Check]:
    """Everything that the folder alone can prove."""
    try:
        folder = CampaignFolder.open(directory)
        receipts = read_receipts(folder)
    except CorruptDataError as error:
        return [Check("receipts", (str(error),), "the folder")]
    expected = folder.config.campaign.iterations
    shards, checkpoints = committed_shards(directory), committed_checkpoints(directory)
    games = f"{sum(receipt.statistics.games for receipt in receipts)} games"
    foundations = [
        Check("every iteration is finished", _missing(len(receipts), expected),
              f"{expected} iterations"),
        Check("every game once", tuple(_misplaced(folder, receipts, shards)), games),
        Check("digests", tuple(_damaged([*shards, *checkpoints])),
              f"{len(shards)} shards, {len(checkpoints)} generations"),
        Check("no temporary file", tuple(_temporaries(directory)), "the folder"),
    ]
    if not all(check.holds for check in foundations):
        return foundations  # the rest reads what is missing or damaged
    return [
        *foundations,
        Check("receipts agree with manifests", tuple(_disagreeing(folder, receipts)),
              f"{len(receipts)} receipts"),
        Check("every game is legal", tuple(_illegal(shards)), f"{games}, replayed"),
        Check("the games of the undisturbed twin", tuple(_other_games(shards, twin)),
              f"{len(twin.shards)} shards, byte by byte"),
        Check("the networks of the undisturbed twin", tuple(_other_weights(checkpoints, twin)),
              f"{len(twin.weights)} generations"),
    ]


def _missing(found: int, expected: int) -> tuple[str, ...]:
    return () if found == expected else (f"{found} receipts without a gap",)


def _misplaced(
    folder: CampaignFolder, receipts: list[Receipt], shards: list[Path]
) -> Iterator[str]:
    """Shards that are missing, that no receipt names, or that hold another number of games."""
    settings = folder.config.self_play
    on_disk = {_name(path) for path in shards}
    named = [shard.name for receipt in receipts for shard in receipt.shards]
    if len(set(named)) != len(named):
        yield "a shard is in the receipts twice"
    yield from (f"{name} is missing" for name in sorted(set(named) - on_disk))
    yield from (f"{name} is in no receipt" for name in sorted(on_disk - set(named)))
    for receipt in receipts:
        if receipt.statistics.games != settings.games_per_iteration:
            yield f"iteration {receipt.iteration} counts {receipt.statistics.games} games"
        for number, facts in enumerate(receipt.shards):
            path = folder.shard(receipt.iteration, number)
            if _name(path) != facts.name:
                yield f"{facts.name} stands where {_name(path)} should"


def _damaged(folders: list[Path]) -> Iterator[str]:
    for path in folders:
        try:
            verify_folder(path)
        except CorruptDataError as error:
            yield str(error)


def _without_clocks(statistics: Json) -> Json:
    return {name: value for name, value in statistics.items() if name not in CLOCKS}


def _disagreeing(folder: CampaignFolder, receipts: list[Receipt]) -> Iterator[str]:
    for receipt in receipts:
        checkpoint = folder.checkpoint(receipt.training.generation)
        if network_digest(load_network(checkpoint / WEIGHTS)) != receipt.training.weights_digest:
            yield f"{checkpoint.name} has not the weights its receipt names"
        for facts in receipt.shards:
            manifest = read_manifest(folder.path / "games" / facts.name)
            found = manifest.num_bytes, _without_clocks(manifest.meta["statistics"])
            if found != (facts.bytes, _without_clocks(facts.statistics)):
                yield f"{facts.name} is not what its receipt says"


def _illegal(shards: list[Path]) -> Iterator[str]:
    for path in shards:
        records, manifest = read_shard(path)
        if records.num_games != manifest.meta["num_games"]:
            yield f"{_name(path)} has {records.num_games} games"
        yield from (f"{_name(path)}: {fault}" for fault in illegal_games(records))


def _other_games(shards: list[Path], twin: Twin) -> Iterator[str]:
    for path in shards:
        expected = twin.shards.get(_name(path))
        if expected is None or read_manifest(path).files != expected.files:
            yield f"{_name(path)} has other games"


def _other_weights(checkpoints: list[Path], twin: Twin) -> Iterator[str]:
    found = {_name(path): read_manifest(path).meta["weights_digest"] for path in checkpoints}
    for name in sorted(found.keys() | twin.weights.keys()):
        if found.get(name) != twin.weights.get(name):
            yield f"{name} has other weights"


def _temporaries(directory: Path) -> Iterator[str]:
    for pattern in TEMPORARY:
        yield from (str(path.relative_to(directory)) for path in directory.rglob(pattern))


def _name(folder: Path) -> str:
    """``iter-000002/shard-0003`` or ``checkpoints/gen-000002``."""
    return f"{folder.parent.name}/{folder.name}"
