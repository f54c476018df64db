"""The reporting task: write a campaign's page."""

from prefect import task

from chess_snn.campaign import CampaignFolder
from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.report.page import write_report


@task(name="report", task_run_name="report")
def report(folder: CampaignFolder) -> str | None:
    """Write the campaign's page into its folder; it is a view, so the campaign does without it.

    Returns:
        Why it could not be written; None where it was.
    """
    try:
        write_report(folder)
    except (CorruptDataError, UsageError) as error:
        return str(error)
    return None
