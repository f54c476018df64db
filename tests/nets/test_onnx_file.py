"""ONNX files: onnxruntime gives the network's own logits."""

from dataclasses import replace

import numpy as np
import pytest
import torch

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from lively_networks import lively_network  # noqa: E402

from chess_snn.nets import NetConfig, build_network, freeze  # noqa: E402
from chess_snn.nets.analysis import onnx_file  # noqa: E402
from chess_snn.nets.analysis.folded_layers import fold_layers  # noqa: E402

LEAKY = NetConfig(blocks=2, channels=12, ticks=3, decay=0.6, threshold=0.7, value_hidden=9)
CONFIGS = {
    "leaky": LEAKY, "integer": LEAKY.with_activation("ilif"), "relu": LEAKY.baseline(),
    "planes and targets": replace(LEAKY, rule_planes=True, target_readout=True),
}


@pytest.fixture(scope="module", params=CONFIGS)
def config(request) -> NetConfig:
    return CONFIGS[request.param]


def test_onnxruntime_says_what_the_network_says(of_both_games, config, tmp_path):
    """Both policy heads; any batch."""
    network = lively_network(of_both_games.spec, config)
    onnx_file.write_network(tmp_path, fold_layers(network), {"ticks": config.ticks})
    session = onnxruntime.InferenceSession(tmp_path / onnx_file.FILE)
    seen = of_both_games.tensor()[:, : config.num_planes(of_both_games.spec)]
    for planes in (seen, seen[:1]):
        policy, value = session.run(None, {"planes": planes.contiguous().numpy()})
        with torch.inference_mode():
            expected = freeze(network, "fp32")(planes)
        # A spike at the threshold may fall otherwise; that position then differs.
        close = np.isclose(policy, expected.policy_logits_BA, atol=1e-4).all(1)
        close &= np.isclose(value, expected.value_logits_BV, atol=1e-4).all(1)
        assert close.mean() >= 0.97


def test_what_is_the_same_in_all_ticks_is_computed_once(positions, tmp_path):
    network = build_network(positions.spec, LEAKY, seed=1)
    facts = {"ticks": 3, "game": "chess"}
    onnx_file.write_network(tmp_path, fold_layers(network), facts)
    model = onnx.load(tmp_path / onnx_file.FILE)
    assert {prop.key: prop.value for prop in model.metadata_props} == {
        "ticks": "3", "game": "chess"
    }
    convolutions = [node for node in model.graph.node if node.op_type == "Conv"]
    # Stem and two readouts once; two in each of two blocks, the policy's, and the value's two.
    assert len(convolutions) == 3 + LEAKY.ticks * (2 * 2 + 1 + 2)
