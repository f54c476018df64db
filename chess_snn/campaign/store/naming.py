"""Folders for campaigns without a given name."""

import os
from itertools import count
from pathlib import Path

from chess_snn.data.files import make_folder, sync_folder, writing

HOME_VARIABLE = "CHESS_SNN_HOME"


def claim_campaign_path(preset: str, parent: Path = Path("campaigns")) -> Path:
    """Make the first of ``campaigns/<preset>-001``, ``-002``, … that does not exist, and return it.

    Of several processes that do so at the same instant each gets one of its own.

    Raises:
        UsageError: ``parent`` cannot be written.
    """
    numbers = count(1)
    while True:
        path = parent / f"{preset}-{next(numbers):03d}"
        with writing(path):
            make_folder(parent)
            try:
                path.mkdir()
            except FileExistsError:
                continue
            sync_folder(parent)
            return path


def campaigns_home() -> Path:
    """Return the folder of campaigns that no terminal's working folder gives a place to.

    ``$CHESS_SNN_HOME/campaigns``; ``~/chess-snn/campaigns`` where that is not set.
    """
    return _home() / "campaigns"


def services_directory() -> Path:
    """Return the folder that campaigns of a home share: MLflow's store, data of `chess-snn up`.

    ``$CHESS_SNN_HOME/services``; ``~/chess-snn/services`` where that is not set.
    """
    return _home() / "services"


def _home() -> Path:
    home = os.environ.get(HOME_VARIABLE)
    return (Path(home) if home else Path.home() / "chess-snn").absolute()
