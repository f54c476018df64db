"""``chess-snn ratings``: everybody who has played in a campaign, by all of its games."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.strength.ratings import ANCHOR, rate_campaign
from chess_snn.cli.console import console, print_message
from chess_snn.errors import CampaignError
from chess_snn.evaluation.ratings import interval_text


def ratings_command(
    directory: Annotated[Path, typer.Argument(help="The campaign folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Rate a campaign's generations and opponents from all their games at once.

    Elo points above the random mover, which is 0, with 95 % intervals; who won or lost every game
    has a bound. The search budget is part of a name: gen-000012@64 had 64 simulations a move.

    chess-snn ratings campaigns/cpu-001
    """
    folder = CampaignFolder.open(directory)
    rated = rate_campaign(folder)
    if rated is None:
        raise CampaignError(
            f"{folder.path} has no match against {ANCHOR} yet; one is played every "
            f"{folder.config.evaluation.every} generations"
        )
    if as_json:
        typer.echo(json.dumps(rated.to_json(), indent=2))
        return
    ratings = rated.ratings
    table = Table(title=f"{folder.name}: Elo above {ANCHOR}")
    for heading in ("player", "Elo", "95 % interval", "games", "score"):
        table.add_column(heading, justify="right" if heading != "player" else "left")
    for rating in ratings.table:
        table.add_row(
            rating.player, f"{rating.elo.value:.0f}",
            interval_text(rating.elo.low, rating.elo.high), f"{rating.num_games:,}",
            f"{rating.score:.3f}",
        )
    console.print(table)
    print_message(
        f"Playing white is worth {ratings.colour_advantage.value:.0f} points; "
        f"{ratings.draw_rate.value:.0%} of games between equals are drawn or cut."
    )
    if rated.notice is not None:
        print_message(rated.notice)
