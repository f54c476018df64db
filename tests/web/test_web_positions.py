"""Positions of the page that need no connection."""

from chess_snn.web.positions import describe_tiles
from chess_snn.web.protocol import TilesGame


def test_a_game_of_2048_goes_on_alike_from_any_of_its_boards():
    """The page sends a later board and its ply instead of all moves."""
    moves = []
    while len(moves) < 12:
        game = TilesGame(kind="2048", seed=7, moves=tuple(moves))
        moves.append(describe_tiles(game)["legal"][0])
    whole = describe_tiles(TilesGame(kind="2048", seed=7, moves=tuple(moves)))
    for ply in (1, 5, 11):
        before = describe_tiles(TilesGame(kind="2048", seed=7, moves=tuple(moves[:ply])))
        after = describe_tiles(TilesGame(
            kind="2048", seed=7, start=before["board"], ply=ply, moves=tuple(moves[ply:])
        ))
        assert (after["board"], after["ply"]) == (whole["board"], 12)
        assert before["points"] + after["points"] == whole["points"]
