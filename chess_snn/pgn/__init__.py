"""PGN in and out: any collection of chess games becomes shards, and shards become PGN.

::

    imported = import_pgn(Path("games.pgn.zst"), Path("imports/games"), workers=8)
    window = ReplayWindow.load(game, imported.folder.shards(), capacity=250_000)

    text = format_game(records, k, tags)      # and back
    records, report = read_games(text.encode())
"""
