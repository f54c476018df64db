"""NIR files: the graph that is written, and networks that NIR cannot have."""

from dataclasses import replace

import numpy as np
import pytest

nir = pytest.importorskip("nir")

from chess_snn.errors import ConfigError  # noqa: E402
from chess_snn.nets import NetConfig, build_network  # noqa: E402
from chess_snn.nets.analysis import nir_file  # noqa: E402
from chess_snn.nets.analysis.folded_layers import fold_layers  # noqa: E402

LEAKY = NetConfig(blocks=2, channels=6, ticks=3, value_hidden=5)
INTEGER = replace(LEAKY.with_activation("ilif"), levels=3)


def graph_of(spec, config, head, folder):
    layers = fold_layers(build_network(spec, config, seed=1))
    nir_file.write_network(folder, layers, {"ticks": config.ticks, "game": spec.name})
    return nir.read(folder / f"{head}.nir")


def sources(graph, name):
    return {source for source, target in graph.edges if target == name}


@pytest.mark.parametrize("config", [LEAKY, INTEGER], ids=["leaky", "integer"])
@pytest.mark.parametrize("head", ["policy", "value"])
def test_convolutions_see_spikes_and_neurons_see_currents(spec, config, head, tmp_path):
    """Types are checked by nir as it reads."""
    graph = graph_of(spec, config, head, tmp_path)
    assert graph.metadata == {"ticks": config.ticks, "game": spec.name}
    assert set(map(type, graph.nodes.values())) == {nir.Input, nir.Output, nir.Conv2d, nir.LIF}
    for name, node in graph.nodes.items():
        kinds = {type(graph.nodes[source]) for source in sources(graph, name)}
        if isinstance(node, nir.LIF):
            assert kinds == {nir.Conv2d}
        elif isinstance(node, nir.Conv2d):
            assert kinds == {nir.Input if name == "stem" else nir.LIF}
    levels = config.most_spikes
    neurons = [node for node in graph.nodes.values() if isinstance(node, nir.LIF)]
    assert len(neurons) == levels * (2 * 2 + 1 + (1 if head == "policy" else 2))
    shortcut = sources(graph, "neurons" if levels == 1 else "neurons_2")
    assert shortcut == {"stem", "blocks_0_conv2", "blocks_1_conv2"}


def test_thresholds_are_the_numbers_before_ours(spec, tmp_path):
    graph = graph_of(spec, INTEGER, "policy", tmp_path)
    found = [np.unique(graph.nodes[f"neurons_{level}"].v_threshold) for level in (1, 2, 3)]
    ours = np.array([0.25, 0.75, 1.25], np.float32)
    assert (np.concatenate(found) < ours).all()
    assert (np.nextafter(np.concatenate(found).astype(np.float32), np.float32(9)) == ours).all()


@pytest.mark.parametrize(
    ("config", "named"),
    [(LEAKY.baseline(), "onnx"), (replace(LEAKY, decay=0.0), "net.decay = 0"),
     (replace(LEAKY, decay=1.0), "net.decay = 1")],
    ids=["relu", "forgets", "does not leak"],
)
def test_what_nir_cannot_have_is_refused(spec, config, named, tmp_path):
    with pytest.raises(ConfigError, match=named):
        graph_of(spec, config, "policy", tmp_path)
    assert not list(tmp_path.iterdir())


def test_neurons_of_one_tick_may_have_any_decay(spec, tmp_path):
    assert graph_of(spec, replace(LEAKY, decay=1.0, ticks=1), "value", tmp_path).nodes
