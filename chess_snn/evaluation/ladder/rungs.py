"""The players of the ladder, and which of them meet.

Random play and the weakest ways to play with a plan are far apart, and it is there that networks
which learn from nothing spend their first hours: so the lower rungs are players diluted with random
moves. Higher up Stockfish looks at a fixed number of nodes, which makes it the same player on every
machine.
"""

from collections.abc import Sequence
from typing import Final

from chess_snn.errors import ConfigError
from chess_snn.evaluation.dilution import split_dilution
from chess_snn.evaluation.engines import is_engine_name

LADDER_PLAYERS: Final = (
    "random",
    "stockfish:depth=1~90",
    "greedy~75",
    "stockfish:depth=1~75",
    "greedy~50",
    "minimax:2~50",
    "greedy~25",
    "stockfish:depth=1~50",
    "greedy",
    "minimax:2~25",
    "stockfish:depth=1~25",
    "minimax:3~25",
    "minimax:2",
    "minimax:3~10",
    "minimax:3",
    "stockfish:depth=1~10",
    "stockfish:depth=1",
    "stockfish@1",
    "stockfish@30",
    "stockfish@100",
    "stockfish@300",
    "stockfish@1000",
    "stockfish@2000",
    "stockfish@3000",
    "stockfish@5000",
    "stockfish@10000",
)
"""From the weakest to the strongest, as far as is known before they play."""

NEIGHBOURS: Final = 2
"""Every player meets so many of the next ones."""
LONG_LINK: Final = 4
"""Every second player meets the one so many places above it too."""


def ladder_pairings(players: Sequence[str]) -> list[tuple[str, str]]:
    """Who meets whom, both in the order of ``players``.

    Neighbours decide the ratings: between players far apart all games end one way, and say only
    that they are far apart. A few longer links hold the scale together, so that an error of one
    step does not add up with those of all the others.

    Raises:
        ConfigError: fewer than two players, or one twice.
    """
    if len(players) < 2:
        raise ConfigError(
            f"a ladder needs at least two players, got {', '.join(players) or 'none'}"
        )
    if len(set(players)) != len(players):
        raise ConfigError(f"the ladder names a player twice: {', '.join(players)}")
    steps = [
        (low, low + step)
        for low in range(len(players))
        for step in (*range(1, NEIGHBOURS + 1), LONG_LINK)
        if step <= NEIGHBOURS or low % 2 == 0
    ]
    return [(players[low], players[high]) for low, high in steps if high < len(players)]


def needs_engine(player: str) -> bool:
    """Whether another program must be installed for ``player`` to play."""
    return is_engine_name(split_dilution(player)[0])
