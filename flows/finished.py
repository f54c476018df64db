"""Record what Prefect and MLflow lack of a campaign that does not run."""

from collections.abc import Sequence

from prefect import get_run_logger

from chess_snn.campaign import CampaignFolder, campaign_lock, read_receipts
from chess_snn.campaign.viewing.events import Listener
from chess_snn.errors import CorruptDataError
from chess_snn.flows.context import close_stale_flow_runs
from chess_snn.flows.links import link_report
from chess_snn.flows.listeners import log_lines
from chess_snn.tasks import record
from chess_snn.tasks.progress import ProgressBoard
from chess_snn.tasks.stages import report
from chess_snn.tasks.tracking import TrackingError
from chess_snn.wording import counted


def record_at_rest(folder: CampaignFolder) -> int:
    """Record what MLflow lacks of a campaign that no process runs; how many iterations it lacked.

    Raises:
        CampaignError: another process runs it, and records it; or its lock cannot be written.
        TrackingError: the store is away.
    """
    with campaign_lock(folder):
        return record.record_at_rest(folder)


def record_finished(folder: CampaignFolder, listeners: Sequence[Listener]) -> bool:
    """Record in Prefect and MLflow what they lack of a finished campaign.

    Returns whether the report and MLflow have all of it.
    """
    board = ProgressBoard([*listeners, log_lines(get_run_logger())])
    board.message(f"{folder.path}: {counted(len(read_receipts(folder)), 'iteration')} finished")
    close_stale_flow_runs(folder.campaign_id)
    if (failure := report(folder.path)) is not None:  # anew: much may have happened
        board.message(f"the report is not written: {failure}")
    else:
        link_report(folder)
    is_shown = failure is None
    try:
        if missing := record.record_at_rest(folder):
            board.message(f"recorded {missing} of them in MLflow, which lacked them")
    except (TrackingError, CorruptDataError) as error:
        is_shown = False
        board.message(f"not recorded in MLflow yet: {error}")
    return is_shown
