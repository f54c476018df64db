"""Import a PGN file on two processes, beside python-chess.

The games are uniformly random, of up to 120 plies. The time of a rate starts when the first worker
is ready. python-chess reads and checks a part of the same file on one core and stores nothing.
"""

import io
import tempfile
import time
from pathlib import Path
from typing import Final

import chess.pgn

from benchmarks.random_data import play_random_games
from benchmarks.report import Quick, Report, benchmark
from chess_snn.games import get_game
from chess_snn.pgn.importing import import_pgn
from chess_snn.pgn.writing import format_game, standard_tags

GAMES_BAR: Final = 1500.0
"""Games a second on two cores."""

_WORKERS: Final = 2
_DISTINCT: Final = 2000
_COPIES: Final = 5
_MAX_PLIES: Final = 120
_PEER_GAMES: Final = 200


def run(report: Report, quick: Quick = False) -> None:
    """From PGN to shards on two processes, beside python-chess."""
    games = _games()
    copies = 1 if quick else _COPIES
    with tempfile.TemporaryDirectory(prefix="chess-snn-bench-") as folder:
        file = Path(folder, "games.pgn")
        file.write_text("".join(games) * copies, encoding="utf-8")
        start = time.perf_counter()
        imported = import_pgn(file, Path(folder, "imported"), workers=_WORKERS)
        report.add("with start-up", imported.new_games / (time.perf_counter() - start), "games/s")
    positions = imported.report.positions / imported.seconds
    report.add("after start-up", imported.games_per_s, "games/s", at_least=GAMES_BAR)
    report.add("after start-up, moves checked", positions, "positions/s")
    peer = _peer_games_per_s(games[:_PEER_GAMES])
    report.add("python-chess, one process", peer, "games/s")
    report.add("ratio to as many processes of it", imported.games_per_s / (_WORKERS * peer), "x")
    report.note(
        f"{imported.new_games:,} random games, {imported.report.positions:,} positions, "
        f"{_WORKERS} processes; all games imported: "
        f"{'yes' if imported.report.games == imported.new_games else 'NO'}"
    )


command = benchmark("import", run)


def _games() -> list[str]:
    records = play_random_games(get_game("chess"), _DISTINCT, _MAX_PLIES)
    return [
        format_game(records, k, {"Event": f"game {k}"} | standard_tags(records, k))
        for k in range(records.num_games)
    ]


def _peer_games_per_s(games: list[str]) -> float:
    text = io.StringIO("".join(games))
    start = time.perf_counter()
    count = 0
    while chess.pgn.read_game(text) is not None:
        count += 1
    return count / (time.perf_counter() - start)
