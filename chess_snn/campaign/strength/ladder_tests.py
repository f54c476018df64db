"""The ladder test of a new generation: batches of games against rungs near its strength.

A batch is a part of a match against one rung and is kept like any part, so an interrupted test
continues with the next batch. When the test ends, its report is written and its matches become
whole. If an engine fails, the test continues without the rungs that need it; games already played
count. An engine of another version than the ladder's plays its rungs approximately, which widens
the interval of the rating. Games begin from the book and have the length limit of the ladder's
games, because a rung's rating holds under the conditions in which it was rated.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.stages.networks import game_of
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.match_facts import EndedBy, LadderTestFacts, MetRung
from chess_snn.campaign.strength.match_schedule import (
    LADDER_TEST,
    ScheduledMatch,
    event_of,
    player_name,
)
from chess_snn.campaign.strength.matches import finish_match, players_of
from chess_snn.campaign.strength.reports import LADDER_TEST_REPORTS
from chess_snn.data import write_text
from chess_snn.errors import EngineError
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.ladder.adaptive import (
    RungScore,
    bracketing_rungs,
    distance_to_ladder,
    has_arrived,
    next_rung,
    widened,
)
from chess_snn.evaluation.ladder.available import AvailablePlayers, available_players
from chess_snn.evaluation.ladder.ladder import Ladder, read_ladder
from chess_snn.evaluation.match_files import read_kept_match, write_match
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.matches import play_match, report_after
from chess_snn.evaluation.openings import book_openings
from chess_snn.evaluation.ratings.crosstable import Crosstable, RatedGame, match_games
from chess_snn.evaluation.ratings.fit import fit_ratings
from chess_snn.rng import derive_seed
from chess_snn.types import Progress

OVERLAP = 2
"""Generations that may be evaluated at once. A ladder test begins at the rating of an older one,
because results of younger ones depend on which worker is faster."""


def play_ladder_test(
    directory: Path, generation: int, *, num_threads: int = 1, on_progress: Progress | None = None
) -> LadderTestFacts:
    """Test ``generation`` on the shipped ladder; a finished report is read, not played again.

    It begins at the rung next to :func:`ladder_start`.

    Returns:
        The report, which is kept, and not played again.
    """
    folder = CampaignFolder.open(directory)
    path = folder.match(event_of(generation), LADDER_TEST)
    if not path.exists():
        ladder_test = _prepare(
            folder, generation, num_threads, ladder_start(folder, generation)
        )
        num_games = folder.config.evaluation.ladder_test_games
        while (ended_by := ladder_test.end()) is None:
            rung = ladder_test.next_player()
            report = on_progress and partial(
                report_after, on_progress, ladder_test.num_games, num_games
            )
            try:
                ladder_test.play_batch(rung, num_threads, report)
            except EngineError as error:
                ladder_test = ladder_test.without(rung, error)
        write_text(path, LADDER_TEST_REPORTS.text(ladder_test.report(ended_by)))
    result = LADDER_TEST_REPORTS.read(path)
    for met in result.rungs:
        finish_match(directory, _rung_match(folder, generation, met.player, met.num_batches))
    return result


def ladder_notice(config: CampaignConfig) -> str | None:
    """Rungs that ladder tests lack on this machine, or play approximately; None: neither."""
    return _available(read_ladder(), 1).notice if config.evaluation.ladder_test else None


def ladder_start(folder: CampaignFolder, generation: int) -> float:
    """The rating of the last generation whose ladder test is over by now; -inf before any."""
    for earlier in range(generation - OVERLAP, -1, -1):
        path = folder.match(event_of(earlier), LADDER_TEST)
        if path.exists():
            bracket = LADDER_TEST_REPORTS.read(path).bracket
            return read_ladder().rung(bracket[len(bracket) // 2]).elo
    return -math.inf


@dataclass(frozen=True, slots=True, eq=False)
class _LadderTest:
    """One ladder test, with the batches played so far."""

    folder: CampaignFolder
    ladder: Ladder
    players: tuple[str, ...]
    """The available rungs, the weakest first."""
    notice: str | None
    start_elo: float
    """Elo at which it begins: at the rung among ``players`` that is next to it."""
    generation: int
    """The network that is tested."""
    batches: dict[str, list[MatchResult]]
    """Played so far, by the name of the rung's player, who may not be among ``players`` now."""

    @property
    def name(self) -> str:
        """The network's name in results."""
        return player_name(self.generation, self.folder.config.ladder_test_simulations)

    @property
    def start(self) -> int:
        """Place among ``players``."""
        distances = [abs(elo - self.start_elo) for elo in self._elos()]
        return distances.index(min(distances))

    @property
    def num_games(self) -> int:
        return sum(batch.num_games for batches in self.batches.values() for batch in batches)

    def end(self) -> EndedBy | None:
        """The reason why the test ends now; None while it continues."""
        settings = self.folder.config.evaluation
        if self._is_narrow(settings.ladder_test_interval):
            return "interval"
        goes_on = self.num_games + 2 * settings.ladder_test_pairs <= settings.ladder_test_games
        return None if goes_on else "games"

    def next_player(self) -> str:
        """Whom the next batch is played against."""
        return self.players[next_rung(self._scores(), self.start, self._elos())]

    def play_batch(self, rung: str, num_threads: int, on_progress: Progress | None) -> None:
        """Play the next batch against ``rung`` and keep it.

        Raises:
            EngineError: the engine behind ``rung`` cannot play.
        """
        number = len(self.batches.get(rung, []))
        match = _rung_match(self.folder, self.generation, rung, number + 1)
        game, openings = game_of(self.folder), match.parts[number]
        seed = derive_seed(self.folder.config.campaign.seed, LADDER_TEST)
        player, opponent = players_of(
            self.folder, match, 2 * len(openings), num_threads=num_threads
        )
        result = play_match(
            game, player, opponent, book_openings(game, openings.stop, seed)[openings.start :],
            seed=derive_seed(seed, "batch", number), max_plies=self.ladder.max_plies,
            on_progress=on_progress,
        )
        write_match(self.folder.match_part(match.event, match.name, number), result)
        self.batches.setdefault(rung, []).append(result)

    def without(self, rung: str, fault: EngineError) -> "_LadderTest":
        """The test without the rungs of the program behind ``rung``, which cannot play."""
        programs = self.ladder.programs
        players = tuple(
            name for name in self.players
            if name != rung and (name not in programs or programs[name] != programs.get(rung))
        )
        if not players:
            raise fault
        notice = f"the ladder test continued without {rung} and all that need its engine: {fault}"
        return replace(
            self, players=players, notice="; ".join(filter(None, (self.notice, notice)))
        )

    def report(self, ended_by: EndedBy) -> LadderTestFacts:
        """See :func:`play_ladder_test`."""
        scores = self._scores()
        met = {
            name: RungScore.of(self.batches[name])
            for name in self.ladder.players if name in self.batches
        }
        ratings = fit_ratings(Crosstable.from_games([*self.ladder.games(), *self._games()]))
        rating = ratings.of(self.name)
        return LadderTestFacts(
            **(widened(rating) if self._is_approximate() else rating).to_json(),
            rungs=[
                MetRung(
                    rung, self.ladder.rung(rung).elo, len(self.batches[rung]), score.num_games,
                    score.score,
                )
                for rung, score in met.items()
            ],
            bracket=[
                self.players[rung]
                for rung in bracketing_rungs(scores, self.start, self._elos())
            ],
            simulations=self.folder.config.ladder_test_simulations,
            scale=self.ladder.scale,
            start=self.players[self.start],
            ended_by=ended_by,
            notice=self.notice,
        )

    def _is_approximate(self) -> bool:
        """Whether an engine of another version than the ladder's played one of the rungs."""
        return any(
            _played_by(name, batches) != self.ladder.programs.get(name)
            for name, batches in self.batches.items()
        )

    def _is_narrow(self, points: float) -> bool:
        scores = self._scores()
        if not has_arrived(scores, self.start, self._elos()):
            return False
        most_met = max(scores, key=lambda rung: (scores[rung].num_games, -rung))
        distance = distance_to_ladder(
            self.ladder, self._games(), self.name, self.players[most_met]
        )
        return distance.width <= points

    def _elos(self) -> list[float]:
        return [self.ladder.rung(name).elo for name in self.players]

    def _scores(self) -> dict[int, RungScore]:
        """Scores against the rungs that can be played, by their numbers among ``players``."""
        return {
            place: RungScore.of(self.batches[name])
            for place, name in enumerate(self.players) if name in self.batches
        }

    def _games(self) -> list[RatedGame]:
        return [
            game for batches in self.batches.values() for batch in batches
            for game in match_games(batch)
        ]


def _prepare(
    folder: CampaignFolder, generation: int, num_threads: int, start_elo: float
) -> _LadderTest:
    """The ladder test of ``generation`` with the batches that are on the disk."""
    ladder = read_ladder()
    available = _available(ladder, num_threads)
    batches = {
        name: results for name in ladder.players
        if (results := _read_batches(folder, generation, name))
    }
    # A match is against one version of an engine: it does not go on with the one of today.
    players = tuple(
        name for name in available.players if name not in batches or _played_by(
            name, batches[name]) == available.approximate.get(name, ladder.programs.get(name))
    )
    return _LadderTest(
        folder, ladder, players, available.notice, start_elo, generation, batches
    )


def _available(ladder: Ladder, num_threads: int) -> AvailablePlayers:
    return available_players(
        ladder, ladder.players, EngineSettings(processes=num_threads), with_other_versions=True
    )


def _played_by(rung: str, batches: list[MatchResult]) -> str | None:
    """The own name of the program behind ``rung``; None where there was none."""
    facts = batches[0].programs.get(rung)
    return None if facts is None else facts.identity


def _rung_match(
    folder: CampaignFolder, generation: int, rung: str, num_batches: int
) -> ScheduledMatch:
    settings = folder.config.evaluation
    return ScheduledMatch(
        event=event_of(generation),
        name=f"{LADDER_TEST}-{rung}",
        generation=generation,
        opponent=rung,
        simulations=folder.config.ladder_test_simulations,
        num_openings=num_batches * settings.ladder_test_pairs,
        openings_each=settings.ladder_test_pairs,
    )


def _read_batches(
    folder: CampaignFolder, generation: int, rung: str
) -> list[MatchResult]:
    """The batches on the disk of a ladder test that has not ended."""
    game, match = game_of(folder), _rung_match(folder, generation, rung, 1)
    batches: list[MatchResult] = []
    while batch := read_kept_match(
        game, folder.match_part(match.event, match.name, len(batches)), {}
    ):
        batches.append(batch)
    return batches
