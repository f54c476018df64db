"""Matches that a campaign plays: between whom, about how many openings, under which names."""

from dataclasses import dataclass

from chess_snn.campaign.configuration.settings import OPENINGS_EACH
from chess_snn.campaign.stages.networks import game_of
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.notes import is_removed
from chess_snn.campaign.store.plans import ProgressPlan, num_extensions, read_plans
from chess_snn.campaign.store.receipts import num_finished_iterations, read_receipt

FINAL = "final"
"""The event at the end of a campaign; ``final-1`` after it was extended once, and so on."""
EARLIER = "earlier"
"""The match against an earlier generation."""
CHAMPION = "champion"
"""Begins the name of a match against the champion, whose generation follows."""
CONVERSION = "conversion"
"""The report on the suite of won positions, beside the matches."""
LADDER_TEST = "climb"
"""The report of a ladder test, beside the matches. The test's matches are ordinary ones; their
names begin with it."""
BESIDE_MATCHES = (CONVERSION, LADDER_TEST)
"""Reports in the folder of the matches."""

EARLIER_SHARE = 2 / 3
"""Progress of the campaign, as a share of what it has done up to now, when the earlier generation
was new: after 12 iterations it is four iterations older, after an hour 20 minutes."""


@dataclass(frozen=True, slots=True)
class ScheduledMatch:
    """A match to be played, or played already."""

    event: str
    """``gen-000012``: evaluation of that generation; or ``final``."""
    name: str
    """Within its event: ``greedy``."""
    generation: int
    """The player whose score it is."""
    opponent: int | str
    """A generation, or what :func:`chess_snn.evaluation.named_players.make_player` understands."""
    simulations: int
    """Simulations of both networks, a move; 0 is without search."""
    num_openings: int
    """Each is played with both colours."""
    openings_each: int = OPENINGS_EACH
    """Openings of a part."""
    has_own_openings: bool = False
    """True if openings are drawn for this match alone; else all matches have the same, so that
    their scores can be compared."""

    @property
    def players(self) -> tuple[str, str]:
        """Names of both players."""
        return (
            player_name(self.generation, self.simulations),
            player_name(self.opponent, self.simulations),
        )

    @property
    def num_games(self) -> int:
        """Over all parts."""
        return 2 * self.num_openings

    @property
    def seed_path(self) -> tuple[str, ...]:
        """Names the seed of its openings and games."""
        return ("evaluation", self.event, self.name) if self.has_own_openings else ("evaluation",)

    @property
    def parts(self) -> list[range]:
        """The openings of each part."""
        firsts = range(0, self.num_openings, self.openings_each)
        return [
            range(first, min(first + self.openings_each, self.num_openings)) for first in firsts
        ]


def player_name(player: int | str, simulations: int) -> str:
    """The name of a player in results: ``gen-000012@64``, or ``gen-000012`` without search.

    A fixed player keeps its name.
    """
    if isinstance(player, str):
        return player
    budget = f"@{simulations}" if simulations else ""
    return f"gen-{player:06d}{budget}"


def converts(folder: CampaignFolder) -> bool:
    """Return whether new generations play out won positions: where one of two players may win."""
    return game_of(folder).spec.num_players == 2


def event_of(generation: int) -> str:
    """The event in which ``generation`` is evaluated."""
    return f"gen-{generation:06d}"


def champion_match(champion: int) -> str:
    """The name of a candidate's match against that generation."""
    return f"{CHAMPION}-{champion:06d}"


def is_gating_match(name: str) -> bool:
    """Return whether a match of this name decides on the champion."""
    return name.startswith(CHAMPION)


def is_evaluated(folder: CampaignFolder, generation: int) -> bool:
    """Return whether ``generation`` plays matches when it is new."""
    return generation % folder.config.evaluation.every == 0


def generation_matches(folder: CampaignFolder, generation: int) -> list[ScheduledMatch]:
    """The matches of a new generation: against the opponents set, and an earlier generation."""
    settings = folder.config.evaluation
    plans = _of_kept_networks(folder, read_plans(folder)[:generation])
    earlier = earlier_generation(plans, by_time=folder.config.campaign.hours > 0)
    opponents: dict[str, int | str] = {name: name for name in settings.opponents}
    opponents[EARLIER] = earlier
    return [
        ScheduledMatch(
            event=event_of(generation),
            name=name,
            generation=generation,
            opponent=opponent,
            simulations=settings.simulations,
            num_openings=settings.num_openings,
        )
        for name, opponent in opponents.items()
    ]


def final_event(folder: CampaignFolder) -> str:
    """The event at the end of the campaign, as long as it lasts now."""
    number = num_extensions(folder)
    return f"{FINAL}-{number}" if number else FINAL


def is_final(event: str) -> bool:
    """Return whether matches of this event were, or are, at the end of a campaign."""
    return event.startswith(FINAL)


def final_matches(folder: CampaignFolder) -> list[ScheduledMatch]:
    """The matches of the last generation, once its iteration has its receipt; maybe none."""
    settings, newest = folder.config.evaluation, num_finished_iterations(folder)
    if not settings.final_openings or not newest:
        return []
    budget = settings.final_simulations
    plans = _of_kept_networks(folder, read_plans(folder)[:newest])
    by_time = folder.config.campaign.hours > 0
    now = read_receipt(folder, newest - 1).elapsed_s if by_time else newest
    earlier = earlier_generation(plans, by_time=by_time, now=now)
    weakest, stronger = "random", "greedy"
    if game_of(folder).spec.num_players == 1:  # random and greedy lose every seed soon
        weakest = stronger = settings.opponents[-1]
    planned: dict[str, tuple[int | str, int]] = {
        f"{weakest}-0": (weakest, 0),
        f"{weakest}-{budget}": (weakest, budget),
        f"{stronger}-{budget}": (stronger, budget),
        f"{EARLIER}-{budget}": (earlier, budget),
    }
    event = final_event(folder)
    return [
        ScheduledMatch(event, name, newest, opponent, simulations, settings.final_openings)
        for name, (opponent, simulations) in planned.items()
    ]


def earlier_generation(
    plans: list[ProgressPlan], *, by_time: bool, now: float | None = None
) -> int:
    """The generation that was new when about two thirds of the campaign up to ``now`` were done.

    A campaign counted by iterations counts them here too, so that all runs of one seed play the
    same matches. Planned progress does not serve: it stays at 1 where a finished campaign was
    extended. The first generations of the iterations of ``plans``, at least one, may be chosen.
    ``now`` is in seconds ``by_time``, else in iterations; by default that of the last plan.
    """
    stands = {plan.iteration: plan.elapsed_s if by_time else plan.iteration for plan in plans}
    wanted = EARLIER_SHARE * (stands[plans[-1].iteration] if now is None else now)
    return min(stands, key=lambda generation: abs(stands[generation] - wanted))


def _of_kept_networks(folder: CampaignFolder, plans: list[ProgressPlan]) -> list[ProgressPlan]:
    """Return the ``plans`` whose network was not removed, as after a campaign's first end."""
    return [plan for plan in plans if not is_removed(folder, folder.checkpoint(plan.iteration))]
