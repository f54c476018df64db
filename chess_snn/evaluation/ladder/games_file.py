"""The games of a ladder in a small file: a line of JSON and a byte a move, compressed by zstd."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import zstandard

from chess_snn.errors import ChessSnnError, CorruptDataError
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.openings import opening_states
from chess_snn.evaluation.played_moves import rank_moves, unrank_moves
from chess_snn.evaluation.players import ProgramFacts
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
        states = np.repeat(opening_states(game, match.opening_keys), 2, axis=0)
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
    game = get_game("chess")
    states = opening_states(game, header["openings"])
    plies = np.array(header["plies"], np.int32)
    actions, terminations = unrank_moves(game, np.repeat(states, 2, axis=0), plies, ranks)
    return MatchResult(
        spec=game.spec, player_a=str(header["player_a"]), player_b=str(header["player_b"]),
        opening_keys=tuple(header["openings"]),
        opening_positions=tuple(game.format_state(state) for state in states),
        scores_a=np.array([_SCORES[letter] for letter in header["scores_a"]], np.float32),
        terminations=terminations, plies=plies, actions=actions,
        programs={name: ProgramFacts(**facts) for name, facts in header["programs"].items()},
    )
