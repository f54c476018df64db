"""A network of its own shape, through a campaign, an export and a game."""

from pathlib import Path

import numpy as np
import pytest
import torch
from small_campaigns import MICRO, play_iteration

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.models.exporting import export_model, read_exported
from chess_snn.campaign.models.versions import describe
from chess_snn.campaign.stages import prepare_first_generation
from chess_snn.cli.players import find_model
from chess_snn.evaluation import SearchPlayer, make_player, play_match, random_openings
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, build_network, freeze, make_evaluator, network_digest
from chess_snn.nets.planes import expand_planes
from chess_snn.search import PolicySearch

SHAPE = NetConfig(
    blocks=2, channels=24, ticks=3, value_channels=3, value_hidden=10, decay=0.6, threshold=0.7,
    surrogate_alpha=3.0,
)
SET = (
    "net.blocks=2", "net.channels=24", "net.ticks=3", "net.value_channels=3",
    "net.value_hidden=10", "net.decay=0.6", "net.threshold=0.7", "net.surrogate_alpha=3",
)


@pytest.fixture(scope="module", params=["fp32", "int8"])
def folder(request, tmp_path_factory) -> CampaignFolder:
    """One iteration of a campaign whose network no preset has."""
    path: Path = tmp_path_factory.mktemp("shape") / "own"
    settings = [*MICRO, *SET, f"net.precision={request.param}", "campaign.iterations=1"]
    folder = CampaignFolder.create(path, load_config(settings=settings))
    prepare_first_generation(folder)
    play_iteration(folder, 0)
    return folder


def test_it_trains_is_stored_and_described(folder):
    game = get_game("chess")
    network = find_model(f"{folder.path}@1").load(game)
    assert network.config == SHAPE
    assert network_digest(network) != network_digest(find_model(f"{folder.path}@0").load(game))
    assert network.num_parameters == build_network(game.spec, SHAPE, seed=1).num_parameters


def test_an_export_has_its_shape_and_plays_a_match(folder, tmp_path):
    version = export_model(folder, 1, tmp_path / "model")
    assert version.size == "2x24"
    assert NetConfig(**version.shape) == SHAPE
    assert "blocks 2, channels 24" in describe(version)["shape"]
    assert read_exported(tmp_path / "model")[0]["shape"] == version.shape
    model, game = find_model(str(tmp_path / "model")), get_game("chess")
    network = model.load(game)
    assert network.config == SHAPE
    assert network_digest(network) == version.digest
    with make_evaluator(network, precision=model.precision) as evaluator:
        result = play_match(
            game, SearchPlayer(PolicySearch(game, evaluator), "own"), make_player(game, "random"),
            random_openings(game, num_openings=1, num_plies=2, seed=0), seed=0, max_plies=8,
        )
    assert result.num_games == 2


def test_the_frozen_network_says_what_the_module_says(folder):
    """In 8 bits some spikes fall otherwise, and the rest is the same."""
    game, precision = get_game("chess"), folder.config.net.precision
    network = find_model(f"{folder.path}@1").load(game)
    words_BP = torch.from_numpy(
        np.random.default_rng(3).integers(2**63, size=(16, game.spec.num_planes))
        & np.random.default_rng(4).integers(2**63, size=(16, game.spec.num_planes))
    )
    planes = expand_planes(words_BP, game.spec.board_shape, torch.float32)
    with torch.inference_mode():
        expected, ours = network(planes), freeze(network, precision)(planes)
    ours_BV, expected_BV = ours.value_logits_BV.softmax(1), expected.value_logits_BV.softmax(1)
    difference = (ours_BV - expected_BV).abs().sum(1)
    if precision == "fp32":
        assert (difference < 1e-4).float().mean() > 0.8
    assert difference.max() < 0.3
    policy_difference = (ours.policy_logits_BA - expected.policy_logits_BA).abs().mean()
    most = {"fp32": 0.02, "int8": 0.5}[precision]
    assert policy_difference < most * expected.policy_logits_BA.abs().mean()
