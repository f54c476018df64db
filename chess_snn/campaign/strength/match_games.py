"""The single games of a campaign's matches, as PGN."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from chess_snn.campaign.configuration.loading import config_digest
from chess_snn.campaign.stages.networks import game_of
from chess_snn.campaign.store.collection import GameFilter
from chess_snn.campaign.store.folder import PART_MARK, CampaignFolder
from chess_snn.campaign.strength.match_schedule import BESIDE_MATCHES, is_final
from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.evaluation.match_files import match_pgn, read_match_body
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.games import GameSpec
from chess_snn.types import Json

_FIELDS: Final = {"name": str, "created": str, "facts_a": dict, "facts_b": dict}


def read_match(spec: GameSpec, path: Path) -> tuple[MatchResult, Json]:
    """A whole match, and all that its file says of it.

    That is at least its ``name``, when it was ``created`` (ISO 8601, UTC), and what is known of
    players a and b, ``facts_a`` and ``facts_b``, by the names in
    ``chess_snn.evaluation.match_files.PLAYER_FACTS``.

    Raises:
        UnknownVersionError: it is of a version that is not read.
        CorruptDataError: it is missing or damaged.
    """
    body = read_match_body(path)
    try:
        result = MatchResult.from_json(spec, body)
    except CorruptDataError as error:
        raise CorruptDataError(f"{path}: {error}") from error
    if not all(isinstance(body.get(name), kind) for name, kind in _FIELDS.items()):
        raise CorruptDataError(f"{path} is not a whole match; restore it from a copy")
    return result, body


def match_files(folder: CampaignFolder) -> list[Path]:
    """Files of all whole matches, by event, those at the campaign's end last."""
    found = (
        path for path in (folder.path / "matches").glob("*/*.json")
        if path.stem not in BESIDE_MATCHES and PART_MARK not in path.name
        and not path.name.startswith(".")
    )
    return sorted(found, key=lambda path: (is_final(path.parent.name), path))


def match_games_pgn(folder: CampaignFolder, wanted: GameFilter) -> Iterator[str]:
    """The wanted games of a campaign's matches as PGN.

    A generation is that of the match's first player, whose evaluation it was.

    Raises:
        UsageError: it asks for iterations, or no match has been played yet.
        CorruptDataError: a match is damaged, or was kept without its moves; its file is named.
    """
    if wanted.iterations is not None:
        raise UsageError("matches have no --iteration; choose by --generation")
    files = match_files(folder)
    if not files:
        raise UsageError(f"{folder.path} has played no match yet; play on, or leave out --matches")
    game, digest, num_found = game_of(folder), config_digest(folder.config), 0
    for path in files:
        if num_found == wanted.limit:
            return
        result, body = read_match(game.spec, path)
        generation = body["facts_a"].get("generation")
        if wanted.generations is not None and generation not in wanted.generations:
            continue
        chosen = wanted.select(result.outcomes_white)
        if wanted.limit is not None:
            chosen = chosen[: wanted.limit - num_found]
        if not chosen:
            continue
        for _, text in match_pgn(
            game, result, event=folder.name, date=body["created"],
            facts=(body["facts_a"], body["facts_b"]), numbers=chosen,
            more={"Match": f"{path.parent.name}/{body['name']}", "ConfigDigest": digest},
        ):
            yield text
        num_found += len(chosen)
