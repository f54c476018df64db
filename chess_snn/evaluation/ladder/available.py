"""Which players of the ladder can be played on this machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
    faults = {
        program: fault for program, name in _one_of_each_program(ladder, players).items()
        if (fault := _fault(ladder, name, engines)) is not None
    }
    others = {
        program: fault.installed for program, fault in faults.items()
        if with_other_versions and fault.installed
    }
    sound = tuple(
        name for name in players
        if not needs_engine(name) or ladder.programs[name] not in faults.keys() - others.keys()
    )
    notices = [
        f"{installed} plays the rungs of {program}: they are approximate"
        for program, installed in sorted(others.items())
    ]
    if missing := sorted(faults.keys() - others.keys()):
        notices.append(
            f"the ladder is without the {len(players) - len(sound)} players that need "
            f"{' or '.join(missing)}: "
            + "; ".join(sorted({faults[program].text for program in missing}))
        )
    approximate = {
        name: others[ladder.programs[name]] for name in sound
        if needs_engine(name) and ladder.programs[name] in others
    }
    return AvailablePlayers(sound, "; ".join(notices) or None, approximate)


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why a player is not the one of the ladder."""

    text: str
    installed: str = ""
    """What the program of another version calls itself; empty where there is none."""


def _one_of_each_program(ladder: Ladder, players: Sequence[str]) -> dict[str, str]:
    """Of each program that stands behind some of ``players``, one of them, by the program."""
    return {ladder.programs[name]: name for name in reversed(players) if needs_engine(name)}


def _fault(ladder: Ladder, name: str, engines: EngineSettings) -> _Fault | None:
    """Why ``name`` is not the player that it is in the ladder."""
    try:
        facts = program_of(make_player(get_game("chess"), name, engines))
    except EngineError as error:
        return _Fault(str(error))
    wanted = ladder.programs[name]
    if facts is None or facts.identity == wanted:
        return None
    return _Fault(
        f"they were rated as {wanted}, and {facts.identity} is installed, another player; "
        f"install {wanted}, or make a ladder of your own with `chess-snn ladder make`",
        facts.identity,
    )
