"""What a campaign can do without: found first, and removed only when asked.

Receipts, plans, matches and notes stay: they are what is known, and take next to no room. Of the
rest, everything goes that no window of training to come can hold, that no one is to play again,
and that is not the answer somebody may still want: champions, the newest, those of the last
matches, and generation 0, which the campaign is measured against.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from chess_snn.campaign.keeping.things import checkpoints_there
from chess_snn.campaign.store.folder import PART_MARK, CampaignFolder
from chess_snn.campaign.store.plans import read_plans
from chess_snn.campaign.store.preflight import check_settings
from chess_snn.campaign.store.receipts import Receipt, read_receipts
from chess_snn.campaign.store.removals import Removed, note_removal
from chess_snn.campaign.strength.champions import past_champions
from chess_snn.campaign.strength.matches import NetworkPlayer, earlier_generation, final_matches
from chess_snn.campaign.viewing.finish import is_finished
from chess_snn.data import is_committed, read_manifest
from chess_snn.data.files import dead_temporaries, remove
from chess_snn.data.manifest import stored_bytes
from chess_snn.data.window import INHERITED
from chess_snn.errors import CorruptDataError
from chess_snn.types import Progress

Sort = Literal["games", "checkpoints", "leftovers", "quarantine"]
SORTS: Final[tuple[Sort, ...]] = ("games", "checkpoints", "leftovers", "quarantine")

_ITERATION: Final = "iter-"
_GENERATION: Final = "gen-"


@dataclass(frozen=True, slots=True)
class Disposable:
    """Something that may go."""

    sort: Sort
    path: Path
    num_bytes: int
    why: str


def find_disposable(
    folder: CampaignFolder, keep: Collection[Sort] = ()
) -> list[Disposable]:
    """Everything in ``folder`` that may go, but for the sorts to ``keep``; nothing is changed.

    Raises:
        CampaignError: a setting was changed, by which something else would be needed.
        CorruptDataError: a receipt or plan is damaged, so that nobody knows what is needed.
    """
    check_settings(folder)
    finders: dict[Sort, Callable[[CampaignFolder], list[Disposable]]] = {
        "games": _games, "checkpoints": _checkpoints, "leftovers": _leftovers,
        "quarantine": _quarantined,
    }
    found = [entry for sort in SORTS if sort not in keep for entry in finders[sort](folder)]
    return _without_parts(found)


def _without_parts(found: Sequence[Disposable]) -> list[Disposable]:
    """``found`` without what is inside another of them, or there already."""
    whole: dict[Path, Disposable] = {}
    for entry in found:
        whole.setdefault(entry.path, entry)
    return [entry for path, entry in whole.items() if whole.keys().isdisjoint(path.parents)]


def dispose(
    folder: CampaignFolder, disposable: Sequence[Disposable],
    on_progress: Progress | None = None,
) -> None:
    """Remove ``disposable``, noting before which of it was committed; the caller holds the lock.

    Killed half-way, it is asked again: what is noted and still there is found again.

    Raises:
        UsageError: this user may not remove something; it is named.
    """
    committed = [
        _removed(folder, entry) for entry in disposable if entry.sort in ("games", "checkpoints")
    ]
    if committed:
        note_removal(folder, committed)
    for done, entry in enumerate(disposable, 1):
        remove(entry.path)
        if on_progress is not None:
            on_progress(done, len(disposable))


def first_iteration_needed(folder: CampaignFolder) -> int:
    """Games of earlier iterations are in no window to come; those of a finished campaign in none.

    Windows only move on: once there are games outside, the window grows more slowly than positions
    are played. The window of the
    newest generation is kept too, so that a damaged one can be trained again; and the iteration
    before the newest, whose positions are restarted from.
    """
    receipts = read_receipts(folder)
    if is_finished(folder):
        return len(receipts)
    if not receipts:
        return 0
    window = _iterations(receipts[-1].training.window_shards)  # 0: shards of another campaign
    return max(0, min([*window, len(receipts) - 2]))


def generations_needed(folder: CampaignFolder) -> dict[int, str]:
    """By generation, why its checkpoint stays."""
    receipts = read_receipts(folder)
    needed = {0: "the first one"}
    newest = len(receipts)
    needed |= dict.fromkeys(past_champions(folder), "a champion")
    needed |= dict.fromkeys(_in_last_matches(folder, receipts), "in the last matches")
    if not is_finished(folder):
        # An earlier generation plays the new ones. The next candidate, whose iteration may be
        # unfinished while the one after it has begun, goes back furthest.
        plans = read_plans(folder)[: newest + 1]
        by_time = folder.config.campaign.hours > 0
        oldest = [earlier_generation(plans, by_time=by_time)] if plans else []
        first = min([newest - 1, *oldest])
        there = [entry.generation for entry in checkpoints_there(folder)]
        needed |= {g: "needed to resume" for g in there if g >= first}
    needed[newest] = "the newest"
    return needed


def _in_last_matches(folder: CampaignFolder, receipts: Sequence[Receipt]) -> set[int]:
    """Generations that played in the newest matches, and in those at the campaign's end."""
    names: set[str] = set()
    evaluated = [receipt for receipt in receipts if receipt.matches]
    for match in evaluated[-1].matches if evaluated else []:
        names |= {match["player_a"], match["player_b"]}
    for scheduled in final_matches(folder):
        names.add(scheduled.player.name)
        if isinstance(scheduled.opponent, NetworkPlayer):
            names.add(scheduled.opponent.name)
    found = {_generation(name) for name in names}
    gates = [receipt.promotion for receipt in receipts if receipt.promotion is not None]
    if gates:
        found |= {gates[-1].candidate, gates[-1].champion}
    return {generation for generation in found if generation is not None}


def _generation(player: str) -> int | None:
    """Of a player such as ``gen-000012@64``; None of any other."""
    number = player.partition("@")[0].removeprefix(_GENERATION)
    return int(number) if player.startswith(_GENERATION) and number.isdecimal() else None


def _games(folder: CampaignFolder) -> list[Disposable]:
    first = first_iteration_needed(folder)
    found = []
    for path in sorted((folder.path / "games").glob(f"{_ITERATION}*")):
        number = path.name.removeprefix(_ITERATION)
        if number.isdecimal() and int(number) < first:
            found.append(Disposable("games", path, stored_bytes(path), "in no window to come"))
    if not _needs_inherited(folder):
        found += [
            Disposable("games", path, stored_bytes(path), "in no window to come")
            for path in sorted((folder.path / "games").glob(f"{INHERITED}*"))
        ]
    return found


def _needs_inherited(folder: CampaignFolder) -> bool:
    """Whether a window to come, or the newest, may hold games of another campaign."""
    if is_finished(folder):
        return False
    receipts = read_receipts(folder)
    return not receipts or any(
        name.startswith(INHERITED) for name in receipts[-1].training.window_shards
    )


def _checkpoints(folder: CampaignFolder) -> list[Disposable]:
    needed = generations_needed(folder)
    return [
        Disposable(
            "checkpoints", entry.path(folder), stored_bytes(entry.path(folder)),
            "no champion, not needed to resume, in none of the last matches",
        )
        for entry in checkpoints_there(folder) if entry.generation not in needed
    ]


def _leftovers(folder: CampaignFolder) -> list[Disposable]:
    why = "left half-written by a process that died"
    found = [
        Disposable("leftovers", path, stored_bytes(path), why)
        for parent in [folder.path, *_folders(folder.path)] for path in dead_temporaries(parent)
    ]
    for path in sorted((folder.path / "matches").glob(f"*/*{PART_MARK}*.json")):
        whole = path.with_name(f"{path.name.partition(PART_MARK)[0]}.json")
        if whole.exists():
            found.append(Disposable("leftovers", path, stored_bytes(path), "part of a whole match"))
    way = folder.supervised
    if way.exists() and is_committed(folder.checkpoint(0)):
        found.append(Disposable("leftovers", way, stored_bytes(way), "generation 0 is there"))
    return found


def _quarantined(folder: CampaignFolder) -> list[Disposable]:
    return [
        Disposable("quarantine", path, stored_bytes(path), "damaged; the note of it stays")
        for path in sorted(folder.quarantine.glob("*")) if path.suffix != ".json"
    ]


def _folders(path: Path) -> list[Path]:
    """The two levels below a campaign that things are committed in."""
    first = [entry for entry in path.iterdir() if entry.is_dir() and entry.name != "services"]
    return [*first, *(entry for parent in first for entry in parent.iterdir() if entry.is_dir())]


def _removed(folder: CampaignFolder, entry: Disposable) -> Removed:
    created = None
    if is_committed(entry.path):
        try:
            created = read_manifest(entry.path).created
        except CorruptDataError:
            created = None  # damaged; it goes all the same
    return Removed(folder.name_of(entry.path), entry.num_bytes, created)


def _iterations(shards: Sequence[str]) -> list[int]:
    """Of shards named ``iter-000012/shard-0003``; 0 of those that another campaign played."""
    return [
        0 if name.startswith(INHERITED)
        else int(name.partition("/")[0].removeprefix(_ITERATION)) for name in shards
    ]
