"""Registered models are read by us and by MLflow, wherever the store is, and only if unchanged."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("mlflow")
pytest.importorskip("prefect")

import pandas as pd  # noqa: E402
from mlflow import pyfunc  # noqa: E402
from mlflow.tracking import MlflowClient  # noqa: E402
from mlflow_stores import made_version  # noqa: E402
from stored_shards import damage as flip_a_bit  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from chess_snn.campaign import CampaignFolder, load_config  # noqa: E402
from chess_snn.campaign.models.model import Model  # noqa: E402
from chess_snn.campaign.models.references import find_model  # noqa: E402
from chess_snn.campaign.models.starting import find_start  # noqa: E402
from chess_snn.cli.orchestration import registered_versions  # noqa: E402
from chess_snn.cli.registry import app  # noqa: E402
from chess_snn.data import verify_folder  # noqa: E402
from chess_snn.errors import CorruptDataError, UsageError  # noqa: E402
from chess_snn.flows.server_processes import HOST, running_server  # noqa: E402
from chess_snn.flows.servers import mlflow_spec  # noqa: E402
from chess_snn.games import get_game  # noqa: E402
from chess_snn.nets import build_network, net_config, network_digest, save_network  # noqa: E402
from chess_snn.ports import free_port  # noqa: E402
from chess_snn.tasks.tracking import TrackingError, fetching, local_tracking_uri  # noqa: E402
from chess_snn.tasks.tracking.fetching import fetch_model  # noqa: E402
from chess_snn.tasks.tracking.recorder import CampaignTracker  # noqa: E402

CONFIG = load_config(
    settings=["net.size=tiny", "search.simulations_first=3", "net.precision=fp32"]
)
CHAMPION = "models:/chess-snn@champion"
START_FEN = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"


def save_weights(path: Path, seed: int) -> str:
    """Write a network; its digest."""
    network = build_network(get_game("chess").spec, net_config("tiny"), seed=seed)
    save_network(path, network)
    return network_digest(network)


def register(uri: str, directory: Path, seed: int) -> str:
    """Record a campaign with one network, the champion; its digest."""
    folder = CampaignFolder.create(directory / f"campaign-{seed}", CONFIG)
    weights = directory / "weights.safetensors"
    digest = save_weights(weights, seed)
    tracker = CampaignTracker(uri, folder)
    tracker.record_iteration(0, {"train/loss": 1.0}, made_version(1, weights), weights)
    tracker.promote(1)
    return digest


@pytest.fixture(scope="module")
def registered(tmp_path_factory) -> tuple[Path, str]:
    """A home with one version, of which only copies are used, and the digest of its network."""
    directory = tmp_path_factory.mktemp("registered")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        services = directory / "home" / "services"
        return directory / "home", register(local_tracking_uri(services), directory, seed=3)


@pytest.fixture
def home(registered, tmp_path, monkeypatch) -> Path:
    """The home at another place than where it was made, and an empty cache of models."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(fetching, "cache_root", lambda: tmp_path / "cache")
    monkeypatch.setenv("CHESS_SNN_HOME", str(tmp_path / "moved"))
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(registered[0], tmp_path / "moved"))


@pytest.fixture
def digest(registered) -> str:
    return registered[1]


def store_of(home: Path) -> str:
    return local_tracking_uri(home / "services")


def client_of(home: Path) -> MlflowClient:
    return MlflowClient(tracking_uri=store_of(home), registry_uri=store_of(home))


def stored_weights(home: Path) -> Path:
    (path,) = (home / "services" / "mlartifacts").rglob("weights.safetensors")
    return path


def fetched(address: str = CHAMPION) -> Model:
    return find_model(address, fetch_model)


def digest_of(model: Model) -> str:
    return network_digest(model.load(get_game("chess")))


def best_move(uri: str, address: str) -> str:
    """The move of the model as MLflow's own client loads it, by the store's address alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", uri)
        answer, = pyfunc.load_model(address).predict(pd.DataFrame({"fen": [START_FEN]}))
    move: str = answer["best_move"]
    return move


def test_a_version_is_read_with_its_settings_after_the_home_was_moved(home, digest):
    for address in (CHAMPION, "models:/chess-snn/1"):
        model = fetched(address)
        assert (model.label, model.generation, model.precision) == (address, 1, "fp32")
        assert model.search == CONFIG.search
        assert digest_of(model) == digest
    start = find_start(CHAMPION, fetch_model)
    assert start.origin.weights_digest == digest
    assert start.load_config("cpu").net == CONFIG.net


@pytest.mark.slow
def test_mlflow_loads_a_version_by_the_address_of_the_moved_database(home):
    version = client_of(home).get_model_version("chess-snn", "1")
    assert "/" not in version.source.removeprefix("mlflow-artifacts:/").partition("/")[0]
    assert best_move(store_of(home), CHAMPION) == best_move(store_of(home), "models:/chess-snn/1")


def test_a_version_with_the_absolute_place_of_an_earlier_commit_is_read_after_a_move(home, digest):
    with closing(sqlite3.connect(home / "services" / "mlflow.db")) as connection, connection:
        for column in ("source", "storage_location"):
            connection.execute(
                f"UPDATE model_versions SET {column} = "
                f"replace({column}, 'mlflow-artifacts:', 'file:///old/home/services/mlartifacts')"
            )
    assert client_of(home).get_model_version("chess-snn", "1").source.startswith("file:///old/")
    assert digest_of(fetched()) == digest


@pytest.mark.slow
def test_versions_of_a_server_and_of_a_file_are_read_with_and_without_a_server(home, tmp_path):
    def served(port: int):
        return running_server(
            mlflow_spec(tmp_path, port, store_of(home)), start_timeout_s=200.0
        )

    with served(free_port()) as server:
        register(server, tmp_path, seed=4)
    addresses = [f"models:/chess-snn/{number}" for number in (1, 2)]
    sources = [client_of(home).get_model_version("chess-snn", str(n)).source for n in (1, 2)]
    assert all(source.startswith("mlflow-artifacts:/") for source in sources)
    alone = [(digest_of(fetched(a)), best_move(store_of(home), a)) for a in addresses]
    assert len(set(alone)) == 2
    with served(free_port()) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", server)
        patch.setattr(fetching, "cache_root", lambda: tmp_path / "another cache")
        assert [(digest_of(fetched(a)), best_move(server, a)) for a in addresses] == alone


def test_a_version_copied_to_another_model_is_read_like_the_first(home, digest):
    client = client_of(home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", store_of(home))
        client.copy_model_version("models:/chess-snn/1", "production")
    assert digest_of(fetched("models:/production/1")) == digest


@pytest.mark.parametrize("damage", ["a bit", "other weights", "noise"])
def test_weights_that_are_not_those_registered_are_refused_bug(home, damage):
    weights = stored_weights(home)
    if damage == "a bit":
        flip_a_bit(weights)
    elif damage == "noise":
        weights.write_bytes(b"noise")
    else:
        save_weights(weights, seed=7)
    with pytest.raises(CorruptDataError, match="version 1 of chess-snn"):
        fetched()
    assert not list(home.parent.glob("cache/models/*")), "nothing is kept"
    if damage != "noise":
        with pytest.raises(CorruptDataError):
            best_move(store_of(home), CHAMPION)


@pytest.mark.parametrize("damage", ["a bit", "settings", "another model"])
def test_a_damaged_model_in_the_cache_is_fetched_again_bug(home, digest, tmp_path, damage):
    kept = fetched().weights.parent
    if damage == "a bit":
        flip_a_bit(kept / "weights.safetensors")
    elif damage == "settings":
        text = (kept / "model.toml").read_text()
        (kept / "model.toml").write_text(text.replace("simulations_first = 3",
                                                      "simulations_first = 4"))
    else:
        other = tmp_path / "other"
        other.mkdir()
        register(store_of(home), other, seed=5)
        shutil.rmtree(kept)
        shutil.copytree(fetched("models:/chess-snn/2").weights.parent, kept)
    model = fetched("models:/chess-snn/1")
    assert model.weights.parent == kept
    assert digest_of(model) == digest
    assert model.search == CONFIG.search
    verify_folder(kept)


def test_a_damaged_model_in_the_cache_is_not_used_where_the_files_are_gone(home):
    kept = fetched().weights
    shutil.rmtree(home / "services" / "mlartifacts")
    assert fetched().weights == kept, "it is whole"
    flip_a_bit(kept)
    with pytest.raises(TrackingError, match="version 1 of chess-snn"):
        fetched()


@pytest.mark.parametrize("address", [
    "models:/chess-snn@nobody", "models:/chess-snn/99", "models:/other/1", "models:/chess-snn",
])
def test_what_is_not_registered_is_named(home, address):
    with pytest.raises(UsageError, match=address):
        fetched(address)


def test_a_version_of_another_program_is_refused(home):
    client = client_of(home)
    client.create_registered_model("theirs")
    run = client.get_model_version("chess-snn", "1").run_id
    client.create_model_version("theirs", source=f"file://{home}/theirs", run_id=run)
    with pytest.raises(CorruptDataError, match="theirs"):
        fetched("models:/theirs/1")


@pytest.mark.slow
def test_a_registry_that_is_away_is_named(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://{HOST}:{free_port()}")
    with pytest.raises(TrackingError, match="http://"):
        fetched()


def test_a_store_that_is_not_where_it_is_looked_for_is_named(home, tmp_path, monkeypatch):
    for name, value in (
        ("CHESS_SNN_HOME", str(tmp_path / "nothing")),
        ("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/nothing/mlflow.db"),
    ):
        monkeypatch.setenv(name, value)
        with pytest.raises(TrackingError, match=f"{tmp_path}/nothing"):
            fetched()
    assert not (tmp_path / "nothing").exists()


@contextmanager
def locked(home: Path) -> Iterator[None]:
    with closing(sqlite3.connect(home / "services" / "mlflow.db")) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield


@pytest.mark.slow  # SQLite waits five seconds
def test_a_store_that_another_process_has_locked_is_named(home):
    with locked(home), pytest.raises(TrackingError):
        fetched()
    fetched()


def test_the_list_of_versions_begins_with_the_aliases(home):
    champion, *others = registered_versions("chess", None)[1:]
    assert champion == CHAMPION
    assert others[-1] == "models:/chess-snn/1"
    assert registered_versions("2048", None) == registered_versions("chess", "nothing") == []


def test_the_command_lists_what_is_registered(home):
    store, client = store_of(home), client_of(home)
    for alias in ("champion", "favourite"):
        client.set_registered_model_alias("chess-snn", alias, "1")
    (row,) = fetching.registered_models(store)
    campaign = row["campaign"]
    assert (row["address"], row["generation"]) == ("models:/chess-snn/1", "1")
    assert set(row["aliases"]) >= {"champion", "favourite", "candidate"}

    as_json = CliRunner().invoke(app, ["list", "--json"])
    assert (as_json.exit_code, json.loads(as_json.stdout)) == (0, [row])
    table = CliRunner().invoke(app, ["list"])
    assert (table.exit_code, table.stderr) == (0, "")
    for text in ("models:/chess-snn/1", "favourite", campaign, row["strength"]):
        assert text in table.stdout


def test_of_more_versions_the_newest_are_listed_and_those_with_an_alias(home, monkeypatch):
    client = client_of(home)
    source = client.get_model_version("chess-snn", "1").source
    for _ in range(3):
        client.create_model_version("chess-snn", source)
    client.create_registered_model("chess-snn-2048")
    monkeypatch.setattr(fetching, "_MOST_LISTED", 2)
    rows = fetching.registered_models(store_of(home))
    assert [row["address"].rpartition("/")[2] for row in rows] == ["4", "3", "1"]
    assert rows[0] | {"address": ""} == {
        "address": "", "aliases": [], "campaign": "", "generation": "", "strength": "",
    }


def test_without_a_store_the_list_says_what_registers(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("CHESS_SNN_HOME", str(tmp_path))
    told = CliRunner().invoke(app, ["list", "--json"])
    assert (told.exit_code, json.loads(told.stdout)) == (0, [])
    assert "models list CAMPAIGN" in told.stderr
    assert not list(tmp_path.iterdir()), "nothing is made"
