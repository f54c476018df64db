"""Futures that pass between two iterations of a campaign that run at the same time."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from chess_snn.campaign import Receipt
from chess_snn.campaign.store.plans import ProgressPlan
from tasks import compute
from tasks.progress import Stage


@dataclass(slots=True, eq=False)
class Handoff:
    """Futures that one iteration waits for, and those that it sets, in different threads."""

    plan: ProgressPlan
    """Plan of the iteration."""
    network: "Future[None] | None"
    """Done when the iteration before has trained the network, if that one runs in this process."""
    predecessor: "Future[Receipt] | None"
    """The receipt of the iteration before, if that one runs in this process."""
    shown_after: Sequence[Any] = ()
    """Results in the campaign's flow run that lead to the iteration in Prefect's graph."""
    played: "Future[None]" = field(default_factory=Future)
    """Done when the next iteration may begin, and wait for its network."""
    trained: "Future[None]" = field(default_factory=Future)
    """Done when the network of the next iteration is there."""
    successor_began: float | None = None
    """Time at which it did, by the monotonic clock."""

    def wait_for_network(self) -> None:
        """Return once the iteration's network is there.

        Raises:
            StoppedError: its training failed or was stopped.
        """
        if self.network is not None and self.network.exception() is not None:
            raise compute.StoppedError("the network that the games need was not trained")

    def wait_for_predecessor(self) -> None:
        """Return once the iteration before has its receipt; raise its error if it failed."""
        if self.predecessor is not None:
            self.predecessor.result()

    def hidden_seconds(self, stage: Stage) -> float:
        """How long the next iteration was under way during ``stage``, which has ended."""
        if self.successor_began is None:
            return 0.0
        return max(0.0, stage.ended - max(stage.began, self.successor_began))
