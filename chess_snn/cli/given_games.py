"""Games that commands are told to learn from, as settings, and looked at with a bar."""

from pathlib import Path

from chess_snn.campaign import CampaignConfig
from chess_snn.campaign.configuration.loading import Setting
from chess_snn.campaign.stages.given_games import fix_given_games
from chess_snn.cli.console import work_bar


def games_setting(directory: Path | None) -> list[Setting]:
    """The setting for the folder of an option or argument; nothing where it is not given."""
    return [] if directory is None else [("supervised.games", str(directory))]


def check_given_games(config: CampaignConfig) -> CampaignConfig:
    """``config`` with its games fixed; see :func:`fix_given_games`."""
    if not config.supervised.games:
        return config
    with work_bar("looking at the games to learn from", "shards") as on_progress:
        return fix_given_games(config, on_progress)
