"""Recorded games: as PGN, as figures, position by position, and replayed in a game of one player.

Dimensions: n games, R words of a recorded position, W words of a position.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

import chess
import numpy as np

from chess_snn.campaign.store.collection import OUTCOMES, CollectedGame, GameCollection
from chess_snn.data import START_KINDS, GameRecords, play_actions, rewards_of, state_rows
from chess_snn.games import get_game
from chess_snn.games.base import Game
from chess_snn.games.chess import to_board
from chess_snn.pgn.writing import format_game, standard_tags
from chess_snn.types import Float64Array, Int16Array, Int64Array, Json, UInt64Array

_UNKNOWN: Final = "?"
_MOVES_A_LINE: Final = 10


def pgn_tags(collection: GameCollection, game: CollectedGame) -> dict[str, str]:
    """The tag pairs of a game: the standard's seven, how it ended, and where it can be found."""
    shard = game.shard
    player = _UNKNOWN if shard.generation is None else (
        f"{collection.name} generation {shard.generation}"
    )
    standard = standard_tags(game.records, game.index, is_cut=not collection.is_import)
    tags = {
        "Event": collection.name,
        "Site": _UNKNOWN,
        "Date": shard.created[:10].replace("-", ".") if shard.iteration is not None else
                "????.??.??",
        "Round": _UNKNOWN if shard.iteration is None else str(shard.iteration),
        "White": player,
        "Black": player,
        "Result": standard.pop("Result"),
    } | standard
    tags["EndedBy"] = collection.ending(game.records, game.index)
    if shard.iteration is not None:
        tags |= {"Iteration": str(shard.iteration), "Generation": str(shard.generation)}
    tags |= {"Game": str(game.number), "Shard": shard.name, "GameIndex": str(game.index)}
    if collection.config_digest is not None:
        tags["ConfigDigest"] = collection.config_digest
    return tags


def to_pgn(collection: GameCollection, game: CollectedGame) -> str:
    """One game as PGN, an empty line behind it; it imports to the same game.

    Raises:
        CorruptDataError: its record cannot be played.
    """
    return format_game(game.records, game.index, pgn_tags(collection, game))


def collection_figures(collection: GameCollection) -> Json:
    """Counts over all games: results, endings, beginnings, plies and size.

    Games of one player have points and milestones in place of results.

    Raises:
        CorruptDataError: a shard is damaged; it is named.
    """
    plies: list[int] = []
    outcomes: Counter[int] = Counter()
    endings: Counter[str] = Counter()
    starts: Counter[str] = Counter()
    solo_points: list[Float64Array] = []
    milestones: Counter[int] = Counter()
    is_solo, num_bytes = collection.spec.num_players == 1, 0
    for shard in collection.shards:
        records, manifest = shard.read()
        num_bytes += manifest.num_bytes
        plies += np.diff(records.game_offsets).tolist()
        outcomes.update(records.outcomes_white.tolist())
        endings.update(collection.endings(records))
        starts.update(START_KINDS[kind] for kind in records.start_kinds)
        if is_solo:
            points, reached = points_and_milestones(get_game(collection.spec.name), records)
            solo_points.append(points)
            milestones.update(reached.tolist())
    iterations = [shard.iteration for shard in collection.shards if shard.iteration is not None]
    return {
        "name": collection.name,
        "is_import": collection.is_import,
        "config_digest": collection.config_digest,
        "shards": len(collection.shards),
        "iterations": [min(iterations), max(iterations)] if iterations else None,
        "games": len(plies),
        "positions": sum(plies),
        "bytes": num_bytes,
        "plies": {
            "mean": float(np.mean(plies)), "median": float(np.median(plies)),
            "min": min(plies), "max": max(plies),
        },
        **(_solo_figures(np.concatenate(solo_points), milestones) if is_solo else {
            "results": {name: outcomes[outcome] for name, outcome in OUTCOMES.items()},
        }),
        "endings": _most_common(endings),
        "starts": _most_common(starts),
    }


def _solo_figures(points: Float64Array, milestones: Counter[int]) -> Json:
    return {
        "points": {
            "mean": float(points.mean()), "median": float(np.median(points)),
            "max": float(points.max()),
        },
        "milestones": {str(milestone): milestones[milestone] for milestone in sorted(milestones)},
    }


def _most_common(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


@dataclass(frozen=True, slots=True, eq=False)
class GamePositions:
    """A recorded game of m moves, position by position."""

    states: UInt64Array
    """uint64[m + 1, W]: before each move, and at the end; the last chance event is not recorded and
    not in it."""
    positions: list[str]
    """The same in the game's notation (chess: FEN)."""
    moves: list[str]
    """m moves in the game's notation (chess: UCI)."""
    names: list[str]
    """The moves as people write them: SAN in chess, elsewhere as ``moves``."""


def game_positions(game: Game, states: UInt64Array, actions: Int16Array) -> GamePositions:
    """The positions and moves of a recorded game.

    Args:
        game: that was played.
        states: uint64[m, >= R], the position before each move; m is at least 1.
        actions: int16[m], legal there.

    Raises:
        IllegalMoveError: an action of a chess game is illegal.
    """
    rows = state_rows(game.spec, states)
    end = play_actions(game, rows[-1:], actions[-1:]).state
    moves = [
        game.format_action(state, int(action))
        for state, action in zip(rows, actions, strict=True)
    ]
    names = moves
    if game.spec.name == "chess":
        board = to_board(rows[0])
        names = [board.san_and_push(chess.Move.from_uci(move)) for move in moves]
    every = np.concatenate([rows, end])
    return GamePositions(every, [game.format_state(state) for state in every], moves, names)


@dataclass(frozen=True, slots=True)
class ReplayedGame:
    """A recorded game after some of its plies."""

    num_plies: int
    state: UInt64Array
    """uint64[W]; at the end without the last chance event, which is not recorded."""
    points: float
    """Up to there."""
    facts: dict[str, str]
    """Facts about the whole game, and its place."""
    moves: str
    """All of them, ten a line behind the number of the first."""


def points_and_milestones(game: Game, records: GameRecords) -> tuple[Float64Array, Int64Array]:
    """float64[n] points and int64[n] milestones of each game since its recorded beginning."""
    rewards = rewards_of(game, records.states, records.actions).astype(np.float64)
    lasts = records.game_offsets[1:] - 1
    ends = play_actions(game, records.states[lasts], records.actions[lasts]).state
    points = game.spec.score_unit * np.add.reduceat(rewards, records.game_offsets[:-1])
    return points, game.milestones(ends)


def replay(
    game: Game, collection: GameCollection, found: CollectedGame, ply: int
) -> ReplayedGame:
    """The game after ``ply`` of its plies, in [0, its number]."""
    records = found.records
    rows = slice(*records.game_offsets[found.index : found.index + 2])
    actions, spec, shard = records.actions[rows], game.spec, found.shard
    replayed, num_plies = game_positions(game, records.states[rows], actions), len(actions)
    rewards = rewards_of(game, replayed.states[:-1], actions)
    points = spec.score_unit * rewards.astype(np.float64)
    facts = {
        "game": f"{found.number} of {collection.name}, {shard.name}",
        "generation": "?" if shard.generation is None else str(shard.generation),
        "start": START_KINDS[records.start_kinds[found.index]],
        "score": f"{points.sum():,.0f}",
        spec.milestone_name: f"{int(game.milestones(replayed.states[-1:])[0]):,}",
        "moves": f"{num_plies:,}",
        "ended by": collection.ending(records, found.index).replace("_", " "),
    }
    facts.pop("", None)  # of a game without milestones
    width = len(str(num_plies))
    moves = [
        f"{first + 1:>{width}}. {' '.join(replayed.moves[first : first + _MOVES_A_LINE])}"
        for first in range(0, num_plies, _MOVES_A_LINE)
    ]
    return ReplayedGame(
        num_plies, replayed.states[ply], float(points[:ply].sum()), facts, "\n".join(moves)
    )
