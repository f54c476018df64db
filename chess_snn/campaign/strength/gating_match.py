"""Gating matches: a candidate plays the champion, and all games so far decide which is better.

A sequential test ends the match early where one of them is clearly better. Every opening is played
with both colours. Parts of the match are evaluated in their order, and the first after which the
test is over ends it. Workers may be ahead: what they have played beyond that part does not count
and is not kept, so the verdict depends neither on their number nor on who was killed when. The
candidate becomes champion unless the ratings by all games of the campaign put it below the
champion. One that probably lost the match by more than chance must be ahead clearly: see
docs/decisions/0044-lost-match.md.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.stages.networks import game_of
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.receipt_parts import PromotionFacts, Verdict
from chess_snn.campaign.strength.champions import champion_to_beat
from chess_snn.campaign.strength.match_schedule import (
    ScheduledMatch,
    champion_match,
    event_of,
    is_evaluated,
    player_name,
)
from chess_snn.campaign.strength.matches import finish_match, unplayed_parts
from chess_snn.campaign.strength.ratings import RatedCampaign
from chess_snn.evaluation.comparison import (
    SPRT_BOUND,
    SprtResult,
    SprtState,
    likelihood_of_superiority,
    sprt,
)
from chess_snn.evaluation.match_files import read_kept_match
from chess_snn.evaluation.scores import PAIR_SCORES, pair_counts
from chess_snn.types import Int64Array

_VERDICTS: Final[dict[SprtState, Verdict]] = {
    "accept": "accept", "reject": "reject", "continue": "undecided",
}
"""Verdict of a test that has ended, or whose openings have."""
_EVEN: Final = 0.5
"""Score of equals; the newest of equals is champion."""
_UNLIKELY: Final = 0.25
"""Probability, by the gating match alone, that the candidate is the better one."""


@dataclass(frozen=True, slots=True)
class GatingState:
    """The state of a candidate's match against the champion."""

    test: SprtResult
    counts: Int64Array
    """int64[5]: pairs of games by the candidate's score."""
    num_parts: int
    """Parts that the test rests on, the first ones."""
    is_over: bool
    """True if it is decided, or nothing is left to be played."""


def gating_match_of(folder: CampaignFolder, generation: int) -> ScheduledMatch | None:
    """The match of ``generation`` against the champion, of as many openings as may be played.

    All iterations before the one that trained it have their receipt.

    Returns:
        None where no games decide: by the settings, because ``generation`` is not evaluated, or
        because there is no champion to beat.
    """
    config = folder.config
    if config.promotion.rule != "sprt" or not is_evaluated(folder, generation):
        return None
    champion = champion_to_beat(folder, generation - 1)
    if champion is None:
        return None
    return ScheduledMatch(
        event=event_of(generation),
        name=champion_match(champion),
        generation=generation,
        opponent=champion,
        simulations=config.evaluation.simulations,
        num_openings=config.promotion.max_openings,
        openings_each=config.promotion.openings_each,
        # With the same openings in every gating match, luck with them would be inherited.
        has_own_openings=True,
    )


def next_parts(folder: CampaignFolder, match: ScheduledMatch, most: int) -> list[int]:
    """Parts of ``match`` to be played now, at most ``most``; none once it is over."""
    state = gating_state(folder, match)
    if state.is_over:
        return []
    return [part for part in unplayed_parts(folder, match) if part >= state.num_parts][:most]


def gating_state(folder: CampaignFolder, match: ScheduledMatch) -> GatingState:
    """The state of ``match``, by the games that are kept.

    Raises:
        CorruptDataError: some cannot be read; the file is named.
    """
    game, promotion = game_of(folder), folder.config.promotion
    hypotheses = promotion.elo0, promotion.elo1
    if whole := read_kept_match(game, folder.match(match.event, match.name), {}):
        counts = pair_counts(whole)
        return GatingState(sprt(counts, *hypotheses), counts, len(match.parts), is_over=True)
    counts = np.zeros(len(PAIR_SCORES), np.int64)
    for part in range(len(match.parts)):
        played = read_kept_match(game, folder.match_part(match.event, match.name, part), {})
        if played is None:
            return GatingState(sprt(counts, *hypotheses), counts, part, is_over=False)
        counts = counts + pair_counts(played)
        looked = sprt(counts, *hypotheses)
        if looked.state != "continue":
            return GatingState(looked, counts, part + 1, is_over=True)
    return GatingState(sprt(counts, *hypotheses), counts, len(match.parts), is_over=True)


def finish_gating_match(directory: Path, match: ScheduledMatch) -> PromotionFacts:
    """Keep the games of ``match`` that count, in one file; :func:`next_parts` has none left.

    The verdict is the test's; :func:`decide` gives the final one. Done again, it returns the same
    facts.
    """
    folder = CampaignFolder.open(directory)
    state = gating_state(folder, match)
    if not folder.match(match.event, match.name).exists():
        counting = replace(match, num_openings=match.parts[state.num_parts - 1].stop)
        finish_match(directory, counting)
    played = finish_match(directory, match)  # which removes parts that do not count
    assert isinstance(match.opponent, int)
    promotion = folder.config.promotion
    return PromotionFacts(
        candidate=match.generation, champion=match.opponent,
        verdict=_VERDICTS[state.test.state],
        llr=state.test.llr, lower=-SPRT_BOUND, upper=SPRT_BOUND,
        elo0=promotion.elo0, elo1=promotion.elo1, simulations=match.simulations,
        games=played.num_games, wins=played.wins, draws=played.draws, losses=played.losses,
        truncated=played.truncated, pairs=state.counts.tolist(), score=played.score,
        points_ahead=None if played.points is None else played.points.ahead,
    )


def decide(
    config: CampaignConfig, facts: PromotionFacts, rated: RatedCampaign | None
) -> PromotionFacts:
    """``facts`` with the final verdict: the candidate is accepted unless it is rated below.

    If the gating match alone makes it unlikely that the candidate is the better of the two, the
    other games must outweigh it: the 95 % interval of the difference must lie above 0.

    The ratings rest on the games of the gating match and on those against all other players. The
    score of the gating match decides where no game is against the random mover. ``rated`` are all
    players by all games up to the candidate's evaluation.
    """
    candidate, champion = (
        player_name(generation, facts.simulations)
        for generation in (facts.candidate, facts.champion)
    )
    if rated is None or not {candidate, champion} <= set(rated.ratings.players):
        return replace(facts, verdict="accept" if facts.score >= _EVEN else "reject")
    ahead = rated.ratings.difference(candidate, champion)
    low, high = (end if math.isfinite(end) else None for end in (ahead.low, ahead.high))
    has_lost = likelihood_of_superiority(np.array(facts.pairs)) < _UNLIKELY
    is_ahead = ahead.low > 0.0 if has_lost else ahead.value >= 0.0
    return replace(
        facts, verdict="accept" if is_ahead else "reject",
        elo_ahead=ahead.value, elo_ahead_low=low, elo_ahead_high=high,
        games_rated=rated.num_games_of(candidate, champion),
    )
