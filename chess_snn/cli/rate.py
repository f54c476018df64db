"""``chess-snn rate``: any networks on the ladder's scale, in one table."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from chess_snn.cli.console import console, print_json, print_message, print_notice, work_bar
from chess_snn.cli.options import (
    NETWORK,
    AsJsonOption,
    JsonFile,
    NetworkDeviceOption,
    SeedOption,
    SimulationsOption,
    ThreadsOption,
    check_writable,
)
from chess_snn.errors import UsageError
from chess_snn.known import APPROXIMATE_ELO, BATCH_PAIRS, MOST_GAMES
from chess_snn.later import to_run

if TYPE_CHECKING or to_run(__name__):
    from chess_snn.api.matches import games_pgn
    from chess_snn.campaign.models.model import Model
    from chess_snn.campaign.models.references import find_model
    from chess_snn.campaign.store.match_facts import MatchFacts
    from chess_snn.cli.dashboard import matches_table, ratings_table
    from chess_snn.data import write_json, write_parts
    from chess_snn.evaluation.engines.pool import EngineSettings
    from chess_snn.evaluation.ladder.adaptive import SCALE, LadderRating, rate_on_ladder
    from chess_snn.evaluation.ladder.available import available_players
    from chess_snn.evaluation.ladder.ladder import Ladder, read_ladder
    from chess_snn.evaluation.match_result import MatchResult
    from chess_snn.evaluation.named_players import make_player
    from chess_snn.experiment.rating import ENGINE_S, RatingGames
    from chess_snn.games import get_game
    from chess_snn.types import Json

RATINGS: Final = "ratings.json"
GAMES: Final = "games.pgn"
_PARTS: Final = "parts"
APPROXIMATE_NOTE: Final = (
    f"~ rests on approximate rungs: the interval allows {APPROXIMATE_ELO:.0f} points for the "
    "engine's other version"
)


def rate_command(
    networks: Annotated[list[str], typer.Argument(**NETWORK)],
    games: Annotated[
        int, typer.Option(min=2 * BATCH_PAIRS, max=MOST_GAMES,
                          help="Of each network; with --against, of each of its pairings.")
    ] = 100,
    simulations: SimulationsOption = 64,
    against: Annotated[
        str, typer.Option(help="Play these players instead of rungs near the network's strength: "
                               "names with commas between.")
    ] = "",
    seed: SeedOption = 0,
    threads: ThreadsOption = 0,
    device: NetworkDeviceOption = "cpu",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the games and the ratings; started again with the same "
                          "options, the command goes on from there."),
    ] = None,
    json_file: JsonFile = None,
    as_json: AsJsonOption = False,
) -> None:
    """Rate networks by Elo above random moves, with 95 % intervals.

    Each network plays rungs of the ladder near its strength, from openings of the book with both
    colours. All games are fitted together with the ladder's. Behind a network, :N gives it N
    simulations of its own. With --against, it plays the named players.

    A Stockfish of another version than the ladder's plays its rungs approximately; the table marks
    ratings that rest on them, and their intervals are wider by up to 150 points on either side.

    chess-snn rate campaigns/cpu-001@6 campaigns/cpu-001@18 --out rated

    chess-snn rate exported --against random,greedy,minimax:2 --simulations 0
    """
    check_writable(out and out / RATINGS, "--out")
    models = [find_model(text, game="chess", simulations=simulations) for text in networks]
    if len({model.name for model in models}) < len(models):
        raise UsageError(f"a network is named twice: {', '.join(networks)}")
    found = read_ladder()
    engines = EngineSettings(threads, answer_s=ENGINE_S, start_s=ENGINE_S)
    opponents = tuple(name.strip() for name in against.split(",") if name.strip())
    names = tuple(make_player(get_game("chess"), name, engines).name for name in opponents)
    on_ladder = tuple(name for name in names or found.players if name in found.players)
    if names and not on_ladder:
        raise UsageError(
            f"--against must name a player of the ladder, got {against}; known: "
            f"{', '.join(found.players)}"
        )
    available = available_players(found, on_ladder, engines)
    if available.notice is not None:
        print_notice(available.notice)
    with ExitStack() as stack:
        folder = out or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        played: dict[str, dict[str, list[MatchResult]]] = {}
        for model in models:
            with work_bar(model.name, "games over", beside_json=as_json) as on_progress:
                played[model.name] = RatingGames(
                    folder / _PARTS, model, found.max_plies, seed, engines
                ).play(
                    found, available.players, games, against=names, threads=threads,
                    device=device, on_progress=on_progress,
                )
    ratings = rate_on_ladder(found, played, available.approximate)
    body = _to_json(found, models, ratings, {"seed": seed, "games": games})
    if as_json:
        print_json(body)
    else:
        _print(ratings)
    if json_file is not None:
        write_json(json_file, body)
    if out is not None:
        write_json(out / RATINGS, body)
        write_parts(out / GAMES, (
            text for model, rated in zip(models, ratings, strict=True)
            for match in rated.matches
            for text in games_pgn(match, (model.game_facts, {}), seed)
        ))
        if not as_json:
            print_message(f"written: {out / RATINGS}, {out / GAMES}")


def _to_json(
    ladder: Ladder, models: Sequence[Model], ratings: Sequence[LadderRating], settings: Json
) -> Json:
    return {
        "scale": SCALE,
        "ladder": {"date": ladder.origin.get("date"), "engine": ladder.engine},
        "approximate_elo": APPROXIMATE_ELO,
        "networks": [
            rated.to_json() | {
                "simulations": model.simulations, "weights": model.file_digest,
                "generation": model.generation,
            }
            for model, rated in zip(models, ratings, strict=True)
        ],
    } | settings


def _print(ratings: Sequence[LadderRating]) -> None:
    def marked(player: str, is_approximate: bool) -> str:
        return f"~{player}" if is_approximate else player

    console.print(ratings_table(SCALE, [
        replace(rated.rating, player=marked(rated.rating.player, bool(rated.approximate)))
        for rated in ratings
    ]))
    if any(rated.approximate for rated in ratings):
        print_message(APPROXIMATE_NOTE)
    for rated in ratings:
        console.print(matches_table(rated.rating.player, [
            MatchFacts(**match.summary() | {
                "name": "",
                "player_b": marked(match.player_b, match.player_b in rated.approximate),
            })
            for match in rated.matches
        ]))
