"""Remake the ladder: play a round-robin between players of known strength, and rate them together.

The seed and the players decide every move: an engine's answer to a position with fixed nodes or
depth is always the same.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from benchmarks.harness import Report, benchmark
from chess_snn import __version__
from chess_snn.data import write_json
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.ladder.ladder import LADDER_FILE, Ladder, PairResults, read_ladder
from chess_snn.evaluation.match_files import read_kept_match, write_match
from chess_snn.evaluation.match_result import MatchResult, identities_of
from chess_snn.evaluation.matches import DEFAULT_MAX_PLIES, play_match
from chess_snn.evaluation.named_players import make_player
from chess_snn.evaluation.openings import book_openings
from chess_snn.games import get_game
from chess_snn.rng import derive_seed

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
    ladder = Ladder.of_results(
        [PairResults.of_match(match) for match in matches], identities_of(played),
        max_plies=DEFAULT_MAX_PLIES,
        origin={
            "date": datetime.now(UTC).isoformat(timespec="seconds"), "version": __version__,
            "command": f"python -m benchmarks ladder --pairs {pairs} --seed {seed}", "seed": seed,
        },
    )
    write_json(out / LADDER_FILE, ladder.to_json())
    for rung in reversed(ladder.rungs):
        report.add(rung.player, rung.elo, "Elo")


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
