"""Remake the ladder: play a round-robin between players of known strength, and rate them together.

The seed and the players decide every move: an engine's answer to a position with fixed nodes or
depth is always the same.
"""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer

from benchmarks.harness import Report, benchmark
from chess_snn import __version__
from chess_snn.data import write_json
from chess_snn.errors import RatingError
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.ladder.ladder import LADDER_FILE, PairResults, read_ladder
from chess_snn.evaluation.match_files import read_kept_match, write_match
from chess_snn.evaluation.match_result import MatchResult, identities_of
from chess_snn.evaluation.matches import DEFAULT_MAX_PLIES, play_match
from chess_snn.evaluation.named_players import make_player
from chess_snn.evaluation.openings import book_openings
from chess_snn.evaluation.ratings.crosstable import Crosstable
from chess_snn.evaluation.ratings.fit import fit_ratings
from chess_snn.games import get_game
from chess_snn.rng import derive_seed
from chess_snn.types import Json

_PART_PAIRS: Final = 10
"""Openings of a file."""
_ENGINES: Final = EngineSettings(answer_s=60.0, start_s=60.0)
_NOT_IN_NAMES: Final = re.compile(r"[^\w.@~=-]")


def ladder_pairings(players: Sequence[str]) -> list[tuple[str, str]]:
    """The pairings: each player and the next two, and every second one and the fourth after it.

    Neighbours decide the ratings: between players far apart all games end one way. The longer links
    hold the scale together, so that the errors of single steps do not add up.
    """
    steps = [(low, step) for low in range(len(players)) for step in (1, 2, 4)
             if step < 4 or low % 2 == 0]
    return [(players[low], players[low + step]) for low, step in steps if low + step < len(players)]


def run(
    report: Report,
    out: Annotated[Path, typer.Option(help="Folder for ladder.json and the games.")],
    pairs: Annotated[int, typer.Option(help="Openings of a pairing, each with both colours.")] = 40,
    players: Annotated[
        str, typer.Option(help="Names with commas between, the weakest first. [default: the same]")
    ] = "",
    seed: Annotated[int, typer.Option(help="Seed of the games.")] = 0,
) -> None:
    """Play the ladder's round-robin again, and rate its players.

    A run that was interrupted continues; more --pairs add games (by tens).

    python -m benchmarks ladder --out ladder
    """
    shipped = [(pairing.player_a, pairing.player_b) for pairing in read_ladder().pairings]
    played, matches = [], []
    for low, high in ladder_pairings(players.split(",")) if players else shipped:
        parts = [_play_part(out / "parts", low, high, number, pairs, seed)
                 for number in range(-(-pairs // _PART_PAIRS))]
        played += parts
        matches.append(MatchResult.joined(parts))
        report.progress(f"{low} against {high}: {matches[-1].score:.3f}")
    ladder = ladder_json(
        [pairing_json(match) for match in matches], identities_of(played),
        max_plies=DEFAULT_MAX_PLIES,
        origin={
            "date": datetime.now(UTC).isoformat(timespec="seconds"), "version": __version__,
            "command": f"python -m benchmarks ladder --pairs {pairs} --seed {seed}", "seed": seed,
        },
    )
    write_json(out / LADDER_FILE, ladder)
    for rung in ladder["ratings"]["players"]:
        report.add(rung["player"], rung["elo"], "Elo")


def pairing_json(match: MatchResult) -> Json:
    """The results of a pairing; openings of which a game is void are left out.

    ``pairs`` int64[3, 3] are openings by a's outcome with white and with black, each (win, draw,
    loss).
    """
    by_pair = match.scores_a.reshape(-1, 2)
    whole = by_pair[np.isfinite(by_pair).all(axis=1)]
    cells = np.rint(2.0 * (1.0 - whole)).astype(np.int64)
    pairs = np.zeros((3, 3), np.int64)
    np.add.at(pairs, (cells[:, 0], cells[:, 1]), 1)
    return {"player_a": match.player_a, "player_b": match.player_b, "pairs": pairs.tolist()}


def ladder_json(
    pairings: Sequence[Json], programs: dict[str, str], *, max_plies: int, origin: Json
) -> Json:
    """The ladder of ``pairings``, its players rated with the random player at 0.

    Raises:
        RatingError: the results leave a player's rating open; more games may close it.
    """
    results = map(PairResults.from_json, pairings)
    ratings = fit_ratings(Crosstable.from_games(game for each in results for game in each.games()))
    for rating in ratings.table:
        if not math.isfinite(rating.elo.width):
            raise RatingError(
                f"the results leave the rating of {rating.player!r} open: its score is "
                f"{rating.score:.2f}; play more pairs, or put a player between"
            )
    return {
        "game": "chess",
        "origin": origin,
        "max_plies": max_plies,
        "programs": programs,
        "ratings": ratings.to_json(),
        "pairings": list(pairings),
    }


def _play_part(
    folder: Path, low: str, high: str, number: int, pairs: int, seed: int
) -> MatchResult:
    """Play some openings of a pairing, or read their file."""
    game = get_game("chess")
    first, last = number * _PART_PAIRS, min((number + 1) * _PART_PAIRS, pairs)
    path = folder / f"{'--'.join(_NOT_IN_NAMES.sub('-', n) for n in (low, high))}--{number}.json"
    conditions = {"seed": seed, "openings_to": last}
    if (kept := read_kept_match(game, path, conditions)) is not None:
        return kept
    # A stream per pairing: a player's luck is independent for each opponent.
    result = play_match(
        game, make_player(game, low, _ENGINES), make_player(game, high, _ENGINES),
        book_openings(game, last, seed)[first:],
        seed=derive_seed(seed, "ladder", low, high, number), max_plies=DEFAULT_MAX_PLIES,
    )
    write_match(path, result, conditions)
    return result


command = benchmark("ladder", run)
