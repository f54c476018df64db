"""A campaign in the terminal that runs it: live bars, a line an iteration, a table at the end."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Group, RenderableType
from rich.live import Live as LivePicture

from chess_snn.campaign import CampaignFolder, Receipt
from chess_snn.campaign.strength.matches import read_final_matches
from chess_snn.campaign.viewing.alarms import find_alarms
from chess_snn.campaign.viewing.events import Event, Listener, StageProgress, WorkersProgress
from chess_snn.campaign.viewing.lines import NowAndThen, climb_line, event_lines, figure
from chess_snn.campaign.viewing.live import Live
from chess_snn.campaign.viewing.results import result_rows
from chess_snn.cli.campaign_tables import SHORT_COLUMNS, columns_of, matches_table, rows_table
from chess_snn.cli.console import console, print_message
from chess_snn.cli.dashboard import stage_bars, workers_table


@contextmanager
def campaign_terminal() -> Iterator[Listener]:
    """A listener that shows a campaign for the length of the block.

    On a terminal, bars of the stages and a table of the workers stay below the lines of what has
    happened; elsewhere their progress is a line now and then.
    """
    live, is_due = Live(), NowAndThen()

    def listen(event: Event) -> None:
        nonlocal live
        live = live.after(event)
        is_drawn = console.is_terminal and isinstance(event, StageProgress | WorkersProgress)
        if not is_drawn and is_due(event):
            for line in event_lines(event):
                print_message(line)

    def picture() -> RenderableType:
        return Group(stage_bars(live.stages), workers_table(live.workers))

    if console.is_terminal:
        with LivePicture(console=console, transient=True, get_renderable=picture):
            yield listen
    else:
        yield listen


def print_summary(folder: CampaignFolder, receipts: Sequence[Receipt]) -> None:
    """The finished iterations as a table, the newest matches as another, and the alarms."""
    if not receipts:
        return
    rows = result_rows(folder.config, receipts)
    columns = columns_of(folder.config, SHORT_COLUMNS)
    console.print(rows_table(f"campaign {folder.name}", rows, columns, lean=True))
    evaluated = [receipt for receipt in receipts if receipt.matches]
    if evaluated:
        title = f"generation {evaluated[-1].training.generation}"
        console.print(matches_table(title, evaluated[-1].matches))
        if (climb := evaluated[-1].climb) is not None:
            print_message(climb_line(climb))
    if gates := [receipt.promotion for receipt in receipts if receipt.promotion is not None]:
        print_message(f"The last candidate: {gates[-1]}.")
    if finals := read_final_matches(folder):
        console.print(matches_table("at the end of the campaign", finals))
    print_message(
        "Value loss on held-out games: "
        f"{figure(rows[0], 'holdout_value_loss_before', '.3f')} before the first training, "
        f"{figure(rows[-1], 'holdout_value_loss_after', '.3f')} after the last."
    )
    for alarm in find_alarms([receipt.metrics() for receipt in receipts]):
        print_message(f"ALARM {alarm}")
