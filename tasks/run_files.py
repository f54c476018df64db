"""The files that the MLflow run of a campaign has: settings, results, games, log."""

import shutil
from pathlib import Path
from typing import Final

from chess_snn.campaign import CampaignFolder, Receipt
from chess_snn.campaign.stages.networks import game_of
from chess_snn.campaign.store.collection import GameFilter, games_of_iteration
from chess_snn.campaign.store.folder import CONFIG_FILE
from chess_snn.campaign.strength.matches import read_final_matches
from chess_snn.campaign.viewing.recorded_games import to_pgn
from chess_snn.campaign.viewing.results import result_rows, results_csv, results_json
from chess_snn.errors import CorruptDataError

SAMPLE_GAMES: Final = 10
"""Of the newest iteration."""


def write_run_files(folder: CampaignFolder, receipts: list[Receipt], target: Path) -> None:
    """Write all of them into ``target``, an empty folder.

    Raises:
        CorruptDataError: a match at the end of the campaign is damaged.
        OSError: there is no room.
    """
    shutil.copy(folder.path / CONFIG_FILE, target)
    if folder.log_file.exists():
        shutil.copy(folder.log_file, target)
    rows = result_rows(folder.config, receipts)
    (target / "results.csv").write_text(results_csv(folder.config, rows))
    (target / "results.json").write_text(results_json(folder, rows, read_final_matches(folder)))
    if receipts and game_of(folder).spec.num_players == 2:  # PGN has white and black
        text = _sample_games(folder, receipts[-1].iteration)
        (target / "sample-games.pgn").write_text(text)


def _sample_games(folder: CampaignFolder, iteration: int) -> str:
    try:
        games = games_of_iteration(folder, iteration)
        wanted = games.games(GameFilter(limit=SAMPLE_GAMES))
        return "".join(to_pgn(games, game) for game in wanted)
    except CorruptDataError as error:
        # A comment of PGN. The campaign itself finds the damage and mends it.
        return f"; {error}\n"
