"""``chess-snn report``: a campaign as one HTML page."""

from pathlib import Path
from typing import Annotated

from chess_snn.campaign import CampaignFolder
from chess_snn.cli.console import print_message
from chess_snn.cli.options import CampaignArgument, output_option
from chess_snn.report.page import write_report


def report_command(
    directory: CampaignArgument,
    out: Annotated[
        Path | None,
        output_option("Write to this file; by default report.html in the campaign's folder."),
    ] = None,
) -> None:
    """Write a campaign as one HTML file: curves, tables, games on a board, spikes and costs.

    The file needs no network and no other file, and can be sent to anyone. A campaign writes it at
    its end; write it earlier for one that is still running or was stopped.

    chess-snn report campaigns/cpu-001 --out report.html
    """
    print_message(f"Written: {write_report(CampaignFolder.open(directory), out)}")
