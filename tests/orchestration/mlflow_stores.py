"""MLflow stores and model versions for tests."""

from pathlib import Path

import pytest

from chess_snn.campaign.models.versions import NetworkVersion
from chess_snn.campaign.strength.ratings import Strength
from chess_snn.nets import load_network, network_digest
from chess_snn.tasks.tracking import tracking_uri
from chess_snn.tasks.tracking.store import open_store, tracking_errors

STRENGTH = Strength("elo", "ladder 1", 16, 210.4, 150.0, 301.0, num_games=60)


def prepare_store(uri: str = "") -> str:
    """Make the store at ``uri``, by default that of the home; its URI."""
    uri = uri or tracking_uri()
    with tracking_errors(uri):
        open_store(uri)
    return uri


def make_home(home: Path) -> Path:
    """Make a home with an empty store, to be copied: creating one takes 2 s; its services."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        patch.setenv("CHESS_SNN_HOME", str(home))
        prepare_store()
    return home / "services"


def own_store(empty_store: Path, directory: Path, patch: pytest.MonkeyPatch) -> str:
    """The store of a home in the working folder ``directory``."""
    patch.delenv("MLFLOW_TRACKING_URI", raising=False)
    patch.setenv("CHESS_SNN_HOME", str(directory / "home"))
    patch.chdir(directory)
    services = directory / "home" / "services"
    services.mkdir(parents=True)
    (services / "mlflow.db").write_bytes((empty_store / "mlflow.db").read_bytes())
    return prepare_store()


def made_version(
    generation: int, weights: Path | None = None, **changes: object
) -> NetworkVersion:
    """The version of a network that no campaign has trained, and which ``weights`` has."""
    facts = {
        "campaign": "first light", "campaign_id": "4f0c", "game": "chess", "generation": generation,
        "digest": "" if weights is None else network_digest(load_network(weights)),
        "created": "2026-11-24T03:00:00+00:00", "size": "tiny",
        "shape": {"ticks": 2}, "activation": "lif", "ticks": 2, "precision": "fp32",
        "parameters": 108_861, "spike_rate": None, "simulations": 16, "score": None,
        "score_low": None, "score_high": None, "rating": None, "ladder_test": None,
        "strength": STRENGTH,
        "promotion": None, "is_champion": False, "is_removed": False, "window_shards": (),
        "window_positions": 0, "dataset": None, "dataset_digest": None, "provenance": {},
    }
    return NetworkVersion(**(facts | changes))
