"""The ladder test of a new generation: batches of games against rungs near its strength.

A batch is a part of a match against one rung and is kept like any part, so an interrupted test
continues with the next batch. When the test ends, its report is written and its matches become
whole. If an engine fails, the test continues without the rungs that need it; games already played
count. An engine of another version than the ladder's plays its rungs approximately, which widens
the interval of the rating. Games begin from the book and have the length limit of the ladder's
games, because a rung's rating holds under the conditions in which it was rated.
"""

import math
from functools import partial
from pathlib import Path

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.stages.networks import game_of
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.match_facts import LadderTestFacts, MetRung
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
    LadderTest,
    RungScore,
    rate_on_ladder,
    run_ladder_test,
)
from chess_snn.evaluation.ladder.available import AvailablePlayers, available_players
from chess_snn.evaluation.ladder.ladder import Ladder, read_ladder
from chess_snn.evaluation.match_files import read_kept_match, write_match
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.matches import play_match, report_after
from chess_snn.evaluation.openings import book_openings
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
        report = _play(folder, generation, num_threads, on_progress)
        write_text(path, LADDER_TEST_REPORTS.text(report))
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


def _play(
    folder: CampaignFolder, generation: int, num_threads: int, on_progress: Progress | None
) -> LadderTestFacts:
    """Play what is not on the disk. Raises an EngineError if no rung is left."""
    ladder, settings = read_ladder(), folder.config.evaluation
    available = _available(ladder, num_threads)
    batches = {
        name: results for name in ladder.players
        if (results := _read_batches(folder, generation, name))
    }
    # A match is against one version of an engine: it does not go on with the one of today.
    players = [
        name for name in available.players if name not in batches or _played_by(
            name, batches[name]) == available.approximate.get(name, ladder.programs.get(name))
    ]
    notices = [] if available.notice is None else [available.notice]
    start_elo, rung_now = ladder_start(folder, generation), ""

    def play_batch(rung: str, number: int) -> MatchResult:
        nonlocal rung_now
        rung_now = rung
        num_played = sum(batch.num_games for played in batches.values() for batch in played)
        report = on_progress and partial(
            report_after, on_progress, num_played, settings.ladder_test_games
        )
        return _play_batch(folder, ladder, generation, rung, number, num_threads, report)

    while True:
        try:
            ladder_test = run_ladder_test(
                ladder, players, settings.ladder_test_games, play_batch,
                pairs=settings.ladder_test_pairs, start_elo=start_elo,
                interval=settings.ladder_test_interval, batches=batches,
            )
        except EngineError as error:
            players = _without(ladder, players, rung_now)
            if not players:
                raise
            notices.append(
                f"the ladder test continued without {rung_now} and all that need its engine: "
                f"{error}"
            )
        else:
            return _report(folder, ladder, generation, ladder_test, "; ".join(notices) or None)


def _play_batch(
    folder: CampaignFolder, ladder: Ladder, generation: int, rung: str, number: int,
    num_threads: int, on_progress: Progress | None,
) -> MatchResult:
    """Play the batch of this number against ``rung`` and keep it."""
    match = _rung_match(folder, generation, rung, number + 1)
    game, openings = game_of(folder), match.parts[number]
    seed = derive_seed(folder.config.campaign.seed, LADDER_TEST)
    player, opponent = players_of(folder, match, 2 * len(openings), num_threads=num_threads)
    result = play_match(
        game, player, opponent, book_openings(game, openings.stop, seed)[openings.start :],
        seed=derive_seed(seed, "batch", number), max_plies=ladder.max_plies,
        on_progress=on_progress,
    )
    write_match(folder.match_part(match.event, match.name, number), result)
    return result


def _without(ladder: Ladder, players: list[str], rung: str) -> list[str]:
    """``players`` without ``rung`` and all that its program plays."""
    program = ladder.programs.get(rung)
    return [
        name for name in players
        if name != rung and (program is None or ladder.programs.get(name) != program)
    ]


def _report(
    folder: CampaignFolder, ladder: Ladder, generation: int, ladder_test: LadderTest,
    notice: str | None,
) -> LadderTestFacts:
    simulations, batches = folder.config.ladder_test_simulations, ladder_test.batches
    approximate = [
        name for name in batches if _played_by(name, batches[name]) != ladder.programs.get(name)
    ]
    (rated,) = rate_on_ladder(
        ladder, {player_name(generation, simulations): batches}, approximate
    )
    scores = {
        name: RungScore.of(batches[name]) for name in ladder.players if name in batches
    }
    return LadderTestFacts(
        **rated.rating.to_json(),
        rungs=[
            MetRung(name, ladder.rung(name).elo, len(batches[name]), score.num_games, score.score)
            for name, score in scores.items()
        ],
        bracket=ladder_test.bracket,
        simulations=simulations,
        scale=ladder.scale,
        start=ladder_test.start,
        ended_by="interval" if ladder_test.is_narrow else "games",
        notice=notice,
    )


def _available(ladder: Ladder, num_threads: int) -> AvailablePlayers:
    return available_players(ladder, ladder.players, EngineSettings(processes=num_threads))


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
