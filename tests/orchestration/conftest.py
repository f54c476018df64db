"""Arrangements that tests of MLflow's stores copy."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory) -> Path:
    """The folder of a store that only copies are made of: creating one takes 2 s."""
    from mlflow_stores import make_home  # noqa: PLC0415 - it needs MLflow

    return make_home(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def weights(tmp_path_factory) -> Path:
    """The file of a network, which is only read."""
    from chess_snn.games import get_game  # noqa: PLC0415 - after the variables of tests/conftest.py
    from chess_snn.nets import build_network, net_config, save_network  # noqa: PLC0415

    path = tmp_path_factory.mktemp("checkpoint") / "weights.safetensors"
    save_network(path, build_network(get_game("chess").spec, net_config("tiny"), seed=3))
    return path
