"""Reading and checking of artifacts, which must exist, and their facts in receipts."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, Final

from chess_snn.campaign.artifacts.artifact import Check, Contents, Fault, Key, Whole
from chess_snn.campaign.stages.networks import game_of
from chess_snn.campaign.store.folder import CHECKPOINT, MATCH, CampaignFolder
from chess_snn.campaign.store.generations import numbered_manifest
from chess_snn.campaign.store.plans import ProgressPlan, write_plan
from chess_snn.campaign.store.receipt_parts import ShardFacts, TrainingFacts
from chess_snn.campaign.store.receipts import MOST_UNDER_WAY, Receipt, read_receipt
from chess_snn.campaign.strength.match_games import read_match
from chess_snn.campaign.strength.match_schedule import champion_match, event_of
from chess_snn.data import Manifest, read_shard
from chess_snn.data.audit import ShardAudit
from chess_snn.data.audit import audit_shards as audit_batch
from chess_snn.errors import CorruptDataError
from chess_snn.evaluation.match_files import match_fault
from chess_snn.evaluation.match_result import DETAILS
from chess_snn.games import get_game
from chess_snn.process_pool import process_pool
from chess_snn.training import check_checkpoint

Expected = Callable[[CampaignFolder, Contents], Iterable[tuple[str, Any]]]

CLOCKS: Final = ("seconds", "network_seconds")
"""Statistics that differ each time the same games are played."""
_TOLERANCE: Final = 1e-6
"""Tolerance of sums, whose order another number of threads may change."""
_BATCH: Final = 32
"""Shards whose games are replayed side by side."""
_ALONE: Final = 8 * _BATCH
"""Fewer shards are checked before a helping process has started."""


def check_record(read: Callable[[Path], Any]) -> Check:
    """A check that only calls ``read``."""
    return lambda _, path: Whole(read(path))


def check_of_iteration(read: Callable[[CampaignFolder, int], Any]) -> Check:
    """A check that calls ``read`` with the folder and the iteration: 12 of ``iter-000012.json``."""
    return lambda folder, path: Whole(read(folder, int(path.stem.rpartition("-")[2])))


def check_shard(_: CampaignFolder, path: Path) -> Whole:
    """Check digests and ranges of a shard."""
    return Whole(read_shard(path)[1])


def audit_shards(
    folder: CampaignFolder, paths: Sequence[Path], num_workers: int
) -> Iterator[Whole | Fault]:
    """Check digests and ranges of shards, and replay every game."""
    for audit in _audits(folder.config.campaign.game, paths, num_workers):
        if audit.verdict == "whole":
            yield Whole(audit, audit.num_bytes, audit.num_games, audit.num_positions)
        else:
            yield Fault(audit.verdict, audit.fault)


def _audits(name: str, paths: Sequence[Path], num_workers: int) -> Iterator[ShardAudit]:
    audit = partial(audit_batch, get_game(name))
    batches = [list(paths[first : first + _BATCH]) for first in range(0, len(paths), _BATCH)]
    if len(paths) <= _ALONE or num_workers == 1:
        yield from chain.from_iterable(map(audit, batches))
        return
    with process_pool(min(num_workers, len(batches))) as pool:
        yield from chain.from_iterable(pool.map(audit, batches))


def check_generation(folder: CampaignFolder, path: Path) -> Whole:
    """Check the digests of a generation, and that it is the one of its name."""
    numbered_manifest(folder, int(path.name.rpartition("-")[2]))
    return check_step(folder, path)


def check_step(_: CampaignFolder, path: Path) -> Whole:
    """Check the digests of a checkpoint."""
    manifest = check_checkpoint(path)
    return Whole(manifest, manifest.num_bytes)


def check_match(folder: CampaignFolder, path: Path) -> Whole:
    """Check a match, and that its games and its figures agree."""
    game = game_of(folder)
    result, body = read_match(game.spec, path)
    if fault := match_fault(game, result, body):
        raise CorruptDataError(f"{path}: {fault}")
    summary = {name: value for name, value in body.items() if name not in DETAILS}
    return Whole(summary, num_match_games=result.num_games)


def expected_receipts(folder: CampaignFolder, contents: Contents) -> Iterator[tuple[str, Any]]:
    """Receipts of all iterations that must be finished."""
    newest_receipt, newest_plan = (_newest(contents[kind]) for kind in ("receipt", "plan"))
    for iteration in range(max(newest_receipt + 1, newest_plan + 1 - MOST_UNDER_WAY)):
        yield folder.name_of(folder.receipt(iteration)), None


def expected_plans(folder: CampaignFolder, contents: Contents) -> Iterator[tuple[str, Any]]:
    """Plans of all receipts."""
    for receipt in _receipts(contents):
        yield folder.name_of(folder.plan(receipt.iteration)), receipt.plan


def expected_shards(_: CampaignFolder, contents: Contents) -> Iterator[tuple[str, Any]]:
    """Shards that receipts name."""
    for receipt in _receipts(contents):
        for facts in receipt.shards:
            yield f"games/{facts.name}", facts


def expected_inherited_shards(
    folder: CampaignFolder, _: Contents
) -> Iterator[tuple[str, Any]]:
    """Shards that the campaign began with."""
    for name in () if folder.origin is None else folder.origin.games:
        yield f"games/{name}", None


def expected_checkpoints(_: CampaignFolder, contents: Contents) -> Iterator[tuple[str, Any]]:
    """Generations that receipts name, and the one before."""
    receipts = _receipts(contents)
    if receipts:
        yield CHECKPOINT.format(generation=0), None
    for receipt in receipts:
        yield CHECKPOINT.format(generation=receipt.iteration + 1), receipt.training


def expected_matches(folder: CampaignFolder, contents: Contents) -> Iterator[tuple[str, Any]]:
    """Matches that receipts sum up, gating matches among them."""
    for receipt in _receipts(contents):
        told: dict[str, Any] = {match.name: match for match in receipt.matches}
        if (played := receipt.promotion) is not None:
            told[champion_match(played.champion)] = {
                "num_games": played.games, "wins": played.wins, "draws": played.draws,
                "losses": played.losses, "truncated": played.truncated, "score": played.score,
            }
        for name, summary in told.items():
            path = folder.match(event_of(receipt.iteration + 1), name)
            yield folder.name_of(path), summary


def expected_reports(name: str, report_of: Callable[[Receipt], Any]) -> Expected:
    """Reports called ``name``, which ``report_of`` finds in receipts."""

    def expected(_: CampaignFolder, contents: Contents) -> Iterator[tuple[str, Any]]:
        for receipt in _receipts(contents):
            report = report_of(receipt)
            if report is not None:
                event = event_of(receipt.iteration + 1)
                yield MATCH.format(event=event, name=name), report

    return expected


def without_gaps(name: str, pattern: str) -> Expected:
    """Return the first missing number, from 0, that a later one follows."""

    def expected(_: CampaignFolder, contents: Contents) -> Iterator[tuple[str, Any]]:
        numbers = {int(key[0]) for key in contents[name]}
        if numbers and len(numbers) <= max(numbers):
            yield pattern.format(number=next(n for n in count() if n not in numbers)), None

    return expected


def _receipts(contents: Contents) -> list[Receipt]:
    found = sorted(contents["receipt"].items())
    return [receipt for _, receipt in found if receipt is not None]


def _newest(contents: Mapping[Key, Any]) -> int:
    """The highest number of one that can be read; -1 if there is none."""
    readable = (int(key[0]) for key, content in contents.items() if content is not None)
    return max(readable, default=-1)


def plan_differences(told: ProgressPlan, plan: ProgressPlan) -> Iterator[str]:
    """Describe how a plan differs from the one in the receipt of its iteration."""
    if plan != told:
        yield "its receipt has another plan"


def shard_differences(facts: ShardFacts, audit: ShardAudit) -> Iterator[str]:
    """Describe how a shard differs from its receipt; its bytes depend on the format."""
    found, told = audit.meta.get("statistics"), facts.statistics.to_json()
    if not isinstance(found, dict) or found.keys() != told.keys():
        yield "other statistics than in the receipt"
        return
    for name in told.keys() - set(CLOCKS):
        if not _is_same(found[name], told[name]):
            yield f"{name} {found[name]}, and {told[name]} in the receipt"


def checkpoint_differences(facts: TrainingFacts, manifest: Manifest) -> Iterator[str]:
    """Describe how a generation differs from what its receipt says of it."""
    for name in ("generation", "weights_digest", "window_shards", "window_positions"):
        if manifest.meta.get(name) != getattr(facts, name):
            yield f"{name} is not that of the receipt"


def match_differences(told: Any, found: Any) -> Iterator[str]:
    """Describe how a match or report differs from the receipt; a dataclass or its fields."""
    told, found = (each if isinstance(each, dict) else asdict(each) for each in (told, found))
    if wrong := sorted(name for name in told if found.get(name) != told[name]):
        yield f"{', '.join(wrong)} are not those of the receipt"


def _is_same(found: object, told: object) -> bool:
    if isinstance(found, float) and isinstance(told, float):
        return math.isclose(found, told, rel_tol=_TOLERANCE)
    return found == told


def restore_plan(folder: CampaignFolder, key: Key) -> bool:
    """Write a plan as the receipt of its iteration has it; whether that can be read."""
    try:
        plan = read_receipt(folder, int(key[0])).plan
    except CorruptDataError:
        return False
    write_plan(folder, plan)
    return True


def needed_to_finish(folder: CampaignFolder, key: Key) -> tuple[Path, ...]:
    """Return what resume needs to finish an iteration again."""
    iteration = int(key[0])
    return folder.shard(iteration, 0), folder.checkpoint(iteration + 1)
