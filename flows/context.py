"""What the flows of one campaign share and Prefect parameters cannot carry: live connections.

One iteration hands over to the next, which begins before it has ended::

    iteration 4   self-play  train  evaluate ──────── promote
                                 └▶ trained               └▶ finished
    iteration 5                     self-play ─────────────── train  evaluate ── promote
"""

import time
from concurrent.futures import Future
from dataclasses import dataclass, field

from chess_snn.campaign import CampaignFolder, Receipt
from chess_snn.campaign.backup import Backup
from chess_snn.campaign.integrity.rebuild import Rebuilder
from chess_snn.campaign.store.plans import CampaignClock, ProgressPlan
from tasks.cluster.worker_pool import WorkerPool
from tasks.progress import ProgressBoard, Stage


@dataclass(slots=True, eq=False)
class Handoff:
    """One iteration's side of it; the futures belong to different threads."""

    plan: ProgressPlan
    """Of the iteration."""
    predecessor: "Future[Receipt] | None"
    """The receipt of the iteration before, if that one runs in this process."""
    trained: "Future[None]" = field(default_factory=Future)
    """Done when the next iteration may begin."""
    _successor_began: float | None = None

    def hand_over(self) -> None:
        """The network is trained: let the next iteration begin."""
        self.trained.set_result(None)

    def fail(self, error: BaseException) -> None:
        """The iteration will not get any further."""
        if not self.trained.done():
            self.trained.set_exception(error)

    def wait_for_predecessor(self) -> None:
        """Return once the iteration before has its receipt; raise its error if it failed."""
        if self.predecessor is not None:
            self.predecessor.result()

    def successor_begins(self) -> None:
        """The next iteration is under way from now on."""
        self._successor_began = time.monotonic()

    def hidden_seconds(self, stage: Stage) -> float:
        """How long the next iteration was under way during ``stage``, which has ended."""
        if self._successor_began is None:
            return 0.0
        return max(0.0, stage.ended - max(stage.began, self._successor_began))


@dataclass(frozen=True, slots=True)
class CampaignRun:
    """A campaign that is running in this process."""

    folder: CampaignFolder
    pool: WorkerPool
    board: ProgressBoard
    tracking_uri: str
    clock: CampaignClock
    rebuilder: Rebuilder
    """The only one of the campaign, so that no two threads rebuild the same artifact."""
    backup: Backup | None = None
    """In an object store, if it has one."""
