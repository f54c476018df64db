"""Whether shards are whole: digests, ranges, and every game replayed; many shards at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np

from chess_snn.data.game_audit import game_faults
from chess_snn.data.records import GameRecords, concatenate
from chess_snn.data.schema import spec_faults
from chess_snn.data.shard import read_shard
from chess_snn.errors import CorruptDataError, UnknownVersionError
from chess_snn.games.base import Game
from chess_snn.types import Json

Verdict = Literal["whole", "damaged", "unknown version"]

_TOLD_GAMES: Final = 3
"""Faulty games of a shard that are described; the others are counted."""


@dataclass(frozen=True, slots=True)
class ShardAudit:
    """What was found in one shard."""

    verdict: Verdict
    fault: str
    """In words; empty of a whole one."""
    num_games: int
    """0 of a shard that cannot be read; as those below."""
    num_positions: int
    num_bytes: int
    meta: Json
    """Of its manifest."""


def audit_shards(game: Game, folders: Sequence[Path]) -> list[ShardAudit]:
    """Audit the shards in ``folders``; their games are replayed side by side."""
    audits: list[ShardAudit] = []
    readable: list[tuple[int, GameRecords]] = []
    for number, folder in enumerate(folders):
        try:
            records, manifest = read_shard(folder)
            _check_fit(game, records, manifest.meta)
        except UnknownVersionError as error:
            audits.append(_unread("unknown version", str(error)))
        except CorruptDataError as error:
            audits.append(_unread("damaged", str(error)))
        except ValueError as error:
            audits.append(_unread("damaged", f"{folder}: {error}"))
        else:
            readable.append((number, records))
            audits.append(ShardAudit(
                "whole", "", records.num_games, records.num_positions, manifest.num_bytes,
                manifest.meta,
            ))
    return _with_faulty_games(game, folders, audits, readable)


def _unread(verdict: Verdict, fault: str) -> ShardAudit:
    return ShardAudit(verdict, fault, 0, 0, 0, {})


def _check_fit(game: Game, records: GameRecords, meta: Json) -> None:
    """Raise ValueError unless the records can be those of ``game``."""
    spec = game.spec
    if (found := meta.get("game")) != spec.name:
        raise ValueError(f"must hold games of {spec.name}, found {found!r}")
    if (width := records.states.shape[1]) != spec.record_words:
        raise ValueError(f"records must have {spec.record_words} words, found {width}")
    for fault in spec_faults(spec, records):
        raise ValueError(fault)


def _with_faulty_games(
    game: Game, folders: Sequence[Path], audits: list[ShardAudit],
    readable: Sequence[tuple[int, GameRecords]],
) -> list[ShardAudit]:
    if not readable:
        return audits
    faults = game_faults(game, concatenate([records for _, records in readable]))
    ends = np.cumsum([records.num_games for _, records in readable])
    by_shard: dict[int, list[str]] = {}
    for index, fault in faults.items():
        part = int(np.searchsorted(ends, index, side="right"))
        first = int(ends[part]) - readable[part][1].num_games
        by_shard.setdefault(readable[part][0], []).append(f"game {index - first}: {fault}")
    for number, told in by_shard.items():
        more = f"; and {len(told) - _TOLD_GAMES} more games" if len(told) > _TOLD_GAMES else ""
        text = f"{folders[number]}: {'; '.join(told[:_TOLD_GAMES])}{more}"
        audits[number] = _unread("damaged", text)
    return audits
