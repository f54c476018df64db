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
from chess_snn.campaign.viewing.columns import Columns
from chess_snn.data import GameRecords
from chess_snn.games.base import Game
from chess_snn.pgn.writing import format_moves
from chess_snn.report.facts import CampaignFacts
from chess_snn.report.markup import paragraph, table
from chess_snn.types import UInt64Array

_SPANS: Final = 6
"""Groups of generations: few games of one generation begin at the initial position."""
_MOST_SHARDS: Final = 32
"""Most shards of a group; of more, so many are read, evenly spread."""
_MOVES: Final = 6
"""First moves with a column."""
_LINE_PLIES: Final = (6, 4, 3, 2)
"""Length of a line: the first of these of which a line was played often."""
_OFTEN: Final = 3
_LINES: Final = 8
_TAGS: Final = {"Result": "*"}


@dataclass(frozen=True, slots=True)
class OpeningSpan:
    """Count what generations ``first`` to ``last`` played from the initial position."""

    first: int
    last: int
    num_games: int
    moves: Counter[str]
    """Games by White's first move."""
    lines: Counter[str]
    """Games by their first six plies."""

    def most_played(self) -> list[tuple[str, int]]:
        """Lines and their games, as long as there are lines that were played often."""
        shortened: Counter[str] = Counter()
        for plies in _LINE_PLIES:
            shortened = Counter()
            for line, count in self.lines.items():
                shortened[_first_plies(line, plies)] += count
            if shortened.most_common(1)[0][1] >= _OFTEN:
                break
        return shortened.most_common(_LINES)


def opening_spans(facts: CampaignFacts) -> list[OpeningSpan]:
    """Groups of generations, rising, those without such a game left out.

    Raises:
        CorruptDataError: a shard is damaged.
    """
    groups = np.array_split(np.arange(len(facts.receipts)), min(_SPANS, len(facts.receipts)) or 1)
    spans = [
        _span(facts, [shard for number in group for shard in _shards(facts, int(number))])
        for group in groups
    ]
    return [span for span in spans if span is not None and span.num_games]


def openings_html(facts: CampaignFacts) -> list[str]:
    """A table of first moves, and one of the lines that the newest generations play most."""
    spans = opening_spans(facts)
    if not spans:
        return [paragraph(
            "No stored game began at the initial position: all began after random plies, or the "
            "games were removed."
        )]
    totals: Counter[str] = sum((span.moves for span in spans), Counter())
    moves = [move for move, _ in totals.most_common(_MOVES)]
    newest = spans[-1]
    columns: Columns = {
        "generations": _generations,
        "games": lambda span: str(span.num_games),
        **{f"1. {move}": partial(_share_of_move, move) for move in moves},
        "other": lambda span: _share(
            span.num_games - sum(span.moves[move] for move in moves), span
        ),
    }
    lines: Columns = {
        "line": lambda entry: entry[0],
        "games": lambda entry: str(entry[1]),
        "share": lambda entry: _share(entry[1], newest),
    }
    return [
        table("White's first move in self-play", spans, columns),
        table(f"Most played lines of generations {_generations(newest)}",
              newest.most_played(), lines),
        paragraph(
            "Self-play explores: it draws among good moves, so rare moves are not always the "
            "network's choice.", "note",
        ),
    ]


def _first_plies(line: str, plies: int) -> str:
    """``1. e4 e5`` of ``1. e4 e5 2. Nf3``, whose moves of White have their numbers before them."""
    return " ".join(line.split()[: plies + (plies + 1) // 2])


def _generations(span: OpeningSpan) -> str:
    return f"{span.first} to {span.last}" if span.last > span.first else str(span.first)


def _share_of_move(move: str, span: OpeningSpan) -> str:
    return _share(span.moves[move], span)


def _share(count: int, span: OpeningSpan) -> str:
    return f"{100 * count / span.num_games:.0f} %"


def _shards(facts: CampaignFacts, iteration: int) -> Iterator[CollectedShard]:
    yield from games_of_iteration(facts.folder, iteration).shards


def _span(facts: CampaignFacts, shards: Sequence[CollectedShard]) -> OpeningSpan | None:
    if not shards:
        return None
    step = -(-len(shards) // _MOST_SHARDS)
    initial = facts.game.initial_states(np.zeros(1, np.uint64))[0]
    lines: Counter[str] = Counter()
    for shard in shards[::step]:
        records, _ = shard.read()
        lines.update(_lines_from(facts.game, records, initial))
    moves: Counter[str] = Counter()
    for line, count in lines.items():
        moves[line.split()[1]] += count
    played = [shard.generation or 0 for shard in shards]
    return OpeningSpan(min(played), max(played), lines.total(), moves, lines)


def _lines_from(game: Game, records: GameRecords, initial: UInt64Array) -> Iterator[str]:
    """The first plies of each game that began at ``initial``, in standard notation."""
    words = game.spec.record_words
    firsts = records.game_offsets[:-1]
    is_initial = (records.states[firsts] == initial[:words]).all(axis=1)
    for start, end in zip(
        firsts[is_initial].tolist(), records.game_offsets[1:][is_initial].tolist(), strict=True
    ):
        rows = slice(start, min(end, start + _LINE_PLIES[0]))
        text = format_moves(records.states[rows], records.actions[rows], _TAGS, place="a game")
        yield text.partition("\n\n")[2].removesuffix(" *\n\n").replace("\n", " ").strip()
