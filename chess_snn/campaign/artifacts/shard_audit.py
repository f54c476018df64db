"""Check shards thoroughly: digests, ranges, and every game replayed; many by several processes.

Such a process runs this module with the number of a socket that it inherits.
"""

import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from chess_snn.campaign.artifacts.artifact import Fault, Whole
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.data.audit import ShardAudit, audit_shards
from chess_snn.games import get_game
from chess_snn.pgn.pool import serve, worker_pool
from chess_snn.types import Json

_MODULE: Final = "chess_snn.campaign.artifacts.shard_audit"
_BATCH: Final = 32
"""Shards whose games are replayed side by side."""
_ALONE: Final = 8 * _BATCH
"""Fewer shards are checked before a helping process has started."""


def audit_campaign_shards(
    folder: CampaignFolder, paths: Sequence[Path], num_workers: int
) -> Iterator[tuple[int, Whole | Fault]]:
    """The outcome for each of ``paths`` with its number, in any order."""
    for number, audit in _audits(folder.config.campaign.game, paths, num_workers):
        if audit.verdict == "whole":
            yield number, Whole(audit, audit.num_bytes, audit.num_games, audit.num_positions)
        else:
            yield number, Fault(audit.verdict, audit.fault)


def _audits(
    game: str, paths: Sequence[Path], num_workers: int
) -> Iterator[tuple[int, ShardAudit]]:
    firsts = range(0, len(paths), _BATCH)
    tasks = [
        {"first": first, "game": game, "folders": [str(p) for p in paths[first : first + _BATCH]]}
        for first in firsts
    ]
    if len(paths) <= _ALONE or num_workers == 1:
        for task in tasks:
            yield from _read_answer(_answer(task, b""))
        return
    with worker_pool(min(num_workers, len(firsts)), _MODULE) as pool:
        for task in tasks:
            while not pool.has_idle:
                for answer in pool.answers():
                    yield from _read_answer(answer)
            pool.submit(task, b"")
        while pool.num_busy:
            for answer in pool.answers():
                yield from _read_answer(answer)


def _answer(task: Json, content: bytes) -> Json:
    """The audits that a task asks for, as JSON; there is nothing beside a task."""
    del content
    audits = audit_shards(get_game(task["game"]), [Path(folder) for folder in task["folders"]])
    return {"first": task["first"], "audits": [asdict(audit) for audit in audits]}


def _read_answer(body: Json) -> Iterator[tuple[int, ShardAudit]]:
    """The audits of a task, each with the number of its folder."""
    return enumerate((ShardAudit(**audit) for audit in body["audits"]), body["first"])


def main() -> None:
    """Audit what comes through the socket."""
    # Ctrl-C reaches every process of the terminal; the verifying one says what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(Connection(int(sys.argv[1])), _answer)


if __name__ == "__main__":
    main()
