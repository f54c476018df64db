"""Files of a registered model: weights that cannot be run, and our code by name."""

import importlib
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("mlflow")

import pandas as pd  # noqa: E402
from mlflow import pyfunc  # noqa: E402
from mlflow.models import Model  # noqa: E402

from chess_snn.campaign import load_config  # noqa: E402
from chess_snn.campaign.models.exporting import commit_model  # noqa: E402
from chess_snn.games import get_game  # noqa: E402
from chess_snn.nets import NetConfig, build_network, network_digest, save_network  # noqa: E402
from chess_snn.tasks.tracking.registry import NETWORK_FOLDER, SERVED_MODEL, save_model  # noqa: E402

GAME = get_game("chess")
START = GAME.initial_states(np.zeros(1, np.uint64))[0]
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    weights = folder / "weights.safetensors"
    network = build_network(GAME.spec, NetConfig(1, 8), seed=1)
    save_network(weights, network)
    config = load_config(settings=["search.kind=puct"])
    commit_model(folder / NETWORK_FOLDER, weights, config, {
        "generation": 1, "digest": network_digest(network),
    })
    save_model(folder / "stored", folder / NETWORK_FOLDER, GAME.format_state(START), Model())
    return folder / "stored"


def test_its_code_is_ours_word_for_word_and_mlflow_is_told_to_unpickle_nothing(stored):
    assert (stored / "served_model.py").read_bytes() == SERVED_MODEL.read_bytes()
    flavors = Model.load(str(stored)).flavors
    assert flavors.keys() == {"python_function"}
    flavor = flavors["python_function"]
    assert flavor["loader_module"] == "mlflow.pyfunc.loaders.code_model"
    assert Path(flavor["model_code_path"]).name == "served_model.py"
    assert "python_model" not in flavor, "that would name a pickle"


def test_it_searches_with_the_settings_it_was_stored_with(stored):
    positions = pd.DataFrame({"fen": [GAME.format_state(START)]})
    answer, = pyfunc.load_model(str(stored)).predict(positions, params={"simulations": 8})
    visits = 8 * np.array(list(answer["policy"].values()))
    assert (visits == visits.round()).all(), "PUCT recommends shares of its visits"


def test_the_recipe_of_serving_listens_on_loopback():
    cli = importlib.import_module("mlflow.models.cli")
    host = next(option for option in cli.serve.params if option.name == "host")
    assert host.default == "127.0.0.1"
    recipes = [
        line for path in (*DOCS.rglob("*.md"), DOCS.parent / "README.md")
        for line in path.read_text().splitlines() if "mlflow models serve" in line
    ]
    assert recipes
    assert not [line for line in recipes if "--host" in line or " -h " in line]
