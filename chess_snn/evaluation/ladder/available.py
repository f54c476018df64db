"""Which players of the ladder can be played on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass

from chess_snn.errors import EngineError
from chess_snn.evaluation.engines import EngineSettings
from chess_snn.evaluation.ladder.ladder import Ladder
from chess_snn.evaluation.ladder.rungs import needs_engine
from chess_snn.evaluation.named_players import make_player
from chess_snn.evaluation.players import program_of
from chess_snn.games import get_game


@dataclass(frozen=True, slots=True)
class AvailablePlayers:
    """The players that can be played, and why the others cannot."""

    players: tuple[str, ...]
    """In the order in which they were asked for."""
    notice: str | None
    """One line: what is missing, and the way out; None where nothing is."""


def available_players(
    ladder: Ladder, players: Sequence[str], engines: EngineSettings
) -> AvailablePlayers:
    """The players among ``players`` that are the same here as in the ladder's games.

    Another version of the engine is another player: its rating is not known.

    Args:
        ladder: whose players they are.
        players: names.
        engines: how engines are run.
    """
    faults = {
        program: fault for program, name in _one_of_each_program(ladder, players).items()
        if (fault := _fault(ladder, name, engines)) is not None
    }
    if not faults:
        return AvailablePlayers(tuple(players), None)
    sound = tuple(
        name for name in players if not needs_engine(name) or ladder.programs[name] not in faults
    )
    return AvailablePlayers(
        sound,
        f"the ladder is without the {len(players) - len(sound)} players that need "
        f"{' or '.join(sorted(faults))}: " + "; ".join(sorted(set(faults.values()))),
    )


def _one_of_each_program(ladder: Ladder, players: Sequence[str]) -> dict[str, str]:
    """Of each program that stands behind some of ``players``, one of them, by the program."""
    return {ladder.programs[name]: name for name in reversed(players) if needs_engine(name)}


def _fault(ladder: Ladder, name: str, engines: EngineSettings) -> str | None:
    """Why ``name`` is not the player that it is in the ladder."""
    try:
        facts = program_of(make_player(get_game("chess"), name, engines))
    except EngineError as error:
        return str(error)
    wanted = ladder.programs[name]
    if facts is None or facts.identity == wanted:
        return None
    return (
        f"they were rated as {wanted}, and {facts.identity} is installed, another player; "
        f"install {wanted}, or make a ladder of your own with `chess-snn ladder make`"
    )
