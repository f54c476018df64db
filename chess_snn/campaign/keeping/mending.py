"""A damaged shard or checkpoint of a running campaign: set aside, and made again.

Everything follows from what lies before it: a shard from the generation that played it, a
generation from the one before and its window of shards, the first generation from the seed. So
whatever is damaged is made again from that, and comes out the same; what that needs and finds
damaged as well is made again first. Where it cannot be, because it was removed, a shard is dropped
and windows of training go without it; a generation ends the campaign, until somebody restores it.
What came from another campaign is copied from there again.
A checkpoint on the way to generation 0 is set aside alone: whoever trains goes on from the one
before, or from the beginning.

Whoever does the work stumbles over the damage (neither is read without its digests), asks
:meth:`Mender.mend`, and tries again.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from chess_snn.campaign.keeping.things import (
    Checkpoint,
    InheritedShard,
    Shard,
    StepCheckpoint,
    Thing,
    steps_there,
    thing_at,
)
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.history import ReceiptHistory
from chess_snn.campaign.store.origin import Origin
from chess_snn.campaign.store.quarantine import set_aside, write_note
from chess_snn.campaign.store.receipts import read_receipt
from chess_snn.campaign.store.removals import is_removed
from chess_snn.campaign.strength.champions import champion_of
from chess_snn.data import link_folder, read_manifest, read_shard, verify_folder
from chess_snn.errors import (
    BeyondRepairError,
    CampaignError,
    ChessSnnError,
    CorruptDataError,
    DamagedFolderError,
    RemovedError,
)
from chess_snn.training import check_checkpoint

_Outcome = TypeVar("_Outcome")

MOST_TIMES: Final = 3
"""How often one thing is made again by one process; a disk that damages it again is broken."""

MOST_READINGS: Final = 10
"""How often work is done again that finds something damaged which is whole here."""


@dataclass(frozen=True, slots=True)
class Makers:
    """How the things of a campaign are made; each returns once its outcome is committed.

    They may stumble over further damage, and have that mended before they return.
    """

    play_shard: Callable[[int, int], object]
    """Of (iteration, shard)."""
    train: Callable[[int], object]
    """Generation ``iteration + 1``, of that iteration."""
    make_first: Callable[[], object]
    """Generation 0."""


@dataclass(slots=True)
class Mender:
    """Makes damaged things of one campaign again, for all threads of the process that runs it."""

    folder: CampaignFolder
    makers: Makers
    tell: Callable[[str], None]
    """Told, in a line each, what is damaged and what becomes of it."""
    pause_s: float = 1.0
    """Before something that is whole here is read once more where it was not."""
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _under_way: list[Path] = field(default_factory=list)
    _times: Counter[Path] = field(default_factory=Counter)

    def mend(self, error: DamagedFolderError, times_before: int = 0) -> None:
        """Set aside what ``error`` names, and make it again or drop it; then try again.

        Args:
            error: what the work stumbled over.
            times_before: how often the same work has stumbled over the same thing before.

        Raises:
            DamagedFolderError: ``error`` itself, of what is no shard or checkpoint of the campaign.
            BeyondRepairError: it cannot be made again, and the campaign cannot go on without it;
                or it is whole here, and others keep reading it otherwise.
        """
        with self._lock:
            thing = None if error.folder is None else thing_at(self.folder, error.folder)
            if thing is None:
                raise error
            if not is_whole(self.folder, thing):
                if isinstance(thing, StepCheckpoint):
                    self._go_back(thing, error)
                else:
                    self._mend(thing, error)
                return
        if times_before:  # else another thread had it mended first
            self._wonder(thing, error, times_before)

    def mended(self, work: Callable[[], _Outcome]) -> _Outcome:
        """``work()``, done again as often as it stumbles over something that can be mended."""
        met: Counter[Path | None] = Counter()
        while True:
            try:
                return work()
            except DamagedFolderError as error:
                self.mend(error, met[error.folder])
                met[error.folder] += 1

    def make_missing(self) -> None:
        """Make again what :func:`missing_generations` names.

        Raises:
            BeyondRepairError: one cannot be.
        """
        for generation in missing_generations(self.folder):
            self.mended(partial(read_manifest, self.folder.checkpoint(generation)))

    def _mend(self, thing: Shard | InheritedShard | Checkpoint, error: DamagedFolderError) -> None:
        path = thing.path(self.folder)
        self._refuse_hopeless(thing, path)
        self._times[path] += 1
        where = self._set_aside(path, error)
        self.tell(f"DAMAGED: {error}. {str(thing).capitalize()} is made again; {where}")
        self._under_way.append(path)
        try:
            self._make(thing, path)
        except (BeyondRepairError, RemovedError) as failure:
            if isinstance(thing, Checkpoint):
                raise
            self._drop(thing, failure)
        else:
            told = f"{thing} was made again" + self._difference(thing)
            write_note(self.folder, path, "made again", f"{error}; {told}")
            self.tell(told)
        finally:
            self._under_way.remove(path)

    def _go_back(self, damaged: StepCheckpoint, error: DamagedFolderError) -> None:
        where = self._set_aside(damaged.path(self.folder), error)
        earlier = steps_there(self.folder)
        whence = f"from {earlier[-1]}" if earlier else "from the beginning"
        self.tell(f"DAMAGED: {error}. Training goes on {whence}; {where}")

    def _set_aside(self, path: Path, error: DamagedFolderError) -> str:
        """Where what was at ``path`` is now, for people."""
        set_to = set_aside(self.folder, path, str(error))
        return "it is gone" if set_to is None else f"it lies in {set_to}"

    def _wonder(
        self, thing: Thing, error: DamagedFolderError, times_before: int
    ) -> None:
        """Have it read again, a bounded number of times."""
        if times_before >= MOST_READINGS:
            raise BeyondRepairError(
                f"{thing.path(self.folder)} is whole here, and was read otherwise "
                f"{times_before + 1} times ({error}); look at the memory and mounts of the workers"
            )
        self.tell(
            f"{str(thing).capitalize()} is whole here; a worker reads it otherwise: {error}"
        )
        time.sleep(self.pause_s)

    def _refuse_hopeless(self, thing: Thing, path: Path) -> None:
        if path in self._under_way:
            raise BeyondRepairError(
                f"{thing} is damaged, and it would take itself to make it again; restore {path} "
                "from a copy"
            )
        if self._times[path] >= MOST_TIMES:
            raise BeyondRepairError(
                f"{thing} was made again {MOST_TIMES} times and is damaged once more; look at the "
                f"disk of {path}"
            )

    def _make(self, thing: Shard | InheritedShard | Checkpoint, path: Path) -> None:
        if is_removed(self.folder, path):
            raise BeyondRepairError(
                f"{thing} was removed by `chess-snn gc`, and is needed; restore {path} from a copy"
            )
        if self._take_again(thing, path):
            return
        match thing:
            case Shard(iteration, number):
                self.makers.play_shard(iteration, number)
            case Checkpoint(0):
                self.makers.make_first()
            case Checkpoint(generation):
                if is_removed(self.folder, self.folder.shard(generation - 1, 0)):
                    raise BeyondRepairError(
                        f"{thing} cannot be trained again: its games were removed by "
                        f"`chess-snn gc`; restore {path} from a copy"
                    )
                self.makers.train(generation - 1)

    def _take_again(self, thing: Thing, path: Path) -> bool:
        """Take from the parent of the campaign what it has from there; whether it has."""
        origin = self.folder.origin
        source = None if origin is None else origin.source_of(self.folder.name_of(path))
        if origin is None or source is None:
            return False
        try:
            check_parent(origin)
            verify_folder(source)
            link_folder(source, path)
        except (CampaignError, CorruptDataError) as error:
            raise BeyondRepairError(
                f"{thing} came from campaign {origin.campaign}, and cannot be taken from there "
                f"again ({error}); restore {path} from a copy"
            ) from error
        return True

    def _drop(self, shard: Shard | InheritedShard, failure: ChessSnnError) -> None:
        write_note(self.folder, shard.path(self.folder), "dropped", str(failure))
        self.tell(
            f"DROPPED: {shard} cannot be played again ({failure}); windows of training go without "
            "its games"
        )

    def _difference(self, thing: Shard | InheritedShard | Checkpoint) -> str:
        """What sets a generation apart from what the receipt says of it, if anything does."""
        if not isinstance(thing, Checkpoint) or thing.generation == 0:
            return ""
        iteration = thing.generation - 1
        if not self.folder.receipt(iteration).exists():
            return ""
        noted = read_receipt(self.folder, iteration).training.weights_digest
        made = str(read_manifest(thing.path(self.folder)).meta["weights_digest"])
        if made == noted:
            return f", with the same weights ({made[:12]}…)"
        return (
            f", and its weights are others ({made[:12]}…) than those of its receipt "
            f"({noted[:12]}…): scores and ratings were measured with those"
        )


def check_parent(origin: Origin) -> None:
    """See that the parent's folder still holds that campaign.

    Raises:
        CampaignError: it does not.
    """
    found = CampaignFolder.open(Path(origin.folder)).campaign_id
    if found != origin.campaign_id:
        raise CampaignError(
            f"{origin.folder} holds campaign {found} now; put {origin.campaign} "
            f"({origin.campaign_id}) back"
        )


def missing_generations(folder: CampaignFolder) -> list[int]:
    """The newest generation of a finished iteration and the champion, where they are not there.

    They are what a campaign is run for: no later iteration need ever stumble over their absence.
    """
    receipts = ReceiptHistory(folder)
    wanted = {len(receipts), champion_of(folder, receipts)} if receipts else set()
    return sorted(
        generation for generation in wanted
        if generation is not None and not folder.checkpoint(generation).exists()
    )


def is_whole(folder: CampaignFolder, thing: Thing) -> bool:
    """Whether it is there, and what was committed."""
    try:
        check_thing(folder, thing)
    except DamagedFolderError:
        return False
    return True


def check_thing(folder: CampaignFolder, thing: Thing) -> None:
    """See that it is there, and what was committed.

    Raises:
        DamagedFolderError: it is not.
        UnknownVersionError: it is of a version that is not read.
    """
    if isinstance(thing, Shard | InheritedShard):
        read_shard(thing.path(folder))
    else:
        check_checkpoint(thing.path(folder))
