"""Audit of recorded games and shards: could the games be played, are the shards whole?

A shard is whole if its digests, the ranges of its columns and all of its games are right. Each game
is replayed by its rules. All games advance together, a ply at a time, longest first: those still in
play are the first rows of the batch. A record is only believed where the replay arrives at it by
itself, so no stored position but the first of a game ever reaches the rules.

Dimensions: n games, k of them in play at a ply, N positions, R record words, M most legal actions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import numpy as np

from chess_snn.data.records import GameRecords, concatenate
from chess_snn.data.samples import state_rows
from chess_snn.data.shard import read_shard_of
from chess_snn.errors import CorruptDataError, PositionError, UnknownVersionError, UsageError
from chess_snn.games.base import NO_ACTION, ONGOING, Game, ValueKind
from chess_snn.jit import kernel
from chess_snn.types import BoolArray, Int16Array, Int32Array, Int64Array, Json, UInt64Array

_FIRST_PLAYER: Final = 0
_NO_POSITION: Final = (PositionError, LookupError, ValueError, AttributeError, AssertionError)
"""Errors that a row of noise raises on its way to the game's notation, or back."""
Verdict = Literal["whole", "damaged", "unknown version"]

_TOLD_GAMES: Final = 3
"""Faulty games of a shard that are described; the others are counted."""


@kernel
def has_unlisted(
    legal_actions: Int16Array, num_legal: Int32Array, offsets: Int64Array, entries: Int16Array
) -> BoolArray:
    """bool[k]: whether an action of run i of ``entries`` is missing from legal list i.

    Args:
        legal_actions: int16[>= k, M], lists of legal actions.
        num_legal: int32[>= k], their lengths.
        offsets: int64[k + 1], where each run begins and the last one ends.
        entries: int16[E], actions.
    """
    found = np.zeros(len(offsets) - 1, np.bool_)
    for i in range(len(found)):
        for j in range(offsets[i], offsets[i + 1]):
            is_listed = False
            for m in range(num_legal[i]):
                if legal_actions[i, m] == entries[j]:
                    is_listed = True
                    break
            if not is_listed:
                found[i] = True
                break
    return found


def game_faults(game: Game, records: GameRecords) -> dict[int, str]:
    """Describe the fault of each game of ``records`` that cannot have been played, by its index.

    A game begins at a possible position; every position is the one that the moves before it lead
    to; every action, played or in a policy target, is legal; a game ends where the rules end it,
    and with their result, unless it was cut or resigned before.

    The records are as wide as those of ``game``, and their codes are among its codes.
    """
    faults: dict[int, str] = {}
    firsts, lengths = records.game_offsets[:-1], np.diff(records.game_offsets)
    starts, start_faults = _possible_starts(game, records.states[firsts])
    faults |= start_faults
    sound = np.array([k for k in range(records.num_games) if k not in faults], np.int64)
    if len(sound):
        order = sound[np.argsort(-lengths[sound], kind="stable")]
        replay = _Replay(game, records, order, starts[order])
        for ply in range(int(lengths[order[0]])):
            replay.advance(ply)
        replay.compare_ends()
        faults |= replay.faults
    return dict(sorted(faults.items()))


def _possible_starts(game: Game, states: UInt64Array) -> tuple[UInt64Array, dict[int, str]]:
    """State rows uint64[n, W] of record rows uint64[n, R], and what is wrong with some of them."""
    faults: dict[int, str] = {}
    distinct, index_of = np.unique(states, axis=0, return_inverse=True)
    for number, state in enumerate(distinct):
        if (fault := start_fault(game, state)) is not None:
            faults |= dict.fromkeys(np.flatnonzero(index_of == number).tolist(), fault)
    return state_rows(game.spec, states), faults


def start_fault(game: Game, state: UInt64Array) -> str | None:
    """Describe why no game begins at ``state`` uint64[R]; None where one can.

    Told by the game's notation, which nothing impossible passes.
    """
    try:
        possible = game.parse_state(game.format_state(state))
    except _NO_POSITION as error:
        return f"it begins at no position: {error}"
    if not np.array_equal(possible[: len(state)], state):
        return f"it begins at a row that is not that of {game.format_state(state)!r}"
    return None


class _Replay:
    """Games of ``records`` on their way from their first positions to their ends."""

    def __init__(
        self, game: Game, records: GameRecords, order: Int64Array, starts: UInt64Array
    ) -> None:
        """``order`` int64[n] are games, the longest first; ``starts`` uint64[n, W] theirs."""
        self.faults: dict[int, str] = {}
        self._game, self._records, self._order = game, records, order
        self._firsts = records.game_offsets[:-1][order]
        self._lengths = np.diff(records.game_offsets)[order]
        self._batch = game.allocate(len(order))
        game.reset(self._batch, np.arange(len(order)), starts)
        self._winners = np.zeros(len(order), np.int8)
        self._is_faulty = np.zeros(len(order), np.bool_)

    def advance(self, ply: int) -> None:
        """Compare what is recorded of ``ply`` with the replay, and play it."""
        k = int(np.searchsorted(-self._lengths, -ply, side="left"))
        batch, records, rows = self._batch, self._records, self._firsts[:k] + ply
        self._blame(
            (batch.state[:k, : records.states.shape[1]] != records.states[rows]).any(axis=1),
            lambda _: f"the position at ply {ply} is not the one that its moves lead to",
        )
        self._blame(
            batch.termination[:k] != ONGOING,
            lambda g: f"it goes on at ply {ply}, after {self._rule(g)}",
        )
        actions = records.actions[rows]
        ones = np.arange(k + 1, dtype=np.int64)
        self._blame(
            has_unlisted(batch.legal_actions, batch.num_legal, ones, actions),
            lambda g: f"action {actions[g]} at ply {ply} is illegal",
        )
        self._blame(
            self._has_illegal_targets(rows),
            lambda _: f"the policy target at ply {ply} has an illegal action",
        )
        first_moves = self._game.side_to_move(batch.state[:k]) == _FIRST_PLAYER
        steps = np.full(len(batch), NO_ACTION, np.int16)
        steps[:k] = np.where(self._is_faulty[:k], NO_ACTION, actions)
        self._game.step(batch, steps, num_rows=k)
        has_won = ~self._is_faulty[:k] & (batch.reward[:k] > 0)
        if self._game.spec.value_kind is ValueKind.WDL:
            self._winners[:k][has_won] = np.where(first_moves, 1, -1)[has_won]
        if self._game.spec.is_stochastic:
            self._let_happen(ply, k)

    def _let_happen(self, ply: int, num_games: int) -> None:
        """Play the chance event after ``ply`` of the first games that leads to what is recorded.

        That is the next position, or after the last one an end as it is recorded. A game that no
        event leads on stays at its afterstate, where nature is to move.
        """
        k, spec, batch, records = num_games, self._game.spec, self._batch, self._records
        rows = self._firsts[:k] + ply
        is_last = ply + 1 == self._lengths[:k]
        following = records.states[rows + ~is_last]
        terminations = records.terminations[self._order[:k]]
        waiting = batch.take(np.arange(k))
        events = np.full(len(batch), NO_ACTION, np.int16)
        for column in range(int(waiting.num_legal.max())):
            after = waiting.take(np.arange(k))
            is_listed = column < waiting.num_legal
            event = np.where(is_listed, waiting.legal_actions[:, column], np.int16(NO_ACTION))
            self._game.step(after, event)
            fits = np.where(
                is_last, after.termination == terminations,
                (after.state[:, : spec.record_words] == following).all(axis=1),
            )
            events[:k] = np.where(fits & is_listed, event, events[:k])
        events[:k][self._is_faulty[:k]] = NO_ACTION
        self._game.step(batch, events, num_rows=k)

    def compare_ends(self) -> None:
        """Compare how the games ended with how the rules end them."""
        records, order = self._records, self._order
        self._blame(
            records.terminations[order] != self._batch.termination,
            lambda g: f"by the rules it ends as {self._rule(g)}, and is recorded otherwise",
        )
        has_ended = self._batch.termination != ONGOING
        self._blame(
            has_ended & (records.outcomes_white[order] != self._winners),
            lambda _: "its result is not that of its last position",
        )

    def _has_illegal_targets(self, rows: Int64Array) -> BoolArray:
        records = self._records
        starts, ends = records.target_offsets[rows], records.target_offsets[rows + 1]
        lengths = ends - starts
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        entries = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
        return has_unlisted(
            self._batch.legal_actions, self._batch.num_legal, offsets,
            records.target_actions[entries],
        )

    def _rule(self, row: int) -> str:
        return self._game.spec.terminations[int(self._batch.termination[row])]

    def _blame(self, is_wrong: BoolArray, describe: Callable[[int], str]) -> None:
        """Note the first fault of each game; games with one are not played on."""
        for row in np.flatnonzero(is_wrong).tolist():
            self.faults.setdefault(int(self._order[row]), describe(row))
            self._is_faulty[row] = True


@dataclass(frozen=True, slots=True)
class ShardAudit:
    """Findings in one shard."""

    verdict: Verdict
    fault: str = ""
    """Faults in words; empty for a whole shard."""
    num_games: int = 0
    """0 unless the shard is whole; as those below."""
    num_positions: int = 0
    num_bytes: int = 0
    meta: Json = field(default_factory=dict)
    """Digest of its manifest."""


def audit_shards(game: Game, folders: Sequence[Path]) -> list[ShardAudit]:
    """Audit the shards in ``folders``; their games are replayed side by side."""
    audits: list[ShardAudit] = []
    readable: dict[int, GameRecords] = {}
    for number, folder in enumerate(folders):
        try:
            records, manifest = read_shard_of(game.spec, folder)
        except UnknownVersionError as error:
            audits.append(ShardAudit("unknown version", str(error)))
        except (CorruptDataError, UsageError) as error:
            audits.append(ShardAudit("damaged", str(error)))
        else:
            readable[number] = records
            audits.append(ShardAudit(
                "whole", "", records.num_games, records.num_positions, manifest.num_bytes,
                manifest.meta,
            ))
    faults = game_faults(game, concatenate([*readable.values()])) if readable else {}
    first = 0
    for number, records in readable.items():
        games = range(first, first + records.num_games)
        first = games.stop
        told = [f"game {k - games.start}: {fault}" for k, fault in faults.items() if k in games]
        if told:
            more = f"; and {len(told) - _TOLD_GAMES} more games" if len(told) > _TOLD_GAMES else ""
            text = f"{folders[number]}: {'; '.join(told[:_TOLD_GAMES])}{more}"
            audits[number] = ShardAudit("damaged", text)
    return audits
