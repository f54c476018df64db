"""A bar on the page of a flow run."""

import logging
import time
from collections.abc import Callable
from typing import Final
from uuid import UUID

import httpx
from prefect import get_client
from prefect.artifacts import create_progress_artifact
from prefect.client.schemas.actions import ArtifactUpdate

PERIOD_S: Final = 2.0
PAUSE_AFTER_FAILURE_S: Final = 30.0

_logger = logging.getLogger(__name__)


class ProgressArtifact:
    """A Prefect progress artifact, updated every two seconds at most.

    The server may be away, at the beginning too: the picture lags then, and the work goes on.
    """

    def __init__(self, key: str) -> None:
        """Create it; only inside a flow run.

        Args:
            key: names it among all runs: lower-case letters, digits and dashes.
        """
        self._key = key
        self._artifact: UUID | None = None
        self._next_update = 0.0
        self._try(self._create)

    def show(self, share: float, text: str, *, is_last: bool = False) -> None:
        """Show how far it is, now and then; the last is always shown.

        Args:
            share: done, in [0, 1].
            text: for people.
            is_last: whether nothing comes after it.
        """
        now = time.monotonic()
        if now < self._next_update and not is_last:
            return
        self._next_update = now + PERIOD_S
        self._try(lambda: self._update(ArtifactUpdate(data=share * 100, description=text)))

    def _create(self) -> UUID:
        created = create_progress_artifact(0.0, key=self._key, description="starting")
        self._artifact = created  # called here it is sync
        return self._artifact

    def _update(self, update: ArtifactUpdate) -> None:
        artifact = self._create() if self._artifact is None else self._artifact
        with get_client(sync_client=True) as client:
            client.update_artifact(artifact, update)

    def _try(self, work: Callable[[], object]) -> None:
        try:
            work()
        except httpx.HTTPError as error:
            _logger.warning("progress is not shown in Prefect: %s", error)
            self._next_update = time.monotonic() + PAUSE_AFTER_FAILURE_S
