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

Networks of different campaigns are compared on another scale (:class:`Strength`): in chess the
rating on the ladder, in a game of one player the mean points of a game. Ratings by a campaign's own
games say nothing about other campaigns.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Final, Literal, Self

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.stages.networks import game_of
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.match_facts import RatingFacts
from chess_snn.campaign.store.receipts import Receipt
from chess_snn.campaign.strength.match_games import match_files
from chess_snn.campaign.strength.match_schedule import player_name
from chess_snn.errors import CorruptDataError, RatingError
from chess_snn.evaluation.ladder.ladder import read_ladder
from chess_snn.evaluation.match_files import read_kept_match
from chess_snn.evaluation.ratings.crosstable import RatedGame, match_games
from chess_snn.evaluation.ratings.fit import rate_linked
from chess_snn.evaluation.ratings.result import Ratings, interval_text
from chess_snn.games import Game
from chess_snn.types import Json
from chess_snn.wording import counted

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


Measure = Literal["elo", "points"]
_WORDS: Final[dict[Measure, str]] = {"elo": "Elo", "points": "points:"}


@dataclass(frozen=True, slots=True)
class Strength:
    """Strength of a network, with its search budget, on a scale that campaigns share."""

    measure: Measure
    scale: str
    """Names the scale: ratings on another ladder have another one. Empty if it is not known."""
    simulations: int
    """Search budget of the network at each move; 0 is without search."""
    value: float
    low: float | None
    high: float | None
    """95 % interval; None where nothing bounds that end."""
    num_games: int

    def is_above(self, other: Self) -> bool:
        """Return whether the interval's lower end is above that of ``other``, on one scale.

        A result of few games has a low lower end, so luck in them seldom decides.
        """
        return self.is_comparable(other) and _end(self.low) > _end(other.low)

    def is_comparable(self, other: Self) -> bool:
        """Return whether scale and search budget are the same, and the scale is known."""
        is_same = (self.scale, self.simulations) == (other.scale, other.simulations)
        return is_same and self.scale != ""

    def figures(self) -> dict[str, float]:
        """``elo``, ``elo_low``, ``elo_high``, ``games`` and ``search_budget``, as far as known.

        Elo to a tenth of a point. In a game of one player ``points`` instead of ``elo``.
        """
        figures = {"": self.value, "_low": self.low, "_high": self.high}
        return {
            f"{self.measure}{end}": round(figure, 1)
            for end, figure in figures.items() if figure is not None
        } | {"games": self.num_games, "search_budget": self.simulations}

    @classmethod
    def of_figures(cls, scale: str, figures: Mapping[str, float]) -> Self | None:
        """The strength with these :meth:`figures`; None if they are not those of a strength."""
        for measure in _WORDS:
            if {measure, "games", "search_budget"} <= figures.keys():
                return cls(
                    measure, scale, int(figures["search_budget"]), figures[measure],
                    figures.get(f"{measure}_low"), figures.get(f"{measure}_high"),
                    int(figures["games"]),
                )
        return None

    def __str__(self) -> str:
        """``Elo 402 (310 to 495) with 16 simulations, 40 games``."""
        high = inf if self.high is None else self.high
        return (
            f"{_WORDS[self.measure]} {self.value:,.0f} ({interval_text(_end(self.low), high)}) "
            f"with {counted(self.simulations, 'simulation')}, {counted(self.num_games, 'game')}"
        )


def strength_of(config: CampaignConfig, receipt: Receipt) -> Strength | None:
    """The strength of the network that the iteration of ``receipt`` made; None if not measured."""
    if (test := receipt.ladder_test) is not None:
        if test.elo is None:
            return None
        return Strength(
            "elo", test.scale, test.simulations, test.elo, test.elo_low, test.elo_high,
            test.num_games,
        )
    points = next((match.points.a for match in receipt.matches if match.points), None)
    if points is None:
        return None
    return Strength(
        "points", f"points in {config.campaign.game}", config.evaluation.simulations,
        points.mean, points.low, points.high, points.games,
    )


def _end(low: float | None) -> float:
    return -inf if low is None else low
