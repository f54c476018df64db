"""The networks that commands take: those of :mod:`chess_snn.campaign.models.references`."""

from collections.abc import Iterator
from pathlib import Path

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.configuration.settings import NetworkSettings
from chess_snn.campaign.models import references
from chess_snn.campaign.models.references import (
    Model,
    generations_there,
    model_of_campaign,
)
from chess_snn.campaign.store.folder import CONFIG_FILE
from chess_snn.campaign.store.naming import campaigns_home
from chess_snn.cli.console import print_message
from chess_snn.cli.one_game import DEFAULT_GAME, check_game
from chess_snn.cli.orchestration import load_flows
from chess_snn.errors import ChessSnnError
from chess_snn.search import SearchSettings


def find_model(text: str, game: str | None = None) -> Model:
    """The model that ``text`` names; a registered one is fetched.

    Args:
        text: see ``KNOWN_MODELS``.
        game: name of the game that it must play; None: any.

    Raises:
        UsageError, ChessSnnError: as :func:`chess_snn.campaign.models.references.find_model`; or
            it plays another game.
    """
    model = references.find_model(text, fetch_model)
    if game is not None and model.game is not None:
        check_game(model.label, model.game, game)
    return model


def fetch_model(address: str) -> Path:
    """The folder of a registered model; see :func:`flows.registry.fetch_model`."""
    folder: Path = load_flows("registry").fetch_model(address)
    return folder


def newest_or_untrained(game: str = DEFAULT_GAME) -> Model:
    """The newest network of ``game`` in ``./campaigns`` and in the user's; else an untrained one.

    The user's campaigns are those of :func:`chess_snn.campaign.store.naming.campaigns_home`.
    """
    checkpoints = [
        (folder.checkpoint(generation).stat().st_mtime, path, generation)
        for path, folder in _campaigns() if folder.config.campaign.game == game
        for generation in generations_there(folder)[-1:]
    ]
    if checkpoints:
        _, path, generation = max(checkpoints)
        return model_of_campaign(path, generation)
    return Model("untrained", None, NetworkSettings().precision, SearchSettings())


def _campaigns() -> Iterator[tuple[Path, CampaignFolder]]:
    for parent in dict.fromkeys((Path("campaigns"), campaigns_home())):
        for config in sorted(parent.glob(f"*/{CONFIG_FILE}")):
            try:
                folder = CampaignFolder.open(config.parent)
            except ChessSnnError as error:
                print_message(f"left out: {error}")
                continue
            yield config.parent, folder
