"""``chess-snn match``: two players, many openings, both colours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from chess_snn.cli.console import print_rows, work_bar
from chess_snn.cli.options import (
    GameOption,
    JsonFile,
    NetworkDeviceOption,
    SeedOption,
    SimulationsOption,
    ThreadsOption,
    complete_player,
    output_option,
)
from chess_snn.known import ANSWER_S, KNOWN_PLAYERS, MOST_PLIES, SHIPPED_CHESS
from chess_snn.later import to_run

if TYPE_CHECKING or to_run(__name__):
    from chess_snn.api.matches import game_of, play_match, player
    from chess_snn.data import write_parts
    from chess_snn.evaluation.comparison import elo_json, likelihood_of_superiority
    from chess_snn.evaluation.match_files import check_pgn_game, write_match
    from chess_snn.evaluation.match_result import CUT, MatchResult
    from chess_snn.evaluation.scores import elo_difference, pair_counts
    from chess_snn.evaluation.solo import interval_text
    from chess_snn.games import get_game
    from chess_snn.types import Int64Array

_DEFAULT_OPPONENT: Final = "stockfish@100"


def match_command(
    a: Annotated[
        str, typer.Argument(help=f"{', '.join(KNOWN_PLAYERS)}, or a network.",
                            autocompletion=complete_player)
    ] = SHIPPED_CHESS,
    b: Annotated[
        str, typer.Argument(help="Its opponent, written the same way.")
    ] = _DEFAULT_OPPONENT,
    game_name: GameOption = "",
    games: Annotated[
        int, typer.Option(min=2, max=100_000, help="Even: each opening is played twice.")
    ] = 200,
    simulations: SimulationsOption = 64,
    max_plies: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_PLIES,
                     help="Longer games are truncated; by default 200, and 100,000 with one "
                     "player."),
    ] = None,
    openings: Annotated[
        str,
        typer.Option(help="book, random or random:N, after N random plies; seeds with one player."),
    ] = "",
    seed: SeedOption = 0,
    threads: ThreadsOption = 0,
    engine_seconds: Annotated[
        float, typer.Option(min=0.01, max=86_400.0,
                            help="An engine that takes longer for a move is started anew.")
    ] = ANSWER_S,
    device: NetworkDeviceOption = "cpu",
    pgn: Annotated[Path | None, output_option("Write the games to this file.")] = None,
    json_file: JsonFile = None,
) -> None:
    """Play a match of A against B and say what its score is worth.

    A network is a campaign's folder (its newest generation), CAMPAIGN@12 (generation 12),
    CAMPAIGN@champion, an exported model's or a checkpoint's folder, a weights.safetensors, or one
    that comes with this program. PATH:32 gives it 32 simulations of its own, PATH#ticks=2 plays
    its weights with 2 ticks, and PATH#search.kind=puct with another setting of its search; commas
    stand between several.

    In a game of one player both play the same seeds, and more points win a seed.

    An engine looks at a fixed number of nodes (stockfish@1000) or to a fixed depth
    (stockfish:depth=1); others than Stockfish are uci:/path/to/engine@1000. It sees the position
    alone, not the moves before. An illegal move forfeits a game; a game in which an engine still
    does not answer after two fresh starts is void. Any player behind which stands ~25 makes 25 % of
    its moves at random.

    chess-snn match campaigns/cpu-001:64 greedy

    chess-snn match campaigns/cpu-001@18:64 campaigns/cpu-001@12:64

    chess-snn match campaigns/cpu-001:64 stockfish:depth=1~75

    chess-snn match campaigns/cpu-001#ticks=1:64 campaigns/cpu-001#ticks=4:64

    chess-snn match shipped/chess:400 shipped/chess#search.kind=gumbel:400

    chess-snn match --game 2048 expectimax:2 expectimax:1 --games 400
    """
    game = get_game(game_name or game_of([a, b]))
    if pgn is not None:
        check_pgn_game(game)
    first, second = (
        player(name, game=game.spec.name, simulations=simulations, device=device,
               threads=threads or None, answer_s=engine_seconds)
        for name in (a, b)
    )
    label = f"{first.name} against {second.name}"
    with first, second, work_bar(label, "games over") as on_progress:
        match = play_match(
            first, second, games=games, openings=openings, seed=seed, max_plies=max_plies,
            on_progress=on_progress,
        )
    counts = pair_counts(match.result)
    superiority = likelihood_of_superiority(counts)
    _print_result(match.result, counts, superiority, match.seconds)
    if pgn is not None:
        write_parts(pgn, match.pgn())
    if json_file is not None:
        figures = {
            "likelihood_of_superiority": superiority, "pair_counts": counts.tolist(),
            "elo": elo_json(match.result),
        }
        more = figures | match.settings | {"seconds": round(match.seconds, 1)}
        write_match(json_file, match.result, more)


def _print_result(
    result: MatchResult, counts: Int64Array, superiority: float, seconds: float
) -> None:
    endings = result.terminations_by_name
    if not result.is_solo:
        endings.pop(CUT, None)  # which stand beside the draws
    rows = _score_rows(result, counts, superiority) | {
        "endings": ", ".join(f"{name.replace('_', ' ')} {count}"
                             for name, count in endings.items()) or "none",
        "mean plies": f"{result.plies.mean():.1f}",
        "seconds": f"{seconds:.1f}",
    } | _program_rows(result)
    print_rows(f"{result.player_a} against {result.player_b}", rows)


def _score_rows(result: MatchResult, counts: Int64Array, superiority: float) -> dict[str, str]:
    """The result: games or seeds, score and Elo difference, and points if there are any."""
    low, high = result.interval()
    rows = {
        "seeds": f"{result.num_pairs}, more points on {counts[-1]}, as many on {counts[2]}, fewer "
                 f"on {counts[0]}",
    } if result.is_solo else {
        "games": f"{result.num_games}, {result.wins} won, {result.draws} drawn, "
                 f"{result.losses} lost, {result.truncated} truncated"
                 + (f", {result.voided} void" if result.voided else ""),
    }
    rows |= {
        "score": f"{result.score:.3f}, 95 % interval {low:.3f} to {high:.3f} "
                 f"({result.num_pairs} pairs; a truncated game counts half)",
        "Elo": _elo_text(result.score, low, high),
        "likelihood of superiority":
            f"{superiority:.1%} that {result.player_a} is the better one",
    }
    if not result.is_solo:
        return rows
    figures = result.point_figures()
    rows["ahead"] = f"{interval_text(figures['ahead'])} points a seed"
    for name, side in ((result.player_a, "a"), (result.player_b, "b")):
        own = figures[side]
        reached = ", ".join(f"{share:.1%} to {m}" for m, share in own["reached"].items() if share)
        rows[name] = (
            f"{interval_text(own)} points, median {own['median']:,.0f}, most {own['best']:,.0f}"
            + (f"; {reached}" if reached else "")
        )
    return rows


def _program_rows(result: MatchResult) -> dict[str, str]:
    """Other programs that took part, and what they did wrong; no rows without them."""
    programs = result.programs
    rows = {
        "engines": ", ".join(f"{name} is {facts.identity}" for name, facts in programs.items()),
        "forfeits": ", ".join(
            f"{name} {count}, the last by {programs[name].last_illegal}"
            for name, count in (
                (result.player_a, result.forfeits_a), (result.player_b, result.forfeits_b)
            ) if count
        ),
        "failures": ", ".join(
            f"{name} {facts.failures}, the last: {facts.last_failure}"
            for name, facts in programs.items() if facts.failures
        ),
    }
    return {name: text for name, text in rows.items() if text}


def _elo_text(score: float, low: float, high: float) -> str:
    """Elo difference of a score and its 95 % interval (low, high), or the one bound there is."""
    if score == 1.0:
        return f"at least {elo_difference(low):+.0f} (95 %)"
    if score == 0.0:
        return f"at most {elo_difference(high):+.0f} (95 %)"
    ends = " to ".join(f"{elo_difference(end):+.0f}" for end in (low, high))
    return f"{elo_difference(score):+.0f}, 95 % interval {ends}"
