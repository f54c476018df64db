"""PGN in and out: any collection of chess games becomes shards, and shards become PGN.

::

    imported = import_pgn(Path("games.pgn.zst"), Path("imports/games"), workers=8)
    window = ReplayWindow.load(game, imported.folder.shards(), capacity=250_000)

    text = format_game(records, k, tags)      # and back
    records, report = read_games(text.encode())
"""

from chess_snn.pgn.folder import ImportFolder, ImportSource, is_import
from chess_snn.pgn.importing import Imported, import_pgn
from chess_snn.pgn.reading import read_games
from chess_snn.pgn.report import FAULT_KINDS, ImportReport
from chess_snn.pgn.writing import format_game, format_moves, game_tags, standard_tags

__all__ = [
    "FAULT_KINDS",
    "ImportFolder",
    "ImportReport",
    "ImportSource",
    "Imported",
    "format_game",
    "format_moves",
    "game_tags",
    "import_pgn",
    "is_import",
    "read_games",
    "standard_tags",
]
