"""The state of a campaign, read from its folder alone, again and again at little cost.

This works beside the campaign, on another machine that shares the disk, and after the campaign has
ended or died. It writes nothing and takes no lock. What is finished is read from receipts; what is
under way, from the progress that the campaign's process wrote last. A look stats plans and
receipts and reads the new ones; only after a new receipt it computes anything from all of them.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chess_snn.campaign.store.folder import CONFIG_FILE, CampaignFolder
from chess_snn.campaign.store.match_facts import MatchFacts
from chess_snn.campaign.store.notes import missing_notices
from chess_snn.campaign.store.plans import (
    S_PER_HOUR,
    ProgressPlan,
    campaign_length,
    next_plan,
    read_plans,
)
from chess_snn.campaign.store.receipts import Receipt, read_receipts
from chess_snn.campaign.strength.champions import champion_of
from chess_snn.campaign.strength.match_schedule import ScheduledMatch, final_event, final_matches
from chess_snn.campaign.strength.matches import readable_final_matches
from chess_snn.campaign.viewing.alarms import Alarm, find_alarms
from chess_snn.campaign.viewing.events import StageProgress, WorkerProgress
from chess_snn.campaign.viewing.live import (
    DiskMeter,
    DiskUse,
    Writer,
    WriterState,
    find_writer,
    is_reporting,
    live_file,
    read_live,
)
from chess_snn.campaign.viewing.results import result_rows
from chess_snn.errors import CampaignError
from chess_snn.types import Json

PACE_ITERATIONS: Final = 5
"""The time left is computed from the mean length of so many newest iterations."""


@dataclass(frozen=True, slots=True)
class CampaignView:
    """A campaign at one moment."""

    folder: CampaignFolder
    receipts: Sequence[Receipt]
    rows: Sequence[Json]
    """Rows of :func:`chess_snn.campaign.viewing.results.result_rows`, one a receipt."""
    champion: int | None
    """Generation, chosen by a gating match or by hand; None before the first receipt."""
    alarms: Sequence[Alarm]
    stages: Sequence[StageProgress]
    """Under way, or left where they were; the oldest first."""
    final_matches: Sequence[MatchFacts]
    """None until all are played."""
    faults: Sequence[str]
    """Lines that name what is damaged, missing, removed or quarantined."""
    writer: Writer | None
    """None if no process has run it in this folder."""
    is_finished: bool
    elapsed_s: float
    """Seconds it has run, without pauses; for a campaign on another host, until its last write."""
    seconds_left: float | None
    """Seconds left by the clock, or at the pace of the newest iterations, without the final
    matches. None if unknown."""
    last_sign_s: float
    """When something was last written, seconds since 1970."""
    disk: DiskUse
    workers: Sequence[WorkerProgress]
    """Workers of all machines; none unless the campaign's process reported them recently."""

    @property
    def is_running(self) -> bool:
        """Return whether a process of this host runs it; processes of other hosts are invisible."""
        return self.writer is not None and self.writer.state is WriterState.RUNNING

    @property
    def may_run(self) -> bool:
        """Return whether it is running, as far as this host can know."""
        return self.writer is not None and self.writer.state is not WriterState.STOPPED

    @property
    def state_text(self) -> str:
        """Return whether it is finished, or which process runs it or did so last."""
        if self.is_finished:
            return "finished"
        if self.writer is not None:
            return str(self.writer)
        if self.receipts:
            return "stopped: no process has run it in this folder"
        return "not begun: no process has run it yet"

    @property
    def progress(self) -> float:
        """Share of the campaign that is done, in [0, 1], without the final matches."""
        if self.is_finished:
            return 1.0
        return campaign_length(self.folder).share(len(self.receipts), self.elapsed_s)


class CampaignWatch:
    """Reads the state of one campaign again and again."""

    def __init__(self, directory: Path) -> None:
        """Watch the campaign in ``directory``.

        Raises:
            CampaignError: there is none.
            ConfigError: its configuration is damaged.
        """
        self._folder = CampaignFolder.open(directory)
        self._plans: list[ProgressPlan] = []
        self._receipts: list[Receipt] = []
        self._disk = DiskMeter(self._folder.path)
        self._rows: list[Json] = []
        self._alarms: list[Alarm] = []
        self._final: list[ScheduledMatch] | None = None
        self._final_summaries: list[MatchFacts] = []
        self._faults: list[str] = []

    def look(self) -> CampaignView:
        """The campaign now.

        Raises:
            CampaignError: its folder is gone, or cannot be read.
            CorruptDataError: a plan or a receipt is damaged.
        """
        try:
            if not (self._folder.path / CONFIG_FILE).is_file():
                raise CampaignError(
                    f"{self._folder.path} holds no campaign any more; watch it where it is now"
                )
            return self._look()
        except OSError as error:
            raise CampaignError(
                f"cannot read campaign {self._folder.path}: {error.strerror} "
                f"({error.filename}); repair that, then watch it again"
            ) from error

    def _look(self) -> CampaignView:
        folder, writer = self._folder, find_writer(self._folder)
        self._refresh()
        is_finished = self._is_finished()
        last_sign_s = self._last_sign_s()
        elapsed_s = self._elapsed_s(writer, last_sign_s)
        may_run = writer is not None and writer.state is not WriterState.STOPPED
        live = read_live(folder)
        return CampaignView(
            folder=folder,
            receipts=tuple(self._receipts),
            rows=tuple(self._rows),
            champion=champion_of(folder, self._receipts),
            alarms=tuple(self._alarms),
            stages=() if is_finished else live.stages,
            final_matches=tuple(self._final_summaries),
            faults=(*self._faults, *missing_notices(folder)),
            writer=writer,
            is_finished=is_finished,
            elapsed_s=elapsed_s,
            seconds_left=self._seconds_left(elapsed_s),
            last_sign_s=last_sign_s,
            disk=self._disk.look(),
            workers=live.workers if may_run and is_reporting(folder) else (),
        )

    def _refresh(self) -> None:
        self._plans, receipts = read_plans(self._folder), read_receipts(self._folder)
        if receipts != self._receipts:
            self._receipts = receipts
            self._rows = result_rows(self._folder, receipts)
            self._alarms = find_alarms(self._rows)
            self._forget_finals()

    def _forget_finals(self) -> None:
        self._final, self._final_summaries, self._faults = None, [], []

    def _is_finished(self) -> bool:
        """Return whether all receipts and final matches are there, which are read then."""
        num_finished, num_begun = len(self._receipts), len(self._plans)
        if not num_finished or num_begun > num_finished:
            return False
        if next_plan(self._folder, num_finished, self._recorded_s()) is not None:
            self._forget_finals()  # it may have been extended
            return False
        if self._final is None:
            self._final = final_matches(self._folder)
        if not all(self._folder.match(m.event, m.name).exists() for m in self._final):
            return False
        if self._final and not self._final_summaries:
            self._final_summaries, self._faults = readable_final_matches(self._folder)
        return True

    def _last_sign_s(self) -> float:
        """The newest time of what is written while the campaign runs."""
        folder = self._folder
        return max(map(_changed_s, (
            live_file(folder), folder.receipt(0).parent, folder.plan(0).parent,
            folder.checkpoint(0).parent, folder.match(final_event(folder), "").parent,
            folder.extension(0).parent, folder.supervised, folder.path / CONFIG_FILE,
        )))

    def _recorded_s(self) -> float:
        begun_s = [plan.elapsed_s for plan in self._plans]
        finished_s = [receipt.elapsed_s for receipt in self._receipts]
        return max([0.0, *begun_s, *finished_s])

    def _elapsed_s(self, writer: Writer | None, last_sign_s: float) -> float:
        """Return the elapsed seconds; from the newest record on, by the clock if it runs."""
        recorded_s = self._recorded_s()
        if writer is None or writer.state is WriterState.STOPPED or self._final is not None:
            return recorded_s
        until_s = time.time() if writer.state is WriterState.RUNNING else last_sign_s
        folder = self._folder
        noted_s = max(
            _changed_s(folder.plan(len(self._plans) - 1)),
            _changed_s(folder.receipt(len(self._receipts) - 1)),
            writer.since.timestamp(),
        )
        return recorded_s + max(0.0, until_s - noted_s)

    def _seconds_left(self, elapsed_s: float) -> float | None:
        run, receipts = campaign_length(self._folder), self._receipts
        if run.hours:
            return max(0.0, run.hours * S_PER_HOUR - elapsed_s)
        if not receipts:
            return None
        newest = receipts[-PACE_ITERATIONS:]
        before = receipts[-len(newest) - 1].elapsed_s if len(receipts) > len(newest) else 0.0
        pace_s = (newest[-1].elapsed_s - before) / len(newest)
        left_s = (run.iterations - len(receipts)) * pace_s - (elapsed_s - newest[-1].elapsed_s)
        return max(0.0, left_s)


def _changed_s(path: Path) -> float:
    """When ``path`` was last written, in seconds since 1970; 0 if it is missing."""
    try:
        return path.stat().st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return 0.0
