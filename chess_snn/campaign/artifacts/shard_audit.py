"""Check shards thoroughly: digests, ranges, and every game replayed; many by several processes."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

from chess_snn.campaign.artifacts.artifact import Fault, Whole
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.data.audit import ShardAudit, audit_shards
from chess_snn.games import get_game
from chess_snn.process_pool import process_pool

_BATCH: Final = 32
"""Shards whose games are replayed side by side."""
_ALONE: Final = 8 * _BATCH
"""Fewer shards are checked before a helping process has started."""


def audit_campaign_shards(
    folder: CampaignFolder, paths: Sequence[Path], num_workers: int
) -> Iterator[tuple[int, Whole | Fault]]:
    """The outcome for each of ``paths`` with its number."""
    for number, audit in enumerate(_audits(folder.config.campaign.game, paths, num_workers)):
        if audit.verdict == "whole":
            yield number, Whole(audit, audit.num_bytes, audit.num_games, audit.num_positions)
        else:
            yield number, Fault(audit.verdict, audit.fault)


def _audits(name: str, paths: Sequence[Path], num_workers: int) -> Iterator[ShardAudit]:
    audit = partial(audit_shards, get_game(name))
    batches = [list(paths[first : first + _BATCH]) for first in range(0, len(paths), _BATCH)]
    if len(paths) <= _ALONE or num_workers == 1:
        yield from chain.from_iterable(map(audit, batches))
        return
    with process_pool(min(num_workers, len(batches))) as pool:
        yield from chain.from_iterable(pool.map(audit, batches))
