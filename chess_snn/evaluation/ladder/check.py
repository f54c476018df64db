"""The games of a ladder in a small file, and whether the ladder holds here.

The file has a line of JSON and a byte a move, compressed by zstd. The ladder holds if its engines
are installed and its games are played again alike: the seed and the players decide every move, and
an engine's answer to a position with fixed nodes or depth is always the same. So a game that comes
out otherwise shows that the rules, a player or an engine has changed.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np
import zstandard

from chess_snn.errors import ChessSnnError, CorruptDataError, EngineError
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.ladder.ladder import Ladder
from chess_snn.evaluation.ladder.playing import uses_engine
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.named_players import make_player
from chess_snn.evaluation.openings import opening_states
from chess_snn.evaluation.played_moves import rank_moves, unrank_moves
from chess_snn.evaluation.players import ProgramFacts, program_of
from chess_snn.games import get_game
from chess_snn.types import Json

SCHEMA: Final = 1
_LEVEL: Final = 22
"""Of zstd: a file is made once and read often."""
_MOST_BYTES: Final = 1 << 28
"""That a file may unpack to."""
_LETTERS: Final = {1.0: "W", 0.5: "D", 0.0: "L"}
_VOID: Final = "V"
_SCORES: Final = {letter: score for score, letter in _LETTERS.items()} | {_VOID: np.nan}


@dataclass(frozen=True, slots=True, eq=False)
class LadderGames:
    """The match of every pairing, with all of its moves."""

    matches: tuple[MatchResult, ...]
    date: str
    """When they were played, ISO 8601."""
    seed: int


def pack_games(games: LadderGames) -> bytes:
    """The games in few bytes."""
    game, ranks = get_game("chess"), []
    for match in games.matches:
        states = opening_states(game, match.opening_keys)[match.opening_index]
        ranks.append(rank_moves(game, states, match.plies, match.actions).tobytes())
    header = {
        "schema": SCHEMA, "date": games.date, "seed": games.seed,
        "matches": [_header(match) for match in games.matches],
    }
    body = json.dumps(header).encode() + b"\n" + b"".join(ranks)
    return bytes(zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(body))


def unpack_games(packed: bytes) -> LadderGames:
    """Undoes :func:`pack_games`; every game is replayed.

    Raises:
        CorruptDataError: it was truncated or edited, or is of another version.
    """
    try:
        head, _, ranks = zstandard.ZstdDecompressor().decompress(
            packed, max_output_size=_MOST_BYTES
        ).partition(b"\n")
        body = json.loads(head)
        if body["schema"] != SCHEMA:
            raise CorruptDataError(
                f"games of a ladder of schema {body['schema']}, this version reads {SCHEMA}"
            )
        sizes = [sum(match["plies"]) for match in body["matches"]]
        if sum(sizes) != len(ranks):
            raise CorruptDataError(f"{len(ranks)} moves where {sum(sizes)} should be")
        parts = np.split(np.frombuffer(ranks, np.uint8), np.cumsum(sizes)[:-1])
        return LadderGames(
            tuple(_match(*row) for row in zip(body["matches"], parts, strict=True)),
            str(body["date"]), int(body["seed"]),
        )
    except (ChessSnnError, zstandard.ZstdError, KeyError, TypeError, ValueError) as error:
        raise CorruptDataError(
            f"the ladder's games cannot be read ({error}); install chess-snn again, or make them "
            "again with `chess-snn ladder make`"
        ) from error


def _header(match: MatchResult) -> Json:
    return {
        "player_a": match.player_a, "player_b": match.player_b,
        "programs": {name: asdict(facts) for name, facts in match.programs.items()},
        "openings": list(match.opening_keys),
        "scores_a": "".join(_LETTERS.get(score, _VOID) for score in match.scores_a.tolist()),
        "plies": match.plies.tolist(),
    }


def _match(header: Any, ranks: np.ndarray[Any, np.dtype[np.uint8]]) -> MatchResult:
    game, num_openings = get_game("chess"), len(header["openings"])
    states = opening_states(game, header["openings"])
    plies = np.array(header["plies"], np.int32)
    actions, terminations = unrank_moves(game, np.repeat(states, 2, axis=0), plies, ranks)
    return MatchResult(
        spec=game.spec, player_a=str(header["player_a"]), player_b=str(header["player_b"]),
        opening_keys=tuple(header["openings"]),
        opening_positions=tuple(game.format_state(state) for state in states),
        opening_index=np.repeat(np.arange(num_openings, dtype=np.int32), 2),
        a_is_white=np.tile([True, False], num_openings),
        scores_a=np.array([_SCORES[letter] for letter in header["scores_a"]], np.float32),
        terminations=terminations, plies=plies, actions=actions,
        programs={name: ProgramFacts(**facts) for name, facts in header["programs"].items()},
    )


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


def _played_games(match: MatchResult) -> Iterator[tuple[str, bool, list[int]]]:
    """Opening, colour of a, and actions of each game."""
    for number, actions in enumerate(np.split(match.actions, np.cumsum(match.plies)[:-1])):
        opening = match.opening_keys[match.opening_index[number]]
        yield opening, bool(match.a_is_white[number]), actions.tolist()
