"""Who hears of progress: the flow's log, a Prefect artifact, a file, whoever starts the flow."""

import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path

from chess_snn.campaign import CampaignFolder, Receipt
from chess_snn.campaign.viewing.alarms import Alarm
from chess_snn.campaign.viewing.live import PERIOD_S, Live, WorkerProgress, summary, write_live
from chess_snn.errors import UsageError
from flows.progress_artifact import ProgressArtifact
from tasks.progress import Listener, StageProgress

_logger = logging.getLogger(__name__)

_extra: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())

_LOG_PERIOD_S = 15.0
_WORKERS_PERIOD_S = 60.0
_MOST_LINES = 16


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
        self._next_workers = time.monotonic() + _WORKERS_PERIOD_S

    def message(self, text: str) -> None:
        """Log it."""
        self._logger.info("%s", text)

    def stage(self, progress: StageProgress) -> None:
        """Log a line now and then."""
        now = time.monotonic()
        if now >= self._next_line:
            self._next_line = now + _LOG_PERIOD_S
            self._logger.info("%s", describe(progress))

    def workers(self, workers: Sequence[WorkerProgress]) -> None:
        """Log a line of all together, and of each where they are few, now and then."""
        now = time.monotonic()
        if now < self._next_workers or not workers:
            return
        self._next_workers = now + _WORKERS_PERIOD_S
        self._logger.info("%s", summary(workers))
        for worker in workers if len(workers) <= _MOST_LINES else ():
            self._logger.info("%s", worker)

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


def campaign_log(folder: CampaignFolder) -> logging.Logger:
    """A logger that appends to the campaign's log file: a line a message, with its time."""
    logger = logging.Logger(f"campaign {folder.campaign_id}")
    logger.addHandler(_LogFile(folder.log_file))
    return logger


class _LogFile(logging.Handler):
    """Never fails: a full disk must not end the campaign for the sake of its log."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._has_warned = False

    def emit(self, record: logging.LogRecord) -> None:
        """Append a line."""
        time_s = datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="seconds")
        line = " ".join(record.getMessage().split("\n"))
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{time_s} {line}\n")
        except OSError as error:
            if not self._has_warned:
                _logger.warning("%s lacks lines: %s", self._path, error.strerror)
            self._has_warned = True


class ArtifactListener:
    """One progress artifact, for the Prefect UI: a stage, and under it the workers."""

    def __init__(self) -> None:
        """Create it; only inside a flow run."""
        self._artifact = ProgressArtifact("iteration-progress")
        self._workers = ""

    def message(self, text: str) -> None:
        """The log has it."""

    def stage(self, progress: StageProgress) -> None:
        """Update the artifact now and then, and when the stage is done."""
        text = f"{describe(progress)}{self._workers}"
        self._artifact.show(progress.share, text, is_last=progress.has_ended)

    def workers(self, workers: Sequence[WorkerProgress]) -> None:
        """Keep it for the next update."""
        lines = [summary(workers), *map(str, workers[:_MOST_LINES])] if workers else []
        self._workers = "".join(f"\n\n{line}" for line in lines)

    def iteration_finished(self, receipt: Receipt, alarms: Sequence[Alarm]) -> None:
        """The log has it."""


class LiveListener:
    """A file for `chess-snn watch`, among the campaign's services."""

    def __init__(self, folder: CampaignFolder) -> None:
        self._folder = folder
        self._stages: dict[tuple[int, str], str] = {}
        self._next_s = 0.0

    def message(self, text: str) -> None:
        """The log has it."""

    def stage(self, progress: StageProgress) -> None:
        """Keep it for the next writing."""
        key = (progress.iteration, progress.stage)
        if progress.has_ended:
            self._stages.pop(key, None)
        else:
            self._stages[key] = describe(progress)

    def workers(self, workers: Sequence[WorkerProgress]) -> None:
        """Write now and then."""
        now = time.monotonic()
        if now < self._next_s:
            return
        self._next_s = now + PERIOD_S
        try:
            write_live(self._folder, Live(tuple(self._stages.values()), tuple(workers)))
        except UsageError as error:
            # A view may lag; what cannot be written for good stops the campaign elsewhere.
            _logger.warning("workers are not shown by chess-snn watch: %s", error)

    def iteration_finished(self, receipt: Receipt, alarms: Sequence[Alarm]) -> None:
        """The receipt has it."""
