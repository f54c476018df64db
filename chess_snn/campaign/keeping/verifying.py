"""Is a campaign whole? Every byte, every game, and every sentence of its receipts is checked.

Nothing is written and no lock is taken, so it may run beside the campaign: what is committed does
not change, and what is being written is not looked at. Receipts are read first, so that all they
name is there when it is looked for; notes of what was set aside or removed are read last, so that
they account for everything that went meanwhile.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar

from chess_snn.campaign.keeping.findings import Findings, Kind
from chess_snn.campaign.keeping.receipt_audit import Whereabouts, compare_receipts
from chess_snn.campaign.keeping.things import (
    Thing,
    checkpoints_there,
    inherited_there,
    shards_there,
    steps_there,
)
from chess_snn.campaign.keeping.verify_matches import audit_matches
from chess_snn.campaign.stages.networks import game_of
from chess_snn.campaign.store.extensions import check_extensions
from chess_snn.campaign.store.folder import CONFIG_FILE, CampaignFolder
from chess_snn.campaign.store.plans import ProgressPlan, read_plan
from chess_snn.campaign.store.preflight import check_settings
from chess_snn.campaign.store.receipts import Receipt, read_receipt
from chess_snn.campaign.strength.champions import read_hand_promotions
from chess_snn.data import Manifest
from chess_snn.data.audit import ShardAudit, audit_shards
from chess_snn.errors import CampaignError, CorruptDataError, UnknownVersionError
from chess_snn.process_pool import process_pool
from chess_snn.training import check_checkpoint
from chess_snn.types import Progress

_Body = TypeVar("_Body")

_BATCH: Final = 32
"""Shards whose games are replayed side by side."""
_ALONE: Final = 8 * _BATCH
"""Fewer shards are done before a process to help has started."""
_UNDER_WAY: Final = 2
"""Iterations before the newest that begun which may have no receipt yet."""
_NUMBERED: Final = re.compile(r"iter-(\d{6,})\.json")


def verify_campaign(
    folder: CampaignFolder, *, num_workers: int = 1, on_progress: Progress | None = None
) -> Findings:
    """Look at everything in ``folder``.

    Args:
        folder: of the campaign.
        num_workers: processes that look at shards, where there are many.
        on_progress: called often.
    """
    begun, findings = time.monotonic(), Findings()
    _look_at_settings(folder, findings)
    receipts = _read_receipts(folder, findings)
    plans = _read_plans(folder, receipts, findings)
    shards: list[Thing] = [*inherited_there(folder), *shards_there(folder)]
    checkpoints: list[Thing] = [*steps_there(folder), *checkpoints_there(folder)]
    done, total = 0, len(shards) + len(checkpoints)

    def count() -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(done, total)

    whole_shards: dict[str, ShardAudit] = {}
    paths = [shard.path(folder) for shard in shards]
    for number, audit in _audit_shards(folder, paths, num_workers):
        _take_shard(folder, paths[number], audit, whole_shards, findings)
        count()
    manifests: dict[str, Manifest] = {}
    for checkpoint in checkpoints:
        path = checkpoint.path(folder)
        manifest = _try(folder, "checkpoint", path, findings, partial(check_checkpoint, path))
        if manifest is not None:
            manifests[folder.name_of(path)] = manifest
            findings.num_bytes += manifest.num_bytes
        count()
    promotions = folder.hand_promotion(0).parent
    if promotions.is_dir():
        _try(folder, "promotion", promotions, findings, partial(read_hand_promotions, folder))
    extensions = folder.extension(0).parent
    if extensions.is_dir():
        _try(folder, "extension", extensions, findings, partial(check_extensions, folder))
    whereabouts = Whereabouts.read(folder, findings)
    num_finished = max(max(receipts, default=-1) + 1, max(plans, default=0) - _UNDER_WAY)
    _find_gaps(folder, num_finished, whereabouts, findings)
    audit_matches(folder, receipts, whereabouts, findings)
    inherited = [] if folder.origin is None else folder.origin.games
    compare_receipts(receipts, whole_shards, manifests, whereabouts, findings, inherited)
    findings.seconds = time.monotonic() - begun
    return findings


def _look_at_settings(folder: CampaignFolder, findings: Findings) -> None:
    findings.checked["setting"] += 1
    try:
        check_settings(folder)
    except CampaignError as error:
        findings.add("setting", CONFIG_FILE, "differs", str(error))


def _read_receipts(folder: CampaignFolder, findings: Findings) -> dict[int, Receipt]:
    """By iteration, those that can be read."""
    numbers = _numbers(folder.receipt(0).parent)
    receipts = {
        number: _try(
            folder, "receipt", folder.receipt(number), findings,
            partial(read_receipt, folder, number),
        )
        for number in numbers
    }
    return {number: receipt for number, receipt in receipts.items() if receipt is not None}


def _find_gaps(
    folder: CampaignFolder, num_finished: int, whereabouts: Whereabouts, findings: Findings
) -> None:
    """Iterations without a receipt though they must have had one."""
    numbers = _numbers(folder.receipt(0).parent)
    for number in sorted(set(range(num_finished)) - set(numbers)):
        findings.add("receipt", *whereabouts.explain(folder.name_of(folder.receipt(number))))


def _read_plans(
    folder: CampaignFolder, receipts: dict[int, Receipt], findings: Findings
) -> list[int]:
    """The iterations whose plan can be read, rising."""
    readable = []
    for number in sorted({*_numbers(folder.plan(0).parent), *receipts}):
        path = folder.plan(number)
        plan: ProgressPlan | None = _try(
            folder, "plan", path, findings, partial(read_plan, folder, number)
        )
        if plan is None:
            continue
        readable.append(number)
        if number in receipts and plan != receipts[number].plan:
            findings.add(
                "plan", folder.name_of(path), "differs", "its receipt has another plan"
            )
    return readable


def _audit_shards(
    folder: CampaignFolder, paths: list[Path], num_workers: int
) -> Iterator[tuple[int, ShardAudit]]:
    """The audit of each of ``paths`` with its place there."""
    game = game_of(folder)
    batches = [paths[first : first + _BATCH] for first in range(0, len(paths), _BATCH)]
    if len(paths) <= _ALONE or num_workers == 1:
        yield from enumerate(chain.from_iterable(audit_shards(game, batch) for batch in batches))
        return
    with process_pool(min(num_workers, len(batches))) as pool:
        audits = pool.map(partial(audit_shards, game), batches)
        yield from enumerate(chain.from_iterable(audits))


def _take_shard(
    folder: CampaignFolder, path: Path, audit: ShardAudit, whole: dict[str, ShardAudit],
    findings: Findings,
) -> None:
    findings.checked["shard"] += 1
    if audit.verdict == "whole":
        whole[folder.name_of(path)] = audit
        findings.num_games += audit.num_games
        findings.num_positions += audit.num_positions
        findings.num_bytes += audit.num_bytes
    elif os.path.lexists(path):  # else it was set aside or removed meanwhile
        findings.add("shard", folder.name_of(path), audit.verdict, audit.fault)


def _try(
    folder: CampaignFolder, kind: Kind, path: Path, findings: Findings, read: Callable[[], _Body]
) -> _Body | None:
    """What ``read`` reads from ``path``; None, and a finding, where it cannot be read."""
    findings.checked[kind] += 1
    try:
        return read()
    except UnknownVersionError as error:
        findings.add(kind, folder.name_of(path), "unknown version", str(error))
    except CorruptDataError as error:
        if os.path.lexists(path):
            findings.add(kind, folder.name_of(path), "damaged", str(error))
        elif kind == "plan":  # looked for because there is a receipt; others were there just now
            findings.add(kind, folder.name_of(path), "lost", str(error))
    return None


def _numbers(parent: Path) -> list[int]:
    """Of the numbered files in ``parent``, rising."""
    if not parent.is_dir():
        return []
    names = (_NUMBERED.fullmatch(path.name) for path in parent.iterdir())
    return sorted(int(name[1]) for name in names if name is not None)
