"""``chess-snn games import``: from PGN to shards that a network can be trained on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from chess_snn.cli.console import console, print_message, table_of, work_bar
from chess_snn.cli.options import JsonFile
from chess_snn.cores import num_cores
from chess_snn.errors import UsageError
from chess_snn.later import to_run
from chess_snn.wording import counted

if TYPE_CHECKING or to_run(__name__):
    from chess_snn.data import write_json
    from chess_snn.data.files import remove
    from chess_snn.pgn.importing import Imported, import_pgn
    from chess_snn.pgn.report import FAULT_KINDS
    from chess_snn.pgn.selection import Selection

_KIB: Final = 1024


def import_command(
    file: Annotated[Path, typer.Argument(help="PGN; plain, or packed by gzip or zstd.")],
    out: Annotated[Path, typer.Option(help="New folder, or that of an import to go on with.")],
    workers: Annotated[int, typer.Option(help="Processes; 0 takes every core.")] = 0,
    strict: Annotated[bool, typer.Option(help="End at the first bad game.")] = False,
    min_elo: Annotated[int | None, typer.Option(help="Least rating of both players.")] = None,
    time_control: Annotated[
        str, typer.Option(help="Speeds as Lichess calls them, or seconds: blitz,rapid,300+3.")
    ] = "",
    result: Annotated[str, typer.Option(help="Results: 1-0,0-1,1/2-1/2.")] = "",
    limit: Annotated[int | None, typer.Option(help="Import the first games only.")] = None,
    json_file: JsonFile = None,
) -> None:
    """Turn the games of a PGN file into shards that a network can be trained on.

    Moves are checked by our own rules. A bad game is left out as a whole, and counted. The same
    command again goes on where it was ended, and imports nothing twice.

    chess-snn games import lichess.pgn.zst --out imports/lichess --min-elo 2000 --limit 100000
    """
    selection = Selection(min_elo, _split(time_control), _split(result), limit)
    with work_bar(f"importing {file.name}", "KiB read") as on_progress:
        imported = import_pgn(
            file, out, selection, workers=workers or num_cores(), strict=strict,
            on_progress=lambda done, total: on_progress(done // _KIB, -(-total // _KIB)),
        )
    _print_import(imported, out, selection)
    report = imported.report
    if json_file is not None:
        write_json(json_file, report.to_json() | {
            "new_games": imported.new_games, "seconds": round(imported.seconds, 3),
            "games_per_s": round(imported.games_per_s, 1),
        })
    if not report.games:
        remove(out)  # so that another selection, or the file once it is whole, may have the name
        raise UsageError(
            f"none of the {report.games_read:,} games of {file} could be imported"
            + (f" with {selection}" if report.left_out else "")
        )


def _split(text: str) -> tuple[str, ...]:
    """The values of an option that takes several."""
    return tuple(text.split(",")) if text else ()


def _print_import(imported: Imported, out: Path, selection: Selection) -> None:
    report = imported.report
    print_message(
        f"{report.games:,} of {report.games_read:,} games imported into {out}: "
        f"{counted(report.positions, 'position')}, "
        f"{counted(len(imported.folder.shards()), 'shard')}"
    )
    if imported.new_games:
        print_message(
            f"{counted(imported.new_games, 'game')} read in {imported.seconds:.1f} s, "
            f"{imported.games_per_s:,.0f} games/s after start-up"
        )
    else:
        print_message("All of it was there before; nothing was written.")
    for count, what in (
        (report.latin1_headers, "have a header in Latin-1"),
        (report.played_on, "went on after a draw by the rules, and are kept as they were played"),
    ):
        if count:
            print_message(f"{count:,} of them {what}.")
    for option, count in report.left_out.items():
        print_message(f"{count:,} left out by {selection.option(option)}.")
    if report.games_refused:
        kinds = [kind for kind in FAULT_KINDS if kind in report.refused]
        console.print(table_of(f"{counted(report.games_refused, 'game')} refused", kinds, {
            "kind": lambda kind: kind.replace("_", " "),
            "games": lambda kind: f"{report.refused[kind]:,}",
            "first": lambda kind: str(report.examples[kind]),
            "meaning": lambda kind: FAULT_KINDS[kind],
        }, left=("kind", "first", "meaning")))
