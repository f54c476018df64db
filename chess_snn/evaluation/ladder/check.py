"""Whether the ladder holds here: its engines are installed, and its games are played again alike.

The seed and the players decide every move, and an engine's answer to a position with fixed nodes or
depth is always the same. So a game that comes out otherwise shows that the rules, a player or an
engine has changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from chess_snn.errors import EngineError
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.ladder.ladder import Ladder
from chess_snn.evaluation.ladder.playing import uses_engine
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.named_players import make_player
from chess_snn.evaluation.players import program_of
from chess_snn.games import get_game


@dataclass(frozen=True, slots=True)
class AvailablePlayers:
    """The players that can be played, and why the others cannot."""

    players: tuple[str, ...]
    """In the order in which they were asked for."""
    notice: str | None
    """One line: what is missing, and what helps; None if nothing is."""
    approximate: Mapping[str, str] = field(default_factory=dict)
    """Those among ``players`` whose engine is of another version than in the ladder's games, and
    what it calls itself."""


def available_players(
    ladder: Ladder, players: Sequence[str], engines: EngineSettings, *,
    with_other_versions: bool = False,
) -> AvailablePlayers:
    """The players among ``players`` that are the same here as in the ladder's games.

    Another version of the engine is another player: its rating is known approximately.

    Args:
        ladder: whose players they are.
        players: names.
        engines: how engines are run.
        with_other_versions: keep the players whose engine is of another version, as approximate.
    """
    missing: set[str] = set()
    approximate: dict[str, str] = {}
    notices = []
    engine_players = [name for name in players if uses_engine(name)]
    for program in sorted({ladder.programs[name] for name in engine_players}):
        names = [name for name in engine_players if ladder.programs[name] == program]
        fault, installed = _compare_program(program, names[0], engines)
        if with_other_versions and installed:
            approximate |= dict.fromkeys(names, installed)
            notices.append(f"{installed} plays the rungs of {program}: they are approximate")
        elif fault:
            missing |= set(names)
            notices.append(
                f"the ladder is without the {len(names)} players that need {program}: {fault}"
            )
    available = tuple(name for name in players if name not in missing)
    return AvailablePlayers(available, "; ".join(notices) or None, approximate)


def _compare_program(program: str, player: str, engines: EngineSettings) -> tuple[str, str]:
    """Why ``player`` is not played by ``program`` here, and by what instead; else empty texts."""
    try:
        facts = program_of(make_player(get_game("chess"), player, engines))
    except EngineError as error:
        return str(error), ""
    if facts is None or facts.identity == program:
        return "", ""
    return (
        f"they were rated as {program}, and {facts.identity} is installed, another player; "
        f"install {program}, or make a ladder of your own with `chess-snn ladder make`",
        facts.identity,
    )


def num_same_games(recorded: MatchResult, played: MatchResult) -> int:
    """How many games of ``played`` have the opening and the moves of the same game of ``recorded``.

    ``played`` are the first games of ``recorded``, played again.
    """
    return sum(
        one == other
        for one, other in zip(_played_games(recorded), _played_games(played), strict=False)
    )


def _played_games(match: MatchResult) -> Iterator[tuple[str, list[int]]]:
    """Opening and actions of each game."""
    for number, actions in enumerate(np.split(match.actions, np.cumsum(match.plies)[:-1])):
        yield match.opening_keys[number // 2], actions.tolist()
