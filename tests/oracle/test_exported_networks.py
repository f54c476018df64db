"""Exported networks in the libraries that read them: the same spikes, but for ties."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("nir")

from lively_networks import lively_network

from benchmarks.export import MOST_ROUNDING, compare_nir, compare_onnx
from benchmarks.harness import torch_threads
from benchmarks.nir_readers import (
    READERS,
    SpikeDifferences,
    expect,
    missing_packages,
    run_graph,
)
from benchmarks.random_data import random_positions
from chess_snn.campaign.models.exporting import Format, export_for_others
from chess_snn.campaign.models.references import find_model
from chess_snn.games import get_game
from chess_snn.known import SHIPPED, SHIPPED_CHESS
from chess_snn.nets import NetConfig, build_network, freeze
from chess_snn.nets.analysis.folded_layers import fold_layers

pytestmark = pytest.mark.oracle
SPEC = get_game("chess").spec
LEAKY = NetConfig(
    blocks=2, channels=12, target_readout=True, ticks=3, decay=0.6, threshold=0.7, value_hidden=9
)
FEW, MANY = 24, 1000
PAGE = Path(__file__).parents[2] / "docs" / "spikes.md"


@pytest.fixture(autouse=True)
def _one_thread():
    with torch_threads(1):
        yield


def skip_without(library: str) -> None:
    if missing := missing_packages(library):
        pytest.skip(f"not installed: pip install --no-deps {' '.join(missing)}")


@pytest.fixture(params=READERS)
def reader(request) -> str:
    skip_without(request.param)
    return request.param


@pytest.fixture(scope="module")
def smallest():
    """The smallest network of chess that is shipped: the others take minutes."""
    return find_model(f"{SHIPPED}chess-self-play").load(get_game("chess"))


@pytest.fixture(scope="module")
def strongest():
    return find_model(SHIPPED_CHESS).load(get_game("chess"))


def compare(network, reader, count, folder):
    export_for_others(network, folder / "nir", Format.NIR, {})
    found = compare_nir(network, random_positions(count), reader, folder / "nir")
    spikes = found.spikes
    assert spikes.spikes > 100 * count
    # A sum in another order may fall on the other side of a threshold, and its position goes on so.
    assert spikes.following <= found.off_positions * spikes.spikes / count
    assert spikes.farthest_tie < MOST_ROUNDING
    assert found.off_positions <= max(1, spikes.spikes // 1_000_000)
    assert found.largest_with_same_spikes < MOST_ROUNDING
    assert found.same_moves >= count - found.off_positions
    return found


@pytest.mark.parametrize("activation", ["lif", "ilif"])
def test_same_spikes_of_an_odd_network(reader, activation, tmp_path):
    compare(lively_network(SPEC, LEAKY.with_activation(activation)), reader, FEW, tmp_path)


def test_same_spikes_of_a_shipped_network(reader, smallest, tmp_path):
    compare(smallest, reader, FEW, tmp_path)


@pytest.mark.parametrize("activation", ["lif", "ilif", "relu"])
def test_the_same_moves_in_onnxruntime(activation, tmp_path):
    skip_without("onnxruntime")
    network = lively_network(SPEC, LEAKY.with_activation(activation))
    export_for_others(network, tmp_path / "onnx", Format.ONNX, {})
    found = compare_onnx(network, random_positions(FEW), tmp_path / "onnx")
    assert found.same_moves >= FEW - 1
    assert activation != "relu" or found.largest_difference < MOST_ROUNDING


@pytest.mark.parametrize("library", ["SpikingJelly", "snnTorch", "Norse", "onnxruntime"])
def test_the_recipes_of_the_documentation(library, smallest, tmp_path, monkeypatch):
    skip_without(library)
    export_for_others(smallest, tmp_path / "chess-nir", Format.NIR, {})
    export_for_others(smallest, tmp_path / "chess-onnx", Format.ONNX, {})
    monkeypatch.chdir(tmp_path)
    _, recipes = PAGE.read_text().split("**Planes, and a loop over the ticks,**")
    blocks = re.findall(r"```python\n(.*?)```", recipes, re.DOTALL)
    (own,) = (block for block in blocks[1:] if library.lower() in block)
    known: dict[str, object] = {}
    exec(compile(blocks[0] + own, str(PAGE), "exec"), known)
    with torch.inference_mode():
        expected = freeze(smallest, "fp32")(known["planes"]).policy_logits_BA
    torch.testing.assert_close(torch.as_tensor(known["logits"]), expected, atol=1e-4, rtol=0)


@pytest.mark.slow
def test_same_spikes_in_a_thousand_positions(reader, strongest, tmp_path):
    compare(strongest, reader, MANY, tmp_path)


@pytest.mark.slow
def test_onnxruntime_in_a_thousand_positions(strongest, tmp_path):
    skip_without("onnxruntime")
    export_for_others(strongest, tmp_path / "onnx", Format.ONNX, {})
    found = compare_onnx(strongest, random_positions(MANY), tmp_path / "onnx")
    assert found.same_moves >= 0.98 * MANY


@pytest.mark.parametrize("activation", ["lif", "ilif"])
def test_a_charge_exactly_at_the_threshold_fires(reader, activation, tmp_path):
    """Here every charge of the first neurons is the threshold, or that of two spikes."""
    network = build_network(SPEC, NetConfig(blocks=1, channels=4), seed=1).eval()
    network = build_network(SPEC, network.config.with_activation(activation), seed=1).eval()
    network.stem.conv.weight.data.zero_()
    network.stem.norm.bias.data.fill_(0.5 if activation == "lif" else 0.75)
    export_for_others(network, tmp_path / "nir", Format.NIR, {})
    planes = random_positions(2).tensor(network).contiguous()
    module = READERS[reader](tmp_path / "nir" / "policy.nir")
    found = run_graph(module, planes, network.config.ticks).spikes
    expected = expect(network, fold_layers(network), planes)
    first = expected.spikes["blocks.0.neurons1"]
    assert expected.distances["blocks.0.neurons1"][0].abs().max() == 0
    assert (first[0] == (1 if activation == "lif" else 2)).all()
    differences = SpikeDifferences()
    assert not differences.count(expected, found).any()
    assert differences.spikes > 0


def test_spikes_that_differ_are_counted_by_cause():
    """One neuron at the threshold falls otherwise, and two later spikes follow."""
    network = lively_network(SPEC, LEAKY)
    planes = random_positions(2).tensor(network).contiguous()
    expected = expect(network, fold_layers(network), planes)
    found = {name.replace(".", "_"): each.clone() for name, each in expected.spikes.items()}
    assert not SpikeDifferences().count(expected, found).any()
    found["blocks_0_neurons2"][1, 0, 5] = 1 - found["blocks_0_neurons2"][1, 0, 5]
    for tick in (1, 2):
        found["policy_neurons"][tick, 0, 3] = 1 - found["policy_neurons"][tick, 0, 3]
    differences = SpikeDifferences()
    assert differences.count(expected, found).tolist() == [True, False]
    assert (differences.ties, differences.following) == (1, 2)
    distance = expected.distances["blocks.0.neurons2"][1, 0, 5].item()
    assert np.isclose(differences.farthest_tie, distance)
