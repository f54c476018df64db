"""A network on its own: what is exported is what was committed, or nothing is."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small_campaigns as made
import torch
from small_campaigns import MICRO, play_iteration

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.models import exporting
from chess_snn.campaign.models.exporting import commit_model, export_model, read_exported
from chess_snn.campaign.models.references import find_model
from chess_snn.campaign.models.versions import model_card, version_of
from chess_snn.campaign.stages import prepare_first_generation
from chess_snn.data import read_manifest, staged_folder, verify_folder
from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.evaluation.matches import play_match
from chess_snn.evaluation.named_players import make_player
from chess_snn.evaluation.openings import random_openings
from chess_snn.evaluation.players import SearchPlayer
from chess_snn.games import get_game
from chess_snn.nets import (
    NetConfig,
    build_network,
    freeze,
    load_network,
    make_evaluator,
    network_digest,
)
from chess_snn.nets.model.planes import expand_planes
from chess_snn.search import PolicySearch
from chess_snn.training import WEIGHTS, SupervisedSettings

GENERATION = 1


@pytest.fixture
def folder(stored_campaign):
    return stored_campaign


def after_the_check(monkeypatch, happen):
    """Have ``happen()`` happen once the checkpoint was found whole, and before it is copied."""
    load_weights = exporting.training.load_weights
    monkeypatch.setattr(
        exporting.training, "load_weights", lambda path: (load_weights(path), happen())
    )


def test_a_bit_that_flips_while_a_network_is_copied_is_found_bug(folder, tmp_path, monkeypatch):
    weights = folder.checkpoint(GENERATION) / WEIGHTS

    def flip():
        content = bytearray(weights.read_bytes())
        content[-1] ^= 1
        weights.write_bytes(content)

    after_the_check(monkeypatch, flip)
    with pytest.raises(CorruptDataError):
        export_model(folder, GENERATION, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_who_finds_another_network_in_its_place_does_not_claim_it_bug(
    folder, tmp_path, monkeypatch
):
    def come_first():
        with staged_folder(tmp_path / "model") as stage:
            stage.commit(exporting.KIND, {"weights_digest": "another"})

    after_the_check(monkeypatch, come_first)
    with pytest.raises(UsageError, match="model"):
        export_model(folder, GENERATION, tmp_path / "model")
    assert read_manifest(tmp_path / "model").meta == {"weights_digest": "another"}


# The card of an exported network.


def card_of(folder):
    made.finish(folder, 0)
    return model_card(version_of(folder, 1))


def test_a_network_that_began_with_given_games_is_said_to_know_only_its_own_bug(tmp_path):
    games = ('supervised.games="/imports/masters"', 'supervised.digest="0123abcd"')
    card = card_of(made.make_campaign(tmp_path / "warm", *games))
    assert "masters (digest 0123abcd)" in card
    for name, changes in (("cold", ()), ("no epochs", (*games, "supervised.epochs=0"))):
        card = card_of(made.make_campaign(tmp_path / name, *changes))
        assert "pretraining dataset" not in card


def test_generation_0_can_be_exported_before_any_iteration(folder, tmp_path):
    version = export_model(folder, 0, tmp_path / "first", "Notes of mine.")
    for parent in (folder.checkpoint(0), tmp_path / "first"):
        assert network_digest(load_network(parent / WEIGHTS)) == version.digest
    exported, checkpoint = verify_folder(tmp_path / "first"), read_manifest(folder.checkpoint(0))
    assert exported.files[WEIGHTS] == checkpoint.files[WEIGHTS]
    assert exported.meta["weights_digest"] == version.digest
    assert read_exported(tmp_path / "first")[0]["generation"] == 0
    assert (version.window_shards, version.score, version.promotion) == ((), None, None)
    assert (tmp_path / "first" / "README.md").read_text().endswith("Notes of mine.")


def test_an_exported_network_does_not_tell_where_its_dataset_lay(folder, tmp_path):
    given = SupervisedSettings(games="/imports/masters", digest="0123abcd")
    commit_model(
        tmp_path / "model", folder.checkpoint(0) / WEIGHTS,
        replace(folder.config, supervised=given), {"generation": 0, "digest": "0"},
    )
    assert "/imports" not in (tmp_path / "model" / "model.toml").read_text()
    assert read_exported(tmp_path / "model")[1].supervised.games == ""


# A network of its own shape, through a campaign, an export and a game.


SHAPE = NetConfig(
    blocks=2, channels=24, ticks=3, decay=0.6, threshold=0.7, surrogate_alpha=3.0,
)
SET = (
    "net.size=2x24", "net.ticks=3", "net.decay=0.6", "net.threshold=0.7",
    "net.surrogate_alpha=3",
)


@pytest.fixture(
    scope="module", params=[pytest.param(each, marks=pytest.mark.slow) for each in ("fp32", "int8")]
)
def shaped(request, tmp_path_factory) -> CampaignFolder:
    """One iteration of a campaign whose network no preset has."""
    path: Path = tmp_path_factory.mktemp("shape") / "own"
    settings = [*MICRO, *SET, f"net.precision={request.param}", "campaign.iterations=1"]
    shaped = CampaignFolder.create(path, load_config(settings=settings))
    prepare_first_generation(shaped)
    play_iteration(shaped, 0)
    return shaped


def test_it_trains_is_stored_and_described(shaped):
    game = get_game("chess")
    network = find_model(f"{shaped.path}@1").load(game)
    assert network.config == SHAPE
    assert network_digest(network) != network_digest(find_model(f"{shaped.path}@0").load(game))
    assert network.num_parameters == build_network(game.spec, SHAPE, seed=1).num_parameters


def test_an_export_has_its_shape_and_plays_a_match(shaped, tmp_path):
    version = export_model(shaped, 1, tmp_path / "model")
    assert version.size == "2x24"
    assert NetConfig(**version.shape) == SHAPE
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


def test_the_frozen_network_says_what_the_module_says(shaped):
    """In 8 bits some spikes fall otherwise, and the rest is the same."""
    game, precision = get_game("chess"), shaped.config.net.precision
    network = find_model(f"{shaped.path}@1").load(game)
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
