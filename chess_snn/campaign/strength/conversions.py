"""How well a generation plays out won positions, measured once an evaluation."""

from dataclasses import asdict
from pathlib import Path

from chess_snn.campaign.stages.networks import evaluator_of, game_of
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.plans import read_plan
from chess_snn.campaign.strength.matches import CONVERSION, event_of
from chess_snn.campaign.strength.reports import read_report, write_report
from chess_snn.evaluation import conversion_rate
from chess_snn.failpoints import failpoint
from chess_snn.search import make_search
from chess_snn.types import Json, Progress


def play_conversion(
    directory: Path, generation: int, *, num_threads: int = 1, worker: int = 0,
    on_progress: Progress | None = None,
) -> Json:
    """Let ``generation`` play out the suite of won positions, as it would in self-play.

    Returns:
        What came of it; it is kept, and not played again.
    """
    folder = CampaignFolder.open(directory)
    path = folder.match(event_of(generation), CONVERSION)
    if not path.exists():
        config, progress = folder.config, read_plan(folder, generation - 1).progress_first
        simulations = config.search.simulations(progress)
        evaluator = evaluator_of(folder, generation, num_threads=num_threads, worker=worker)
        search = make_search(
            game_of(folder), evaluator, config.search,
            simulations=simulations, num_games=config.evaluation.won_positions,
        )
        found = conversion_rate(
            game_of(folder), search,
            num_positions=config.evaluation.won_positions, on_progress=on_progress,
        )
        body = asdict(found) | {"rate": found.rate, "simulations": simulations}
        # NaN is not JSON.
        body["mean_plies_to_win"] = found.mean_plies_to_win if found.won else None
        failpoint("conversion.played")
        write_report(path, body)
    return read_report(path)
