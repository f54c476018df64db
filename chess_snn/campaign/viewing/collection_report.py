"""What can be said of the games of a collection: as PGN, and as figures."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np

from chess_snn.campaign.store.collection import OUTCOMES, CollectedGame, GameCollection
from chess_snn.campaign.viewing.recorded_points import points_and_milestones
from chess_snn.data import START_KINDS
from chess_snn.games import get_game
from chess_snn.pgn import format_game, standard_tags
from chess_snn.types import Float64Array, Json

_UNKNOWN: Final = "?"


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
    names: Iterable[tuple[str, int]] = sorted(
        counts.items(), key=lambda entry: (-entry[1], entry[0])
    )
    return dict(names)
