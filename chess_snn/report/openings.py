"""Openings that a chess network plays in self-play: first moves and most played lines.

Only games count that began at the initial position; the others begin after random plies, in won
endings or in earlier games.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from chess_snn.campaign.store.collection import CollectedShard, games_of_iteration
from chess_snn.data import GameRecords
from chess_snn.games.base import Game
from chess_snn.pgn.writing import format_moves
from chess_snn.report.charts import Table, table_of
from chess_snn.report.facts import CampaignFacts
from chess_snn.types import UInt64Array

_SPANS: Final = 6
"""Groups of generations: few games of one generation begin at the initial position."""
_MOST_SHARDS: Final = 32
"""Most shards of a group; of more, so many are read, evenly spread."""
_MOVES: Final = 6
"""First moves with a column."""
_LINE_PLIES: Final = 4
_LINES: Final = 8
_TAGS: Final = {"Result": "*"}


@dataclass(frozen=True, slots=True)
class _Span:
    """Count what generations ``first`` to ``last`` played from the initial position."""

    first: int
    last: int
    lines: Counter[str]
    """Games by their first plies."""

    @property
    def moves(self) -> Counter[str]:
        """Games by White's first move."""
        moves: Counter[str] = Counter()
        for line, count in self.lines.items():
            moves[line.split()[1]] += count
        return moves

    @property
    def generations(self) -> str:
        return f"{self.first} to {self.last}" if self.last > self.first else str(self.first)

    def share(self, count: int) -> str:
        return f"{100 * count / self.lines.total():.0f} %"


def opening_tables(facts: CampaignFacts) -> list[Table | None]:
    """First moves by generation, and the lines that the newest generations play most.

    Empty where no stored game began at the initial position.

    Raises:
        CorruptDataError: a shard is damaged.
    """
    groups = np.array_split(np.arange(len(facts.receipts)), min(_SPANS, len(facts.receipts)) or 1)
    spans = [span for group in groups if (span := _span(facts, group.tolist())) is not None]
    if not spans:
        return []
    totals: Counter[str] = sum((span.moves for span in spans), Counter())
    moves, newest = [move for move, _ in totals.most_common(_MOVES)], spans[-1]
    return [
        table_of("White's first move in self-play", spans, {
            "generations": lambda span: span.generations,
            "games": lambda span: str(span.lines.total()),
            **{f"1. {move}": partial(_share_of_move, move) for move in moves},
            "other": lambda span: span.share(
                span.lines.total() - sum(span.moves[move] for move in moves)
            ),
        }),
        table_of(
            f"Most played lines of generations {newest.generations}",
            newest.lines.most_common(_LINES), {
                "line": lambda entry: entry[0],
                "games": lambda entry: str(entry[1]),
                "share": lambda entry: newest.share(entry[1]),
            },
        ),
    ]


def _share_of_move(move: str, span: _Span) -> str:
    return span.share(span.moves[move])


def _span(facts: CampaignFacts, iterations: Sequence[int]) -> _Span | None:
    """Games of these iterations; None without one from the initial position."""
    shards: list[CollectedShard] = []
    for iteration in iterations:
        shards += games_of_iteration(facts.folder, iteration).shards
    initial = facts.game.initial_states(np.zeros(1, np.uint64))[0]
    lines: Counter[str] = Counter()
    for shard in shards[:: -(-len(shards) // _MOST_SHARDS) or 1]:
        records, _ = shard.read()
        lines.update(_lines_from(facts.game, records, initial))
    played = [shard.generation or 0 for shard in shards]
    return _Span(min(played), max(played), lines) if lines else None


def _lines_from(game: Game, records: GameRecords, initial: UInt64Array) -> Iterator[str]:
    """The first plies of each game that began at ``initial``, in standard notation."""
    words = game.spec.record_words
    firsts = records.game_offsets[:-1]
    is_initial = (records.states[firsts] == initial[:words]).all(axis=1)
    for start, end in zip(
        firsts[is_initial].tolist(), records.game_offsets[1:][is_initial].tolist(), strict=True
    ):
        rows = slice(start, min(end, start + _LINE_PLIES))
        text = format_moves(records.states[rows], records.actions[rows], _TAGS, place="a game")
        yield text.partition("\n\n")[2].removesuffix(" *\n\n").replace("\n", " ").strip()
