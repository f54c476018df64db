"""What the flows of one campaign share and Prefect parameters cannot carry: live connections."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.copies.mirror import Mirror
from chess_snn.campaign.keeping.mending import Mender
from chess_snn.campaign.store.plans import CampaignClock
from flows.cluster import Crew
from flows.relay import Relay
from tasks.progress import ProgressBoard


@dataclass(frozen=True, slots=True)
class CampaignRun:
    """A campaign that is running in this process."""

    folder: CampaignFolder
    crew: Crew
    board: ProgressBoard
    tracking_uri: str
    clock: CampaignClock
    mender: Mender
    """The one of the campaign: who mends a thing keeps all others from it."""
    mirror: Mirror | None = None
    """Its copy in an object store, if it keeps one."""


@dataclass(frozen=True, slots=True)
class IterationRun:
    """One of its iterations."""

    campaign: CampaignRun
    relay: Relay
    has_begun: threading.Event = field(default_factory=threading.Event)
    """Whether its flow runs, and not only Prefect's preparations for it."""


_current: ContextVar[IterationRun] = ContextVar("iteration_run")


def current_iteration() -> IterationRun:
    """The iteration that this code runs in.

    Raises:
        LookupError: called outside a campaign.
    """
    return _current.get()


@contextmanager
def running(iteration: IterationRun) -> Iterator[None]:
    """Make ``iteration`` the current one for the length of the block."""
    token = _current.set(iteration)
    try:
        yield
    finally:
        _current.reset(token)
