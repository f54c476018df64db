"""Reports in the folder of a campaign's matches: won positions, and ladder tests."""

from dataclasses import asdict
from pathlib import Path
from typing import Final

from chess_snn.campaign.stages.networks import evaluator_of, game_of
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.match_facts import ConversionFacts, LadderTestFacts
from chess_snn.campaign.store.plans import read_plan
from chess_snn.campaign.store.typed_json import RecordFormat
from chess_snn.campaign.strength.match_schedule import CONVERSION, event_of
from chess_snn.data import StoredFormat, write_text
from chess_snn.evaluation.won_positions import conversion_rate
from chess_snn.failpoints import failpoint
from chess_snn.search import make_search
from chess_snn.types import Progress

_FORMAT: Final = StoredFormat("report", version=3, has_digest=True)


CONVERSION_REPORTS: Final = RecordFormat(ConversionFacts, _FORMAT)
LADDER_TEST_REPORTS: Final = RecordFormat(LadderTestFacts, _FORMAT)


def play_conversion(
    directory: Path, generation: int, *, num_threads: int = 1, on_progress: Progress | None = None
) -> ConversionFacts:
    """Let ``generation`` play out the suite of won positions.

    Its moves have as many simulations as those of the self-play that made it.

    Returns:
        The result, which is kept, and not played again.
    """
    folder = CampaignFolder.open(directory)
    path = folder.match(event_of(generation), CONVERSION)
    if not path.exists():
        config = folder.config
        progress = read_plan(folder, generation - 1).progress_first
        simulations = config.search.simulations(progress)
        evaluator = evaluator_of(folder, generation, num_threads=num_threads)
        search = make_search(
            game_of(folder), evaluator, config.search,
            simulations=simulations, num_games=config.evaluation.won_positions,
        )
        found = conversion_rate(
            game_of(folder), search,
            num_positions=config.evaluation.won_positions, on_progress=on_progress,
        )
        facts = ConversionFacts(**asdict(found), simulations=simulations)
        failpoint("conversion.played")
        write_text(path, CONVERSION_REPORTS.text(facts))
    return CONVERSION_REPORTS.read(path)
