"""A bar on the page of a flow run."""

import logging
import time
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
    """A Prefect progress artifact, updated every two seconds at most."""

    def __init__(self, key: str) -> None:
        """Create it; only inside a flow run.

        Args:
            key: names it among all runs: lower-case letters, digits and dashes.
        """
        created = create_progress_artifact(0.0, key=key, description="starting")
        self._artifact: UUID = created  # called here it is sync
        self._next_update = 0.0

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
        update = ArtifactUpdate(data=share * 100, description=text)
        try:
            with get_client(sync_client=True) as client:
                client.update_artifact(self._artifact, update)
        except httpx.HTTPError as error:
            # The picture of progress may lag; the work goes on.
            _logger.warning("progress is not shown in Prefect: %s", error)
            self._next_update = now + PAUSE_AFTER_FAILURE_S
