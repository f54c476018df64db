"""Ratings of a campaign's players, from every game of its matches at once.

The random mover is 0. A generation is a player for each search budget it was measured with, and the
fixed opponents link the generations to each other; so do the matches between generations. Nothing
is kept of a rating but what receipts say: games are what counts, and they are in the folder.

Games that decided on the champion count too, where they were played with the budget of the others:
with another one, no game would link their players to the random mover.

Where generations climb the ladder, its own games are fitted together with theirs, not its ratings
taken as given: an interval then has both what the generation's games leave open and what the
ladder's do, and a rung's rating gives way where a campaign has better reasons than the ladder.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from chess_snn.campaign.store.folder import PART_MARK, CampaignFolder
from chess_snn.campaign.strength.matches import is_gate
from chess_snn.data import read_json
from chess_snn.errors import CorruptDataError, RatingError
from chess_snn.evaluation import Crosstable, RatedGame, Ratings, fit_ratings
from chess_snn.evaluation.ladder import read_ladder
from chess_snn.types import Json

ANCHOR: Final = "random"
_GAMES: Final = "per_game"
_OUTCOMES: Final = {1.0: 1, 0.5: 0, 0.0: -1}


def rate_campaign(folder: CampaignFolder, last_generation: int | None = None) -> Ratings | None:
    """Rate everybody who has played; None before the first match against the random mover.

    Args:
        folder: of the campaign.
        last_generation: matches of later generations, and those at the campaign's end, are left
            out, so that the answer does not change as the campaign goes on; by default none are.

    Raises:
        CorruptDataError: a match cannot be read.
    """
    games = [
        game for path in _match_files(folder, last_generation) for game in _games_of(path)
    ]
    if folder.config.evaluation.climb:
        ladder = read_ladder()
        if any(game.white in ladder.players or game.black in ladder.players for game in games):
            games += ladder.games()
    if not any(ANCHOR in (game.white, game.black) for game in games):
        return None
    try:
        return fit_ratings(Crosstable.from_games(games), ANCHOR)
    except RatingError as error:
        raise CorruptDataError(f"the matches of {folder.path} cannot be rated: {error}") from error


def rating_of(folder: CampaignFolder, generation: int, simulations: int) -> Json | None:
    """The rating of a generation that was just evaluated, by all games up to its own.

    Returns:
        ``player``, ``num_games``, ``score``, ``elo``, ``elo_low``, ``elo_high`` (null where not
        finite) and the ``anchor``; None where nobody is rated.
    """
    ratings = rate_campaign(folder, generation)
    if ratings is None:
        return None
    budget = f"@{simulations}" if simulations else ""
    return ratings.of(f"gen-{generation:06d}{budget}").to_json() | {"anchor": ANCHOR}


def _match_files(folder: CampaignFolder, last_generation: int | None) -> Iterator[Path]:
    config = folder.config
    has_linked_gates = config.gate_simulations == config.evaluation.simulations
    for path in sorted((folder.path / "matches").glob("*/*.json")):
        event = path.parent.name
        is_whole = PART_MARK not in path.name
        is_linked = has_linked_gates or not is_gate(path.stem)
        is_early = last_generation is None or (
            event.startswith("gen-") and int(event.removeprefix("gen-")) <= last_generation
        )
        if is_whole and is_early and is_linked:
            yield path


def _games_of(path: Path) -> list[RatedGame]:
    body = read_json(path)
    if _GAMES not in body:
        return []  # the suite of won positions
    try:
        a, b, columns = body["player_a"], body["player_b"], body[_GAMES]
        # The first matches had no keys: a campaign drew them all from one list of openings.
        keys = body["openings"]["key"] if "openings" in body else None
        rows = zip(
            columns["opening_index"], columns["a_is_white"], columns["score_a"], strict=True
        )
        return [
            RatedGame(
                a if a_is_white else b, b if a_is_white else a,
                _OUTCOMES[score] if a_is_white else -_OUTCOMES[score],
                str(index) if keys is None else keys[index],
            )
            for index, a_is_white, score in rows if score is not None  # not void
        ]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise CorruptDataError(
            f"{path} is not a match ({error!r}); restore it from a copy, or delete it so that it "
            "is played again"
        ) from error
