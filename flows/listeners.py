"""Who hears of progress: the flow's log, a Prefect progress artifact, whoever starts the flow."""

import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from chess_snn.campaign import Receipt
from chess_snn.campaign.alarms import Alarm
from flows.progress_artifact import ProgressArtifact
from tasks.progress import Listener, StageProgress

_extra: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())

_LOG_PERIOD_S = 15.0


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let ``listener`` hear every campaign that runs in the block."""
    token = _extra.set((*_extra.get(), listener))
    try:
        yield
    finally:
        _extra.reset(token)


def extra_listeners() -> list[Listener]:
    """Those of the enclosing :func:`listening` blocks."""
    return list(_extra.get())


def describe(progress: StageProgress) -> str:
    """One line for people."""
    total = f"/{progress.total:,}" if progress.total else ""
    line = (
        f"iteration {progress.iteration} {progress.stage}: {progress.done:,}{total} "
        f"{progress.unit}, {progress.per_s:,.1f}/s"
    )
    left = progress.seconds_left
    return line if left is None else f"{line}, {left:,.0f} s left"


class LogListener:
    """Lines in the flow run's log."""

    def __init__(self, logger: logging.Logger | logging.LoggerAdapter[logging.Logger]) -> None:
        self._logger = logger
        self._next_line = 0.0

    def message(self, text: str) -> None:
        """Log it."""
        self._logger.info("%s", text)

    def stage(self, progress: StageProgress) -> None:
        """Log a line now and then."""
        now = time.monotonic()
        if now >= self._next_line:
            self._next_line = now + _LOG_PERIOD_S
            self._logger.info("%s", describe(progress))

    def iteration_finished(self, receipt: Receipt, alarms: Sequence[Alarm]) -> None:
        """Log the figures that matter, and each new alarm."""
        self._logger.info(
            "iteration %d, %.0f%% of the campaign: draw rate %.2f, held-out value loss %.3f, "
            "score %s%s",
            receipt.iteration, 100 * receipt.plan.progress_last, receipt.statistics.draw_rate,
            receipt.training.metrics.get("holdout_value_loss", math.nan),
            "none" if receipt.score is None else f"{receipt.score:.3f}",
            "" if receipt.promotion is None else f"; {receipt.promotion}",
        )
        for alarm in alarms:
            self._logger.warning("ALARM %s", alarm)


class ArtifactListener:
    """One progress artifact, for the Prefect UI."""

    def __init__(self) -> None:
        """Create it; only inside a flow run."""
        self._artifact = ProgressArtifact("iteration-progress")

    def message(self, text: str) -> None:
        """The log has it."""

    def stage(self, progress: StageProgress) -> None:
        """Update the artifact now and then, and when the stage is done."""
        self._artifact.show(progress.share, describe(progress), is_last=progress.has_ended)

    def iteration_finished(self, receipt: Receipt, alarms: Sequence[Alarm]) -> None:
        """The log has it."""
