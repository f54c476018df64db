"""Matches as files: written and read as JSON, written as PGN, and checked by playing them again.

A match is one JSON object with a digest of itself. Its games as PGN say who played, with what
budget, from which opening, and how the game ended. A game begins at its opening, as it was played:
repetitions count from there.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from chess_snn.data import StoredFormat, read_json, write_json
from chess_snn.errors import CorruptDataError, PositionError, UsageError
from chess_snn.evaluation.match_result import CUT, FORFEIT_ENDING, VOID_ENDING, MatchResult
from chess_snn.evaluation.solo import chance_words, seeds_of_keys
from chess_snn.games.base import NO_ACTION, ONGOING, Game, GameBatch
from chess_snn.pgn.writing import format_moves, game_tags
from chess_snn.types import BoolArray, Float64Array, Json, UInt64Array

_FORMAT: Final = StoredFormat("match", version=4, has_digest=True)
PLAYER_FACTS: Final = {
    "generation": "Generation", "simulations": "Simulations", "config_digest": "ConfigDigest",
}
"""Facts that may be known of a network as a player, and the end of its tag: generation in a
campaign, its simulations a move (0 is without search), and the digest of the campaign's settings,
12 hexadecimal digits."""
_PGN_GAME: Final = "chess"
_BROKEN_OFF: Final = {
    FORFEIT_ENDING: {"Termination": "rules infraction"},
    VOID_ENDING: {"Termination": "abandoned", "Result": "*"},
}
"""Tags of games that a player did not go on with, in the standard's words."""
_BY_FORMULA: Final = frozenset({"score_low", "score_high", "points"})
"""Figures that are not compared: their last digits depend on the processor. The digest of the file
protects them, and the points of every game are compared."""


def write_match(path: Path, result: MatchResult, more: Json | None = None) -> None:
    """Put ``result`` at ``path``, and beside it what ``more`` says of it.

    Raises:
        UsageError: the place cannot be written.
    """
    write_json(path, _FORMAT.sealed((more or {}) | result.to_json()))


def read_match_body(path: Path) -> Json:
    """Read what :func:`write_match` put at ``path``, for :meth:`MatchResult.from_json`.

    Raises:
        UnknownVersionError: it is of a version that is not read.
        CorruptDataError: it is missing, or is not what was written.
    """
    hint = "restore it from a copy, or delete it and play it again"
    return _FORMAT.unsealed(read_json(path), path, hint)


def read_kept_match(game: Game, path: Path, conditions: Json) -> MatchResult | None:
    """The match that :func:`write_match` put at ``path``; None where there is no file.

    Args:
        game: that was played.
        path: of the match.
        conditions: what was written beside the match, and must be equal.

    Raises:
        UsageError: it was played under other conditions.
        CorruptDataError: it is damaged.
    """
    if not path.exists():
        return None
    body = read_match_body(path)
    for name, wanted in conditions.items():
        if body.get(name) != wanted:
            raise UsageError(
                f"{path} was played with {name} {body.get(name)}, and {wanted} is asked for; "
                "choose another folder, or the same settings"
            )
    try:
        return MatchResult.from_json(game.spec, body)
    except CorruptDataError as error:
        raise CorruptDataError(f"{path}: {error}; delete it, so that it is played again") from error


def match_pgn(
    game: Game, result: MatchResult, *, event: str, date: str,
    facts: tuple[Json, Json] = ({}, {}), more: Mapping[str, str] | None = None,
    numbers: Sequence[int] | None = None, states: UInt64Array | None = None,
) -> Iterator[tuple[int, str]]:
    """Yield number and PGN of the games of a match, an empty line behind each.

    All of them are played again, whichever are wanted, and must end as the result says; unless
    ``states`` are given.

    Args:
        game: that was played: chess.
        result: the match.
        event: the tag ``Event``.
        date: when it was played, ISO 8601.
        facts: what is known of players a and b, by the names in ``PLAYER_FACTS``; they become tags.
        more: tags for all of them, behind the others.
        numbers: of the games wanted; None wants all.
        states: of :func:`match_positions`, where they are known.

    Raises:
        UsageError: another game was played.
        CorruptDataError: the moves kept cannot be played, or do not end as the result says.
    """
    check_pgn_game(game)
    offsets, endings = result.game_offsets, result.endings
    if states is None:
        states = match_positions(game, result)
    outcomes = result.outcomes_white.tolist()
    for number in range(result.num_games) if numbers is None else numbers:
        rows = slice(*offsets[number : number + 2])
        opening, is_second = divmod(number, 2)
        players = (result.player_a, facts[0]), (result.player_b, facts[1])
        white, black = players[::-1] if is_second else players
        ending = game_tags(
            outcomes[number], result.opening_positions[opening], rows.stop - rows.start,
            is_cut=endings[number] == CUT,
        ) | _BROKEN_OFF.get(endings[number], {})
        tags = {
            "Event": event,
            "Site": "?",
            "Date": date[:10].replace("-", "."),
            "Round": f"{opening + 1}.{is_second + 1}",
            "White": white[0],
            "Black": black[0],
            "Result": ending.pop("Result"),
        } | ending | {
            "EndedBy": endings[number],
            "OpeningKey": result.opening_keys[opening],
        } | _player_tags("White", white[1]) | _player_tags("Black", black[1]) | {
            f"{color}Program": result.programs[name].identity
            for color, name in (("White", white[0]), ("Black", black[0]))
            if name in result.programs
        } | dict(more or {})
        place = f"game {number} of the match {result.player_a} against {result.player_b}"
        yield number, format_moves(states[rows], result.actions[rows], tags, place=place)


def match_positions(game: Game, result: MatchResult) -> UInt64Array:
    """uint64[N, R]: the position before each of the N moves; all games are played again.

    Raises:
        CorruptDataError: the moves kept cannot be played, or do not end as the result says.
    """
    try:
        return _replay(game, result)
    except _ReplayError as error:
        raise CorruptDataError(
            f"damaged match {result.player_a} against {result.player_b}: {error}; play it again"
        ) from error


def _player_tags(color: str, facts: Json) -> dict[str, str]:
    """``WhiteType``, ``WhiteGeneration`` and so on."""
    return {f"{color}Type": "program"} | {
        f"{color}{tag}": str(facts[name]) for name, tag in PLAYER_FACTS.items() if name in facts
    }


def check_pgn_game(game: Game) -> None:
    """Refuse a ``game`` that PGN cannot write.

    Raises:
        UsageError: it is another than chess.
    """
    if game.spec.name != _PGN_GAME:
        raise UsageError(f"PGN is for chess, and the match was one of {game.spec.name}")


def match_fault(game: Game, result: MatchResult, body: Json) -> str | None:
    """Describe the fault of a match; None where it has none.

    Every game begins at its opening, its moves are legal, the rules end it as is recorded, and the
    figures are those of the games.

    Args:
        game: of the match.
        result: the match.
        body: where it was read from; what it says of the match as a whole is compared.
    """
    summary = json.loads(json.dumps(result.summary()))
    compared = summary.keys() - _BY_FORMULA
    if wrong := sorted(name for name in compared if body.get(name) != summary[name]):
        return f"{', '.join(wrong)} are not those of its games"
    try:
        _replay(game, result)
    except _ReplayError as fault:
        return str(fault)
    return None


class _ReplayError(Exception):
    """Games of a match cannot be played as they are recorded; the text says which, and why."""


def _replay(game: Game, result: MatchResult) -> UInt64Array:
    """Play every game again.

    Returns:
        uint64[N, R]: the position before each of the N moves.

    Raises:
        _ReplayError: a move is illegal, or a game does not end as the result says.
    """
    openings, seeds = _openings(game, result)
    batch = game.allocate(result.num_games)
    game.reset(batch, np.arange(result.num_games), np.repeat(openings, 2, axis=0))
    states = np.empty((len(result.actions), game.spec.record_words), np.uint64)
    rewards = np.zeros(result.num_games)
    firsts = result.game_offsets[:-1]
    for ply in range(int(result.plies.max(initial=0))):
        is_on = result.plies > ply
        indices = firsts[is_on] + ply
        actions = np.full(result.num_games, NO_ACTION, np.int16)
        actions[is_on] = result.actions[indices]
        states[indices] = batch.state[is_on, : game.spec.record_words]
        _refuse(is_on & (batch.termination != ONGOING), f"goes on at ply {ply}, after its end")
        _refuse(is_on & ~batch.lists(actions), f"has an illegal move at ply {ply}")
        sign = np.where(game.side_to_move(batch.state) == 0, 1, -1)
        chance = None
        if seeds is not None and game.spec.is_stochastic:
            chance = chance_words(seeds, np.full(len(seeds), ply, np.int32))
        game.step(batch, actions, chance)
        rewards[is_on] += sign[is_on] * batch.reward[is_on]
    _check_ends(game, result, batch, rewards)
    return states


def _openings(game: Game, result: MatchResult) -> tuple[UInt64Array, UInt64Array | None]:
    """Return where the games begin, and in a game of one player uint64[n], the seed of each."""
    try:
        openings = np.array([game.parse_state(text) for text in result.opening_positions])
        seeds = seeds_of_keys(result.opening_keys) if result.is_solo else None
    except (PositionError, ValueError) as error:
        raise _ReplayError(f"an opening is not a position: {error}") from error
    if seeds is None:
        return openings, None
    if not np.array_equal(game.initial_states(seeds), openings):
        raise _ReplayError("an opening is not the start of its seed")
    return openings, np.repeat(seeds, 2)


def _check_ends(
    game: Game, result: MatchResult, batch: GameBatch, rewards: Float64Array
) -> None:
    """Compare the last positions, and the first player's sums of rewards float64[n]."""
    _refuse(batch.termination != result.terminations, "does not end as its result says")
    if not result.is_solo:
        by_rule = batch.termination != ONGOING
        _refuse(
            by_rule & (result.outcomes_white != np.sign(rewards)),
            "has another result by the rules",
        )
        return
    _refuse(result.points != game.spec.score_unit * rewards, "has other points by the rules")
    _refuse(result.milestones != game.milestones(batch.state), "got to another milestone")
    points_a, points_b = result.points.reshape(-1, 2).T
    wanted = np.repeat(0.5 + 0.5 * np.sign(points_a - points_b), 2)
    _refuse(result.scores_a != wanted, "does not score what the points of its seed say")


def _refuse(is_wrong: BoolArray, fault: str) -> None:
    if is_wrong.any():
        raise _ReplayError(f"game {np.argmax(is_wrong)} {fault}")
