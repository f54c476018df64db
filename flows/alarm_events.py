"""Alarms of a campaign as Prefect events, which automations can react to."""

from collections.abc import Sequence

from prefect.events import emit_event

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.viewing.alarms import Alarm

ALARM_EVENT = "chess-snn.alarm"
"""Begins the name of the event: ``chess-snn.alarm.draw-collapse``."""


def emit_alarms(folder: CampaignFolder, alarms: Sequence[Alarm]) -> None:
    """Emit an event for each alarm; inside a flow run, which Prefect adds as related.

    Prefect sends them from a thread of its own; a server that is away holds nothing up.
    """
    for alarm in alarms:
        emit_event(
            event=f"{ALARM_EVENT}.{alarm.name.replace(' ', '-')}",
            resource={
                "prefect.resource.id": f"chess-snn.campaign.{folder.campaign_id}",
                "prefect.resource.name": folder.name,
            },
            payload={
                "campaign": folder.name, "directory": str(folder.path), "alarm": alarm.name,
                "since_iteration": alarm.since_iteration, "saw": alarm.saw,
                "advice": alarm.advice,
            },
        )
