"""``chess-snn ladder``: the players of known strength that come with chess-snn."""

import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from chess_snn import __version__
from chess_snn.cli.console import console, print_json, print_message, table_of, work_bar
from chess_snn.cli.ladder_rate import ENGINE_S, LadderOption, find_ladder, rate
from chess_snn.cli.options import (
    AsJsonOption,
    SeedOption,
    ThreadsOption,
    check_writable,
    output_option,
    refuse_in_campaign,
)
from chess_snn.config import check_range
from chess_snn.data import write_bytes, write_json, write_parts
from chess_snn.errors import UsageError
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.ladder.check import available_players, num_same_games
from chess_snn.evaluation.ladder.games_file import LadderGames, pack_games, unpack_games
from chess_snn.evaluation.ladder.ladder import (
    GAMES_FILE,
    LADDER_FILE,
    Ladder,
    PairResults,
    shipped_games,
)
from chess_snn.evaluation.ladder.playing import (
    LADDER_PLAYERS,
    LadderPlan,
    ladder_pairings,
    play_ladder,
    programs_of,
    read_matches,
)
from chess_snn.evaluation.match_files import match_pgn
from chess_snn.evaluation.matches import DEFAULT_MAX_PLIES
from chess_snn.evaluation.named_players import DECREED_RATINGS
from chess_snn.evaluation.ratings.result import interval_text
from chess_snn.games import get_game
from chess_snn.wording import names_hint

app = typer.Typer(
    help="Players of known strength: see their ratings and games, rate networks among them.",
    no_args_is_help=True,
)
app.command("rate")(rate)

DEFAULT_PAIRS: Final = 110
"""About half an hour on 2 cores."""
PARTS: Final = "parts"
"""Folder of the finished parts of a round-robin."""
_EXIT_CHANGED: Final = 1
_EVENT: Final = "chess-snn ladder"

EngineSeconds = Annotated[
    float, typer.Option(min=0.01, max=3600.0,
                        help="An engine that takes longer for a move is started anew.")
]


@app.command("make")
def make_command(
    out: Annotated[Path, typer.Option(help="Folder for the ladder and all that is played.")],
    pairs: Annotated[
        int, typer.Option(help="Openings of every pairing, each with both colours.")
    ] = DEFAULT_PAIRS,
    seed: SeedOption = 0,
    players: Annotated[
        str, typer.Option(help="Who takes part: names with commas between, the weakest first.")
    ] = ",".join(LADDER_PLAYERS),
    minutes: Annotated[
        float, typer.Option(help="Begin nothing after so many and rate what there is; 0: play all.")
    ] = 0.0,
    max_plies: Annotated[int, typer.Option(help="Longer games are truncated.")] = DEFAULT_MAX_PLIES,
    threads: ThreadsOption = 0,
    engine_seconds: EngineSeconds = ENGINE_S,
) -> None:
    """Play a round-robin between players of all strengths, and rate them together.

    Every player meets the next two players, and every second one the fourth after it, from openings
    of the book with both colours. Random is 0. What is played is kept at once: stopped and started
    again, the command goes on, and with more --pairs it plays the missing ones. It ends with
    ladder.json (ratings, results of every pairing) and ladder.games.zst (all games).

    chess-snn ladder make --out ladders/mine

    chess-snn ladder make --out ladders/small --pairs 20 --players random,greedy~50,greedy,minimax:2
    """
    check_range("--minutes", minutes, ge=0.0, le=1_000_000.0)
    names = tuple(name.strip() for name in players.split(",") if name.strip())
    if "random" not in names:
        raise UsageError("--players must name random, which has the rating 0")
    plan = LadderPlan(tuple(ladder_pairings(names)), pairs, seed, max_plies)
    engines = EngineSettings(threads, answer_s=engine_seconds, start_s=engine_seconds)
    check_writable(out / LADDER_FILE, "--out")
    with work_bar("ladder", "games over") as on_progress:
        is_complete = play_ladder(
            out / PARTS, plan, engines, minutes=minutes, on_progress=on_progress
        )
    matches = read_matches(out / PARTS, plan)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    command = f"chess-snn ladder make --pairs {pairs} --seed {seed}"
    if names != LADDER_PLAYERS:
        command += f" --players {','.join(names)}"
    if max_plies != DEFAULT_MAX_PLIES:
        command += f" --max-plies {max_plies}"
    ladder = Ladder.of_results(
        [PairResults.of_match(match) for match in matches.values()], programs_of(matches.values()),
        max_plies=max_plies,
        origin={
            "date": now, "command": command, "seed": seed, "is_complete": is_complete,
            "version": __version__,
        },
    )
    packed = pack_games(LadderGames(tuple(matches.values()), now, seed))
    write_bytes(out / GAMES_FILE, packed)
    write_json(out / LADDER_FILE, ladder.to_json())
    _show(ladder)
    print_message(f"written: {out / LADDER_FILE}, {out / GAMES_FILE}")
    if not is_complete:
        print_message("The time was up before all pairs were played; the same command goes on.")


@app.command("show")
def show_command(
    ladder: LadderOption = None,
    as_json: AsJsonOption = False,
) -> None:
    """Print the ladder: players, measured ratings, and where they have some, decreed ones.

    Points are Elo above the random mover, which is 0. Games are how many the rating rests on.

    chess-snn ladder show
    """
    found = find_ladder(ladder)
    if as_json:
        print_json(found.to_json())
    else:
        _show(found)


@app.command("check")
def check_command(
    pairs: Annotated[int, typer.Option(help="Openings of every pairing, the first ones.")] = 4,
    ladder: LadderOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Keep the games in this folder, and go on from there.")
    ] = None,
    threads: ThreadsOption = 0,
    engine_seconds: EngineSeconds = ENGINE_S,
) -> None:
    """Play the first games of every pairing again, and compare them with the ladder's own.

    All must be the same, move by move; exit code 1 where one is not. The games of a ladder.json are
    in the ladder.games.zst beside it. Players whose engine is missing, or is of another version,
    are left out.

    chess-snn ladder check
    """
    if out is not None:
        refuse_in_campaign(out / PARTS, "--out")
    found = find_ladder(ladder)
    packed = shipped_games() if ladder is None else ladder.with_name(GAMES_FILE).read_bytes()
    recorded = unpack_games(packed)
    check_range("--pairs", pairs, ge=1, le=min(len(m.opening_keys) for m in recorded.matches))
    engines = EngineSettings(threads, answer_s=engine_seconds, start_s=engine_seconds)
    available = available_players(found, found.players, engines)
    if available.notice is not None:
        print_message(available.notice)
    chosen = {
        (match.player_a, match.player_b): match for match in recorded.matches
        if {match.player_a, match.player_b} <= set(available.players)
    }
    plan = LadderPlan(tuple(chosen), pairs, recorded.seed, found.max_plies)
    with ExitStack() as stack:
        folder = out or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with work_bar("ladder", "games over") as on_progress:
            play_ladder(folder / PARTS, plan, engines, on_progress=on_progress)
        played = read_matches(folder / PARTS, plan)
    rows = [
        (match, num_same_games(chosen[pairing], match)) for pairing, match in played.items()
    ]
    console.print(table_of("check of the ladder", rows, {
        "player": lambda row: row[0].player_a,
        "against": lambda row: row[0].player_b,
        "games": lambda row: f"{row[0].num_games:,}",
        "the same": lambda row: f"{row[1]:,}",
        "": lambda row: "ok" if row[1] == row[0].num_games else "CHANGED",
    }, left=("player", "against", "")))
    num_same = sum(same for _, same in rows)
    print_message(f"{num_same:,} of {plan.num_games:,} games are the same, move by move.")
    if num_same < plan.num_games:
        raise typer.Exit(_EXIT_CHANGED)


@app.command("games")
def games_command(
    out: Annotated[Path, output_option("PGN file to write.")],
    games: Annotated[
        Path | None, typer.Option(help="A ladder.games.zst; left out, the one that is shipped.")
    ] = None,
    player: Annotated[str, typer.Option(help="Only games of this player.")] = "",
) -> None:
    """Write the ladder's games as PGN.

    chess-snn ladder games --player minimax:2 --out minimax.pgn
    """
    found = unpack_games(shipped_games() if games is None else games.read_bytes())
    chosen = [match for match in found.matches if player in {"", match.player_a, match.player_b}]
    if not chosen:
        names = sorted({name for match in found.matches
                        for name in (match.player_a, match.player_b)})
        raise UsageError(f"--player {player!r} has no game there; {names_hint(player, names)}")
    more = {"Seed": str(found.seed)}
    write_parts(out, (
        text for match in chosen
        for _, text in match_pgn(
            get_game("chess"), match, event=_EVENT, date=found.date, more=more
        )
    ))
    print_message(f"{sum(match.num_games for match in chosen):,} games written to {out}")


def _show(ladder: Ladder) -> None:
    """Print the players, the strongest first, and how far the ratings can be trusted."""
    console.print(table_of("Elo above random", reversed(ladder.rungs), {
        "player": lambda rung: rung.player,
        "Elo": lambda rung: f"{rung.elo:.0f}",
        "95 % interval": lambda rung: interval_text(rung.elo_low, rung.elo_high),
        "games": lambda rung: f"{rung.num_games:,}",
        "decreed": lambda rung: str(DECREED_RATINGS.get(rung.player, "")),
    }, left=("player",)))
    origin, ratings = ladder.origin, ladder.ratings
    print_message(
        f"{ladder.num_games:,} games of {len(ladder.pairings)} pairings, truncated after "
        f"{ladder.max_plies} plies; {origin['date'][:10]}, {ladder.engine or 'no engine'}, "
        f"{origin['command']}"
    )
    print_message(
        f"Playing white is worth {ratings['colour_advantage']['value']:.0f} points; "
        f"{ratings['draw_rate']['value']:.0%} of games between equals are drawn or truncated."
    )
    if any(name in ladder.players for name in DECREED_RATINGS):
        print_message(
            "Decreed: what published systems call these opponents, on a scale of their own where "
            f"random is {DECREED_RATINGS['random']}."
        )
