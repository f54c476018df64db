from pathlib import Path

import pytest
from talk import Gui

from chess_snn.cli.uci import load_chess
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, build_network
from chess_snn.training import Trainer, TrainingSettings, save_checkpoint
from chess_snn.uci import Options


def save_model(folder: Path, seed: int, config: NetConfig | None = None) -> Path:
    """An untrained network, stored as a campaign stores its generations."""
    game = get_game("chess")
    network = build_network(game.spec, config or NetConfig(blocks=1, channels=8), seed)
    save_checkpoint(folder, Trainer(game, network, TrainingSettings(), seed=seed), meta={})
    return folder


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "spiking", seed=1)


@pytest.fixture(scope="session")
def ordinary_model(tmp_path_factory) -> Path:
    config = NetConfig(blocks=1, channels=8).baseline()
    return save_model(tmp_path_factory.mktemp("models") / "ordinary", 2, config)


@pytest.fixture
def talk(model):
    """Begin a conversation with an engine in this process; all are closed at the end."""
    guis = []

    def begin(**options):
        defaults = {"model": str(model), "hash_mib": 16}
        guis.append(Gui(load_chess, Options(**defaults | options)))
        return guis[-1]

    yield begin
    for gui in guis:
        gui.session.close()
