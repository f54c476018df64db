"""Let a campaign last longer: one that has ended, is stopped, or runs on this machine."""

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.lock import campaign_lock
from chess_snn.campaign.store.plans import (
    S_PER_HOUR,
    Length,
    campaign_length,
    read_plans,
    write_extension,
)
from chess_snn.campaign.store.receipts import recorded_seconds
from chess_snn.campaign.viewing.live import WriterState, find_writer, is_reporting
from chess_snn.errors import CampaignError, CampaignLockedError, UsageError
from chess_snn.wording import counted


def extend_campaign(
    folder: CampaignFolder, *, iterations: int | None = None, hours: float | None = None
) -> bool:
    """Let the campaign last ``iterations`` or ``hours`` in all; one of them is given.

    Plans that are committed stay. Those to come divide the rest of its progress among what is left;
    see :func:`chess_snn.campaign.store.plans.next_plan`.

    Returns:
        Whether it is running, so that it finds the new length at its next iteration.

    Raises:
        UsageError: the new length is not above the present one, or both or none are given.
        CampaignError: it is running on another host.
        CorruptDataError: a plan or an earlier extension is damaged.
    """
    before = find_writer(folder)
    if before is not None and before.state is WriterState.ELSEWHERE and is_reporting(folder):
        raise _runs_elsewhere(folder, str(before))
    try:
        with campaign_lock(folder):
            _extend(folder, iterations, hours)
    except CampaignLockedError as error:
        writer = find_writer(folder)
        if writer is None or writer.state is not WriterState.RUNNING:
            raise _runs_elsewhere(folder, str(writer or error)) from error
        _extend(folder, iterations, hours)
        return True
    return False


def _extend(folder: CampaignFolder, iterations: int | None, hours: float | None) -> None:
    length, plans = _checked(folder, iterations, hours), read_plans(folder)
    progress = 0.0
    if plans:
        # By the clock, where the last iteration ends is a guess, but for the end of the campaign.
        is_known = not campaign_length(folder).hours or plans[-1].progress_last == 1.0
        progress = plans[-1].progress_last if is_known else plans[-1].progress_first
    write_extension(folder, length, progress)


def _checked(folder: CampaignFolder, iterations: int | None, hours: float | None) -> Length:
    now = campaign_length(folder)
    if (iterations is None) == (hours is None):
        raise UsageError("an extension has either --iterations or --hours; give one of them")
    if hours is not None:
        length = Length(folder.config.campaign.iterations, hours)
        done_s = now.hours * S_PER_HOUR or recorded_seconds(folder)
        if hours * S_PER_HOUR <= done_s:
            raise UsageError(
                f"--hours {hours:g} does not extend {folder.path}, which "
                + (f"lasts {now}" if now.hours else f"has run for {done_s / S_PER_HOUR:.2f} hours")
                + "; give the hours in all"
            )
        return length
    assert iterations is not None
    done = len(read_plans(folder)) if now.hours else now.iterations
    if iterations <= done:
        raise UsageError(
            f"--iterations {iterations} does not extend {folder.path}, which "
            + (f"has begun {counted(done, 'iteration')}" if now.hours else f"lasts {now}")
            + "; give the iterations in all"
        )
    return Length(iterations)


def _runs_elsewhere(folder: CampaignFolder, writer: str) -> CampaignError:
    return CampaignError(
        f"{folder.path} runs on another host ({writer}) and is not extended; extend it there, or "
        "stop it first"
    )
