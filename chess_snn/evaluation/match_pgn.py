"""The games of a match as PGN: who played, with what budget, from which opening, and how it ended.

A game begins at its opening, as it was played: repetitions count from there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from chess_snn.errors import CorruptDataError, PositionError, UsageError
from chess_snn.evaluation.match_result import (
    CUT,
    FORFEIT_ENDING,
    VOID_ENDING,
    MatchResult,
)
from chess_snn.games.base import NO_ACTION, Game
from chess_snn.pgn import format_moves, game_tags
from chess_snn.types import Int64Array, Json, UInt64Array

_PGN_GAME: Final = "chess"
_BROKEN_OFF: Final = {
    FORFEIT_ENDING: {"Termination": "rules infraction"},
    VOID_ENDING: {"Termination": "abandoned", "Result": "*"},
}
"""Tags of games that a player did not go on with, in the standard's words."""


@dataclass(frozen=True, slots=True)
class PlayerFacts:
    """What a game's tags say of a player beside its name; None is left out."""

    generation: int | None = None
    """Of a campaign's network."""
    simulations: int | None = None
    """Of a network at each move; 0 is without search."""
    config_digest: str | None = None
    """Of the network's campaign: 12 hex digits."""

    def tags(self, color: str) -> dict[str, str]:
        """As tags of ``White`` or ``Black``: ``WhiteGeneration`` and so on."""
        names = {"generation": "Generation", "simulations": "Simulations",
                 "config_digest": "ConfigDigest"}
        known = {names[key]: value for key, value in self.to_json().items()}
        return {f"{color}Type": "program"} | {
            f"{color}{name}": str(value) for name, value in known.items()
        }

    def to_json(self) -> Json:
        """What is known."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def match_pgn(
    game: Game, result: MatchResult, facts: tuple[PlayerFacts, PlayerFacts], *,
    event: str, date: str, more: Mapping[str, str] | None = None,
    numbers: Sequence[int] | None = None,
) -> Iterator[tuple[int, str]]:
    """Yield number and PGN of the games of a match, an empty line behind each.

    All of them are played over against the result, whichever are wanted.

    Args:
        game: that was played: chess.
        result: the match.
        facts: of players a and b.
        event: the tag ``Event``.
        date: when it was played, ISO 8601.
        more: tags for all of them, behind the others.
        numbers: of the games wanted; None wants all.

    Raises:
        UsageError: another game was played.
        CorruptDataError: the moves kept cannot be played, or do not end as the result says.
    """
    check_pgn_game(game)
    offsets, endings = result.game_offsets, result.endings
    states, outcomes = _replay(game, result), result.outcomes_white.tolist()
    for number in range(result.num_games) if numbers is None else numbers:
        rows = slice(*offsets[number : number + 2])
        opening = int(result.opening_index[number])
        players = (result.player_a, facts[0]), (result.player_b, facts[1])
        white, black = players if result.a_is_white[number] else players[::-1]
        ending = game_tags(
            outcomes[number], result.opening_positions[opening], rows.stop - rows.start,
            is_cut=endings[number] == CUT,
        ) | _BROKEN_OFF.get(endings[number], {})
        tags = {
            "Event": event,
            "Site": "?",
            "Date": date[:10].replace("-", "."),
            "Round": f"{opening + 1}.{1 if result.a_is_white[number] else 2}",
            "White": white[0],
            "Black": black[0],
            "Result": ending.pop("Result"),
        } | ending | {
            "EndedBy": endings[number],
            "OpeningKey": result.opening_keys[opening],
        } | white[1].tags("White") | black[1].tags("Black") | {
            f"{color}Program": result.programs[name].identity
            for color, name in (("White", white[0]), ("Black", black[0]))
            if name in result.programs
        } | dict(more or {})
        place = f"game {number} of the match {result.player_a} against {result.player_b}"
        yield number, format_moves(states[rows], result.actions[rows], tags, place=place)


def check_pgn_game(game: Game) -> None:
    """Refuse a ``game`` that PGN cannot write.

    Raises:
        UsageError: it is another than chess.
    """
    if game.spec.name != _PGN_GAME:
        raise UsageError(f"PGN is for chess, and the match was one of {game.spec.name}")


def _replay(game: Game, result: MatchResult) -> UInt64Array:
    """uint64[N, R]: the position before each of the N moves of a match.

    Raises:
        CorruptDataError: a move is not legal, or a game does not end as the result says.
    """
    batch = game.allocate(result.num_games)
    try:
        openings = np.stack([game.parse_state(text) for text in result.opening_positions])
    except PositionError as error:
        raise CorruptDataError(f"damaged match: {error}; play it again") from error
    game.reset(batch, np.arange(len(batch)), openings[result.opening_index])
    states = np.empty((len(result.actions), game.spec.record_words), dtype=np.uint64)
    firsts = result.game_offsets[:-1]
    for ply in range(int(result.plies.max())):
        rows = np.flatnonzero(result.plies > ply)
        actions = np.full(len(batch), NO_ACTION, dtype=np.int16)
        actions[rows] = result.actions[firsts[rows] + ply]
        states[firsts[rows] + ply] = batch.state[rows, : game.spec.record_words]
        _refuse(result, rows[~batch.lists(actions)[rows]], f"has an illegal move at ply {ply}")
        game.step(batch, actions)
    _refuse(
        result, np.flatnonzero(batch.termination != result.terminations),
        "does not end as its result says",
    )
    return states


def _refuse(result: MatchResult, games: Int64Array, fault: str) -> None:
    if len(games):
        raise CorruptDataError(
            f"game {games[0]} of the match {result.player_a} against {result.player_b} {fault}; "
            "play the match again"
        )
