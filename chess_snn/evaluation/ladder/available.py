"""Players of the ladder that can be played here: their engine is installed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chess_snn.errors import EngineError
from chess_snn.evaluation.engines.player import is_engine_name
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.ladder.ladder import Ladder
from chess_snn.evaluation.named_players import make_player, split_dilution
from chess_snn.evaluation.players import program_of
from chess_snn.games import get_game


def uses_engine(player: str) -> bool:
    """Return whether another program must be installed for ``player`` to play."""
    return is_engine_name(split_dilution(player)[0])


@dataclass(frozen=True, slots=True)
class AvailablePlayers:
    """The players that can be played, and why the others cannot."""

    players: tuple[str, ...]
    """Players in the order in which they were asked for."""
    notice: str | None
    """One line: what is missing, and what helps; None if nothing is."""
    approximate: Mapping[str, str] = field(default_factory=dict)
    """Players whose engine is of another version than in the ladder's games, and
    what it calls itself."""


def available_players(
    ladder: Ladder, players: Sequence[str], engines: EngineSettings
) -> AvailablePlayers:
    """The players among ``players`` whose engine is installed.

    Another version of the engine is another player: its rating is known approximately.

    Args:
        ladder: whose players they are.
        players: names.
        engines: how engines are run.
    """
    missing: set[str] = set()
    approximate: dict[str, str] = {}
    notices = []
    engine_players = [name for name in players if uses_engine(name)]
    for program in sorted({ladder.programs[name] for name in engine_players}):
        names = [name for name in engine_players if ladder.programs[name] == program]
        try:
            facts = program_of(make_player(get_game("chess"), names[0], engines))
        except EngineError as error:
            missing |= set(names)
            notices.append(
                f"the ladder is without the {len(names)} players that need {program}: {error}"
            )
            continue
        if facts is not None and facts.identity != program:
            approximate |= dict.fromkeys(names, facts.identity)
            notices.append(f"{facts.identity} plays the rungs of {program}: they are approximate")
    available = tuple(name for name in players if name not in missing)
    return AvailablePlayers(available, "; ".join(notices) or None, approximate)
