"""PGN files for imports, good and bad games among each other."""

from functools import cache

from random_games import random_records

from chess_snn.pgn.writing import format_game, standard_tags

BAD_GAME = '[Event "bad"]\n[Result "1-0"]\n\n1. e4 e5 2. Ke3 1-0\n\n'
BAD_EVERY = 100


@cache
def pgn_text(num_games, seed=0):
    """``num_games`` games of which every 100th, the first among them, has an illegal move."""
    records = random_records(num_games, 30, seed)
    return "".join(
        BAD_GAME if k % BAD_EVERY == 0
        else format_game(records, k, {"Event": f"game {k}"} | standard_tags(records, k))
        for k in range(num_games)
    )
