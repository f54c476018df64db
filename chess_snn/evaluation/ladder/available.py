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
        fault for name in _one_of_each_program(ladder, players)
        if (fault := _fault(ladder, name, engines)) is not None
    }
    if not faults:
        return AvailablePlayers(tuple(players), None)
    ours = tuple(name for name in players if not needs_engine(name))
    return AvailablePlayers(
        ours,
        f"the ladder is without the {len(players) - len(ours)} players that need an engine: "
        + "; ".join(sorted(faults)),
    )


def _one_of_each_program(ladder: Ladder, players: Sequence[str]) -> list[str]:
    """A player of each program that stands behind some of ``players``."""
    by_program = {
        ladder.programs[name]: name for name in reversed(players) if needs_engine(name)
    }
    return list(by_program.values())


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
