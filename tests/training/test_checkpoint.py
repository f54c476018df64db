"""Checkpoints: going on equals not having stopped, and damage is refused."""

import json
import pickle

import pytest
import torch
from safetensors import safe_open

from chess_snn.data import read_manifest, staged_folder
from chess_snn.errors import CorruptDataError, UnknownVersionError
from chess_snn.nets import load_network, network_digest
from chess_snn.training import (
    WEIGHTS,
    IterationPlan,
    Trainer,
    TrainingSettings,
    load_trainer,
    save_checkpoint,
)

FILES = ["MANIFEST.json", "optimizer.safetensors", "trainer.json", "weights.safetensors"]
PLAN = IterationPlan(num_steps=8, progress_first=1 / 3, progress_last=2 / 3)


@pytest.fixture
def trained(new_trainer, window):
    trainer = new_trainer()
    trainer.begin_iteration(1)
    trainer.run(window, PLAN, stop_at=3)
    return trainer


@pytest.fixture(scope="module")
def saved(new_trainer, window, tmp_path_factory):
    """A committed checkpoint, to be copied before it is harmed."""
    trainer = new_trainer()
    trainer.run(window, PLAN, stop_at=2)
    folder = tmp_path_factory.mktemp("checkpoints") / "gen-000001"
    save_checkpoint(folder, trainer, {"generation": 1})
    return folder


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(("precision", "share"), [("fp32", 0.7), ("bf16", 0.0)])
@pytest.mark.parametrize(
    "stop_at", [pytest.param(0, marks=pytest.mark.slow), 1, pytest.param(5, marks=pytest.mark.slow)]
)
def test_resumed_training_equals_training_that_never_stopped(
    new_trainer, searched_window, game, tmp_path, assert_same_trainers, precision, stop_at, share
):
    window = searched_window
    whole = new_trainer(precision=precision, surprise_share=share)
    whole.begin_iteration(1)
    whole.run(window, PLAN)

    stopped = new_trainer(precision=precision, surprise_share=share)
    stopped.begin_iteration(1)
    stopped.run(window, PLAN, stop_at=stop_at)
    save_checkpoint(tmp_path / "gen", stopped, {})
    resumed = load_trainer(tmp_path / "gen", game)
    assert_same_trainers(resumed, stopped)
    report = resumed.run(window, PLAN)
    assert report.steps == PLAN.num_steps - stop_at
    assert_same_trainers(resumed, whole)


def test_the_next_iteration_goes_on_from_a_checkpoint(
    trained, window, game, tmp_path, assert_same_trainers
):
    save_checkpoint(tmp_path / "gen", trained, {})
    resumed = load_trainer(tmp_path / "gen", game)
    plan = IterationPlan(num_steps=4, progress_first=2 / 3, progress_last=1.0)
    for trainer in (trained, resumed):
        trainer.begin_iteration(2)
        trainer.run(window, plan)
    assert_same_trainers(resumed, trained)


def test_settings_and_shape_come_from_the_checkpoint(game, tiny_network, tmp_path):
    settings = TrainingSettings(batch_size=64, value_weight=0.1, precision="fp32")
    trainer = Trainer(game, tiny_network(channels=4, ticks=3), settings, seed=2**63 + 5)
    save_checkpoint(tmp_path / "gen", trainer, {})
    loaded = load_trainer(tmp_path / "gen", game)
    assert loaded.settings == settings
    assert loaded.seed == 2**63 + 5
    assert loaded.network.config == trainer.network.config


def test_a_checkpoint_holds_safetensors_and_json_and_no_pickle(saved):
    assert names_in(saved) == FILES
    for path in saved.iterdir():
        if path.suffix == ".json":
            assert isinstance(json.loads(path.read_text()), dict)
        else:
            with safe_open(path, framework="pt") as file:
                assert list(file.keys())
        with pytest.raises((pickle.UnpicklingError, ValueError, KeyError, EOFError)):
            pickle.loads(path.read_bytes())


def test_manifest_names_the_weights(trained, tmp_path):
    manifest = save_checkpoint(tmp_path / "gen", trained, {"generation": 4})
    assert manifest.kind == "checkpoint"
    assert manifest.meta == {
        "generation": 4, "checkpoint_version": 1,
        "weights_digest": network_digest(trained.network),
    }
    assert read_manifest(tmp_path / "gen") == manifest
    stored = load_network(tmp_path / "gen" / WEIGHTS)
    assert network_digest(stored) == manifest.meta["weights_digest"]


def test_equal_trainers_are_equal_bytes_bug(trained, tmp_path):
    """Metadata of the weights lay in random order."""
    one, other = (
        save_checkpoint(tmp_path / name, trained, {"generation": 4}) for name in ("one", "other")
    )
    assert sorted(one.files) == FILES[1:]
    assert one.files == other.files
    assert one.meta == other.meta


def test_a_second_save_returns_what_is_committed(trained, window, tmp_path):
    folder = tmp_path / "gen"
    first = save_checkpoint(folder, trained, {"generation": 1})
    content = {path.name: path.read_bytes() for path in folder.iterdir()}
    trained.run(window, PLAN)
    assert save_checkpoint(folder, trained, {"generation": 9}) == first
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == content
    assert names_in(tmp_path) == ["gen"]  # nothing temporary is left


def recommit(source, target, replace):
    """Commit the files of ``source`` anew under a valid manifest, some with other bytes."""
    with staged_folder(target) as stage:
        for name in FILES[1:]:
            content = replace[name] if name in replace else (source / name).read_bytes()
            (stage.path / name).write_bytes(content)
        stage.commit(kind="checkpoint", meta={"checkpoint_version": 1})
    return target


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.pop("seed"),
        lambda state: state["settings"].update(momentum=0.9),
        lambda state: state["settings"].update(precision="fp16"),
        lambda state: state["sampling_rng"].update(bit_generator="MT19937"),
    ],
    ids=["seed", "unknown setting", "fp16", "other generator"],
)
def test_a_state_of_another_version_is_refused(saved, game, tmp_path, change):
    state = json.loads((saved / "trainer.json").read_text())
    change(state)
    folder = recommit(saved, tmp_path / "gen", {"trainer.json": json.dumps(state).encode()})
    with pytest.raises(UnknownVersionError):
        load_trainer(folder, game)


def test_an_optimizer_of_another_network_is_refused(saved, game, window, tiny_network, tmp_path):
    other = Trainer(game, tiny_network(channels=4), TrainingSettings(batch_size=8), seed=0)
    other.run(window, IterationPlan(1, 0.0, 1.0))
    save_checkpoint(tmp_path / "other", other, {})
    content = (tmp_path / "other" / "optimizer.safetensors").read_bytes()
    folder = recommit(saved, tmp_path / "gen", {"optimizer.safetensors": content})
    with pytest.raises(CorruptDataError):
        load_trainer(folder, game)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_resumed_on_a_gpu_training_goes_on(saved, game, window):
    trainer = load_trainer(saved, game, "cuda")
    for state in trainer.optimizer.state.values():
        assert {tensor.device.type for tensor in state.values()} == {"cuda"}
    trainer.run(window, PLAN, stop_at=4)
    steps = {state["step"].item() for state in trainer.optimizer.state.values()}
    assert steps == {4.0}
