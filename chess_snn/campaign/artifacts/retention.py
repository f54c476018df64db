"""Rules of what ``chess-snn gc`` may remove of each kind of artifact, and why.

Receipts, plans, matches and notes stay: they are the record, and take next to no room. Of the rest,
everything may go that no future window of training can hold, that nothing will play again, and that
a user is unlikely to want: champions, the newest generation, those of the last matches, and
generation 0, which the campaign is measured against, stay.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from chess_snn.campaign.store.folder import PART_MARK, CampaignFolder
from chess_snn.campaign.store.plans import read_plans
from chess_snn.campaign.store.receipts import Receipt, read_receipts
from chess_snn.campaign.strength.champions import past_champions
from chess_snn.campaign.strength.match_schedule import earlier_generation, final_matches
from chess_snn.campaign.strength.matches import is_finished
from chess_snn.data import is_committed
from chess_snn.data.window import INHERITED

Disposable = Iterator[tuple[Path, str]]
"""Paths that may go, with the reasons."""

_ITERATION: Final = "iter-"
_GENERATION: Final = "gen-"
_OUTSIDE: Final = "in no window to come"


def disposable_shards(folder: CampaignFolder) -> Disposable:
    """Games of iterations that are in no window to come."""
    first = first_iteration_needed(folder)
    for path in sorted((folder.path / "games").glob(f"{_ITERATION}*")):
        number = path.name.removeprefix(_ITERATION)
        if number.isdecimal() and int(number) < first:
            yield path, _OUTSIDE


def disposable_inherited_shards(folder: CampaignFolder) -> Disposable:
    """Games of another campaign, once neither the newest window nor one to come can hold any."""
    if not is_finished(folder):
        receipts = read_receipts(folder)
        if not receipts or any(
            name.startswith(INHERITED) for name in receipts[-1].training.window_shards
        ):
            return
    for path in sorted((folder.path / "games").glob(f"{INHERITED}*")):
        yield path, _OUTSIDE


def first_iteration_needed(folder: CampaignFolder) -> int:
    """Games of earlier iterations are in no window to come; those of a finished campaign in none.

    Windows only move forward: a full window grows more slowly than positions are played. The window
    of the newest generation is kept too, so that a corrupt one can be trained again; and the
    iteration before the newest, whose positions self-play restarts from.
    """
    receipts = read_receipts(folder)
    if is_finished(folder):
        return len(receipts)
    if not receipts:
        return 0
    window = [
        0 if name.startswith(INHERITED)  # shards of another campaign
        else int(name.partition("/")[0].removeprefix(_ITERATION))
        for name in receipts[-1].training.window_shards
    ]
    return max(0, min([*window, len(receipts) - 2]))


def disposable_checkpoints(folder: CampaignFolder) -> Disposable:
    """Generations that nothing needs."""
    needed = generations_needed(folder)
    for generation in folder.generations():
        if generation not in needed:
            yield (
                folder.checkpoint(generation),
                "no champion, not needed to resume, in none of the last matches",
            )


def generations_needed(folder: CampaignFolder) -> set[int]:
    """Generations whose checkpoint stays."""
    receipts = read_receipts(folder)
    newest = len(receipts)
    needed = {0, newest, *past_champions(folder), *_in_last_matches(folder, receipts)}
    if not is_finished(folder):
        # An earlier generation plays the new ones. The next candidate, whose iteration may be
        # unfinished while the one after it has begun, goes back furthest.
        plans = read_plans(folder)[: newest + 1]
        by_time = folder.config.campaign.hours > 0
        oldest = [earlier_generation(plans, by_time=by_time)] if plans else []
        first = min([newest - 1, *oldest])
        needed |= {generation for generation in folder.generations() if generation >= first}
    return needed


def _in_last_matches(folder: CampaignFolder, receipts: Sequence[Receipt]) -> set[int]:
    """Generations that played in the newest matches, and in those at the campaign's end."""
    names: set[str] = set()
    evaluated = [receipt for receipt in receipts if receipt.matches]
    for match in evaluated[-1].matches if evaluated else []:
        names |= {match.player_a, match.player_b}
    for scheduled in final_matches(folder):
        names |= set(scheduled.players)
    found = {_generation(name) for name in names}
    played = [receipt.promotion for receipt in receipts if receipt.promotion is not None]
    if played:
        found |= {played[-1].candidate, played[-1].champion}
    return {generation for generation in found if generation is not None}


def _generation(name: str) -> int | None:
    """Return the generation of a player such as ``gen-000012@64``; None of any other."""
    number = name.partition("@")[0].removeprefix(_GENERATION)
    return int(number) if name.startswith(_GENERATION) and number.isdecimal() else None


def disposable_steps(folder: CampaignFolder) -> Disposable:
    """Pretraining checkpoints, once generation 0 is there."""
    if folder.supervised.exists() and is_committed(folder.checkpoint(0)):
        yield folder.supervised, "generation 0 is there"


def is_pretraining(folder: CampaignFolder) -> bool:
    """Return whether pretraining checkpoints are still read: until generation 0 is there."""
    return not is_committed(folder.checkpoint(0))


def disposable_match_parts(folder: CampaignFolder) -> Disposable:
    """Parts of matches that are complete."""
    for path in sorted((folder.path / "matches").glob(f"*/*{PART_MARK}*.json")):
        if path.with_name(f"{path.name.partition(PART_MARK)[0]}.json").exists():
            yield path, "part of a whole match"


def disposable_quarantined(folder: CampaignFolder) -> Disposable:
    """Everything in quarantine but the notes."""
    for path in sorted(folder.quarantine.glob("*")):
        if path.suffix != ".json":
            yield path, "damaged; the note of it stays"
