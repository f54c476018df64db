"""Ratings of a campaign's players, from every game of its matches at once.

The random mover is 0. A generation is a player for each search budget it was measured with, and the
fixed opponents link the generations to each other; so do the matches between generations. Nothing
is kept of a rating but what receipts say: ratings follow from the games in the folder.

Games that decided on the champion count too, where they were played with the budget of the others:
with another one, no game would link their players to the random mover. Other players that no chain
of games links to it are left out, and named.

With ladder tests, the ladder's own games are fitted together with those of the generations; its
ratings are not taken as fixed. So an interval includes the uncertainty of both, and the campaign's
games can move a rung's rating. An engine of another version than the ladder's is another player,
and rated as one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from chess_snn.campaign.stages.networks import game_of
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.match_facts import RatingFacts
from chess_snn.campaign.strength.match_games import match_files
from chess_snn.campaign.strength.match_schedule import player_name
from chess_snn.errors import CorruptDataError, RatingError
from chess_snn.evaluation.ladder.ladder import read_ladder
from chess_snn.evaluation.match_files import read_kept_match
from chess_snn.evaluation.ratings.crosstable import RatedGame, match_games
from chess_snn.evaluation.ratings.fit import rate_linked
from chess_snn.evaluation.ratings.result import Ratings
from chess_snn.games import Game
from chess_snn.types import Json

ANCHOR: Final = "random"


@dataclass(frozen=True, slots=True, eq=False)
class RatedCampaign:
    """All players of a campaign, rated by their games."""

    ratings: Ratings
    left_out: tuple[str, ...]
    """Players of whom no chain of games leads to the random mover."""
    games: tuple[RatedGame, ...]
    """All games, with those of the ladder where ladder tests count."""

    @property
    def notice(self) -> str | None:
        """One line: who is not rated, and what helps; None if all are."""
        if not self.left_out:
            return None
        return (
            f"not rated, because no chain of games leads to them from {ANCHOR}: "
            f"{', '.join(self.left_out)}; let one of them play a player who is"
        )

    def num_games_of(self, *players: str) -> int:
        """Games in which at least one of ``players`` took part."""
        return sum(game.white in players or game.black in players for game in self.games)

    def to_json(self) -> Json:
        """:meth:`Ratings.to_json`, and ``left_out``."""
        return self.ratings.to_json() | {"left_out": list(self.left_out)}


def rate_campaign(
    folder: CampaignFolder, last_generation: int | None = None
) -> RatedCampaign | None:
    """Rate all players; None before the first match against the random mover.

    Without matches of generations after ``last_generation``, and those at the campaign's end, so
    that the answer does not change later; by default, with all.

    Raises:
        CorruptDataError: a match cannot be read.
    """
    ladder = read_ladder() if folder.config.evaluation.ladder_test else None
    programs = {} if ladder is None else ladder.programs
    games = [
        game for path in _match_files(folder, last_generation)
        for game in _games_of(game_of(folder), path, programs)
    ]
    if ladder is not None and any(
        game.white in ladder.players or game.black in ladder.players for game in games
    ):
        games += ladder.games()
    if not any(ANCHOR in (game.white, game.black) for game in games):
        return None
    try:
        return RatedCampaign(*rate_linked(games, ANCHOR), tuple(games))
    except RatingError as error:
        raise CorruptDataError(f"the matches of {folder.path} cannot be rated: {error}") from error


def rating_of(
    rated: RatedCampaign | None, generation: int, simulations: int
) -> RatingFacts | None:
    """The rating of a generation that was just evaluated.

    None if no player is rated, or no game links this one.
    """
    player = player_name(generation, simulations)
    if rated is None or player in rated.left_out:
        return None
    return RatingFacts(**rated.ratings.of(player).to_json(), anchor=ANCHOR)


def _match_files(folder: CampaignFolder, last_generation: int | None) -> Iterator[Path]:
    for path in sorted(match_files(folder)):
        event = path.parent.name
        is_early = last_generation is None or (
            event.startswith("gen-") and int(event.removeprefix("gen-")) <= last_generation
        )
        if is_early:
            yield path


def _games_of(game: Game, path: Path, programs: Mapping[str, str]) -> list[RatedGame]:
    """The games of a match; ``programs`` are the ladder's, by the names of their players."""
    result = read_kept_match(game, path, {})
    if result is None:  # removed since it was listed
        return []
    # An engine of another version than the ladder's is another player.
    others = {
        player: f"{player} ({facts.identity})" for player, facts in result.programs.items()
        if facts.identity != programs.get(player, facts.identity)
    }
    a, b = (others.get(name, name) for name in (result.player_a, result.player_b))
    return match_games(replace(result, player_a=a, player_b=b))
