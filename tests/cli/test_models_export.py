"""`models export --format` for other libraries."""

import sys

import pytest
from stored_files import copy_campaign

from chess_snn.data import verify_folder
from chess_snn.known import SHIPPED_FOLDER
from chess_snn.nets import load_network, network_digest
from chess_snn.training import WEIGHTS

FILES = {"nir": {"policy.nir", "value.nir"}, "onnx": {"network.onnx"}}


@pytest.fixture(params=FILES)
def file_format(request) -> str:
    pytest.importorskip(request.param)
    return request.param


def test_a_shipped_network_and_a_file_of_weights(chess_snn, file_format, tmp_path):
    digest = network_digest(load_network(SHIPPED_FOLDER / "chess-small" / WEIGHTS))
    for source in ("shipped/chess-small", SHIPPED_FOLDER / "chess-small" / WEIGHTS):
        out = tmp_path / f"out {type(source).__name__}"
        done = chess_snn("models", "export", source, "--out", out, "--format", file_format)
        assert done.returncode == 0, done.stderr
        manifest = verify_folder(out)
        assert set(manifest.files) == FILES[file_format]
        assert manifest.meta["weights_digest"] == digest
        assert (manifest.meta["activation"], manifest.meta["ticks"]) == ("ilif", 1)
        assert manifest.meta["generation"] == 0


def test_a_campaign_s_network(chess_snn, file_format, tmp_path):
    folder = copy_campaign(tmp_path)
    done = chess_snn(
        "models", "export", f"{folder.path}@1", "--out", "one", "--format", file_format
    )
    assert done.returncode == 0, done.stderr
    meta = verify_folder(tmp_path / "one").meta
    assert (meta["campaign"], meta["generation"]) == (folder.name, 1)
    assert meta["weights_digest"] == network_digest(load_network(folder.checkpoint(1) / WEIGHTS))


def test_the_folder_must_be_new(refused, file_format, tmp_path):
    (tmp_path / "mine").mkdir()
    refused("models", "export", "shipped/chess", "--out", "mine", "--format", file_format)


@pytest.mark.parametrize("name", FILES)
def test_a_library_that_is_missing_is_named(refused, monkeypatch, tmp_path, name):
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"chess_snn.nets.analysis.{name}_file", raising=False)
    line = refused("models", "export", "shipped/chess", "--out", "new", "--format", name)
    assert "chess-snn[export]" in line
    assert not (tmp_path / "new").exists()
