"""The games of a ladder as they are kept: PGN, compressed with zstd."""

import io
from collections.abc import Iterable
from typing import Final

import zstandard

from chess_snn.errors import CorruptDataError
from chess_snn.evaluation.match_pgn import PlayerFacts, match_pgn
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.games import get_game

_LEVEL: Final = 19
"""Of zstd: a file is made once and read often."""
_EVENT: Final = "chess-snn ladder"


def pack_games(matches: Iterable[MatchResult], *, date: str, seed: int) -> bytes:
    """The games of a ladder's pairings.

    Args:
        matches: a pairing each.
        date: when they were played, ISO 8601.
        seed: of the ladder.

    Raises:
        CorruptDataError: a game cannot be replayed.
    """
    game, facts, more = get_game("chess"), (PlayerFacts(), PlayerFacts()), {"Seed": str(seed)}
    text = "".join(
        text for match in matches
        for _, text in match_pgn(game, match, facts, event=_EVENT, date=date, more=more)
    )
    return bytes(zstandard.ZstdCompressor(level=_LEVEL).compress(text.encode()))


def unpack_games(packed: bytes) -> str:
    """The PGN in what :func:`pack_games` made.

    Raises:
        CorruptDataError: it was cut, or edited.
    """
    try:
        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)) as reader:
            return bytes(reader.read()).decode()
    except (zstandard.ZstdError, UnicodeDecodeError) as error:
        raise CorruptDataError(
            f"the ladder's games cannot be unpacked ({error}); install chess-snn again"
        ) from error
