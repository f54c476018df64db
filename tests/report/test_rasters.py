"""Pictures of spikes show every spike, in its place, and stay small."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from chess_snn.games import get_game
from chess_snn.nets import (
    LayerActivity,
    build_network,
    net_config,
    network_input,
    record_activity,
)
from chess_snn.report.rasters import MOST_CHANNELS, raster_svg

SVG = "{http://www.w3.org/2000/svg}"
LARGEST_BYTES = 300_000


def activity_of(config):
    """Activity of an untrained network in the starting position."""
    game = get_game("chess")
    planes = network_input(
        game.planes(game.initial_states(np.zeros(1, np.uint64))), game.spec.board_shape
    )
    (activity,) = record_activity(build_network(game.spec, config, 0), planes)
    return activity


def made_layer(spikes):
    """Membranes just where such spikes come from."""
    return LayerActivity(spikes, spikes.astype(np.float32))


def cells_of(path, shape):
    """The cells that a path of strokes goes over."""
    found = np.zeros(shape, bool)
    x = y = 0
    for right, down, length in re.findall(r"m(-?\d+) (-?\d+)h(\d+)", path):
        x, y = x + int(right), y + int(down)
        assert not found[y, x : x + int(length)].any()
        found[y, x : x + int(length)] = True
        x += int(length)
    return found


def paths_of(svg):
    """Strokes of cells by tile: of each group of cells the paths by colour."""
    groups = [
        group for group in ElementTree.fromstring(svg).iter(f"{SVG}g")
        if group.get("shape-rendering")
    ]
    return [{path.get("stroke"): path.get("d") for path in group} for group in groups]


@pytest.mark.parametrize("levels", [1, 3])
def test_each_spike_is_a_cell_of_the_colour_of_its_level(levels):
    rng = np.random.default_rng(levels)
    spikes = rng.integers(0, levels + 1, (2, 5, 4, 4)).astype(np.uint8)
    spikes[:, 0, 0, 0] = np.arange(1, levels + 1)[[0, -1]]  # the first and the last level are there
    tiles = paths_of(raster_svg({"neurons": made_layer(spikes)}, levels=levels, title="t"))
    rasters = tiles[::2]  # each is followed by its board
    colours = [set(raster) for raster in rasters]
    assert len(tiles) == 4
    assert max(len(found) for found in colours) == levels
    for raster, expected in zip(rasters, spikes.reshape(2, 5, 16), strict=True):
        found = {colour: cells_of(path, expected.shape) for colour, path in raster.items()}
        assert (sum(found.values(), np.zeros(expected.shape, int)) == (expected > 0)).all()
        for cells in found.values():
            assert len(set(expected[cells])) == 1


def test_a_board_of_chess_has_the_first_rank_at_the_bottom():
    spikes = np.zeros((1, 3, 8, 8), np.uint8)
    spikes[0, :, 0, 2] = 1  # c1
    _, board = paths_of(raster_svg({"neurons": made_layer(spikes)}, levels=1, title="t"))
    darkest = cells_of(board[min(board)], (8, 8))
    assert np.argwhere(darkest).tolist() == [[7, 2]]


def test_a_layer_without_a_board_is_one_row_and_further_channels_are_left_out():
    flat = np.zeros((1, 64), np.uint8)
    flat[0, [3, 4, 60]] = 1
    deep = np.ones((1, MOST_CHANNELS + 1, 8, 8), np.uint8)
    svg = raster_svg({"flat": made_layer(flat), "deep": made_layer(deep)}, levels=1, title="t")
    row, raster, _ = paths_of(svg)
    assert np.flatnonzero(cells_of(*row.values(), (1, 64))).tolist() == [3, 4, 60]
    assert cells_of(*raster.values(), (MOST_CHANNELS, 64)).all()
    assert "flat  4.7%" in svg
    assert "deep  100.0%" in svg


@pytest.mark.parametrize("config", [
    net_config("small"), net_config("small").with_activation("ilif"), net_config("tiny"),
], ids=["lif", "ilif", "tiny"])
def test_a_network_fits_a_small_picture_that_names_every_layer(config):
    activity = activity_of(config)
    svg = raster_svg(activity, levels=config.most_spikes, title="R&D <b>")
    texts = ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert len(svg.encode()) < LARGEST_BYTES
    assert texts[0] == "R&D <b>"
    for name, layer in activity.items():
        assert f"{name}  {layer.spikes_TX.mean() / config.most_spikes:.1%}" in texts
    assert texts.count("tick 2") == (len(activity) if config.ticks > 1 else 0)


def test_a_baseline_has_a_title_and_no_layers():
    baseline = net_config("tiny").baseline()
    svg = raster_svg(activity_of(baseline), levels=baseline.most_spikes, title="ordinary")
    assert "ordinary" in svg
    assert paths_of(svg) == []
