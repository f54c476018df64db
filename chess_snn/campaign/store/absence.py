"""What is no longer in a campaign, in a line or two for whoever looks at the rest of it."""

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.quarantine import last_events, read_notes
from chess_snn.campaign.store.removals import read_removals
from chess_snn.types import Json


def absence_facts(folder: CampaignFolder) -> Json:
    """Counts: iterations whose games and generations that ``removed`` has, and damaged things.

    Raises:
        CorruptDataError: a note of it is damaged.
    """
    removed = [path for path in read_removals(folder) if not (folder.path / path).exists()]
    notes = read_notes(folder)
    return {
        "removed_iterations": sum(path.startswith("games/") for path in removed),
        "removed_generations": sum(path.startswith("checkpoints/") for path in removed),
        "set_aside": len({note.path for note in notes if note.event == "set aside"}),
        "made_again": len(last_events(notes, "made again")),
        "dropped": len(last_events(notes, "dropped")),
    }


def absence_notices(folder: CampaignFolder) -> list[str]:
    """What there is to say of it; mostly nothing.

    Raises:
        CorruptDataError: a note of it is damaged.
    """
    facts, notices = absence_facts(folder), []
    if facts["removed_iterations"] or facts["removed_generations"]:
        notices.append(
            f"Removed by `chess-snn gc`: the games of {facts['removed_iterations']:,} iterations, "
            f"and {facts['removed_generations']:,} generations. Figures of them stay."
        )
    if facts["set_aside"]:
        notices.append(
            f"Damaged and set aside: {facts['set_aside']:,} things, of which "
            f"{facts['made_again']:,} were made again and {facts['dropped']:,} dropped. Look: "
            f"chess-snn verify {folder.path}"
        )
    return notices
