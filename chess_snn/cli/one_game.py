"""Commands that are for one game, given something of another one."""

from typing import Final

from chess_snn.errors import UsageError
from chess_snn.games import GAME_NAMES

DEFAULT_GAME: Final = "chess"
"""Of commands that neither a network nor an option tells which one."""
ADVISER: Final = "expectimax:2"
"""Says what it would play in a game of one player, beside a network or without one."""
_OF_ANY_GAME: Final = (
    "play", "analyse", "match", "scores", "models compare", "games show", "games stats", "results",
    "watch",
)
"""Commands that take every game."""


def check_game(what: str, found: str, wanted: str) -> None:
    """Refuse ``what``, of the game called ``found``, in a command that needs the game ``wanted``.

    Raises:
        UsageError: the games differ; the message names both, and what works instead.
    """
    if found == wanted:
        return
    if found not in GAME_NAMES:
        raise UsageError(
            f"{what} is of the game {found}, which is not known here; known: "
            f"{', '.join(GAME_NAMES)}"
        )
    raise UsageError(
        f"{what} is of the game {found}, and this command needs {wanted} here; these work with "
        f"{found}: {', '.join(_OF_ANY_GAME)}"
    )
