"""Which campaign's champion has the alias that all campaigns of a store share."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("mlflow")

from mlflow.entities.model_registry import ModelVersion, ModelVersionTag
from mlflow.tracking import MlflowClient
from mlflow_stores import STRENGTH, made_version, own_store

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.tasks.tracking import MODEL_NAME
from chess_snn.tasks.tracking.recorder import CampaignTracker
from chess_snn.tasks.tracking.registry import _tags
from chess_snn.tasks.tracking.strength_tags import why_not_better

STRONG = replace(STRENGTH, value=900.0, low=820.0, high=980.0)


@pytest.fixture
def uri(empty_store, weights, tmp_path, monkeypatch) -> str:
    shutil.copy(weights, tmp_path)
    return own_store(empty_store, tmp_path, monkeypatch)


def promote(uri: str, directory: Path, name: str, generation: int, **facts) -> str | None:
    """Register a network of the campaign ``name`` and make it its champion."""
    folder = CampaignFolder(directory / name, f"{name}-id", load_config("smoke"))
    weights = directory / "weights.safetensors"
    version = made_version(
        generation, weights, campaign=name, campaign_id=folder.campaign_id, **facts
    )
    tracker = CampaignTracker(uri, folder)
    tracker.record_iteration(generation, {"train/loss": 1.0}, version, weights)
    return tracker.promote(generation)


def holder(uri: str, alias: str = "champion") -> tuple[str, str]:
    tags = MlflowClient(uri, uri).get_model_version_by_alias(MODEL_NAME, alias).tags
    return tags["campaign"], tags["generation"]


def test_a_small_campaign_after_a_better_one_took_the_champion_bug(uri, tmp_path):
    assert promote(uri, tmp_path, "long", 7, strength=STRONG).endswith("now")
    line = promote(uri, tmp_path, "short", 1)
    assert "\n" not in line
    assert line.startswith("models:/chess-snn@champion stays version 1 (long, generation 7, Elo")
    assert "version 2 (short, generation 1, Elo 210" in line
    assert holder(uri) == ("long", "7")
    assert holder(uri, "champion-short-id") == ("short", "1")
    assert holder(uri, "champion-long-id") == ("long", "7")
    assert promote(uri, tmp_path, "short", 1) is None, "nothing has changed since"


@pytest.mark.parametrize(("later", "moves"), [
    (replace(STRENGTH, low=151.0), True),
    (replace(STRENGTH, value=500.0), False),  # the same lower bound
    (replace(STRENGTH, value=500.0, low=None), False),
    (replace(STRONG, scale="ladder 2"), False),
    (replace(STRONG, simulations=800), False),
    (replace(STRONG, scale=""), False),
    (None, False),
], ids=["higher", "equal", "unbounded", "ladder", "budget", "old report", "unrated"])
def test_only_a_higher_lower_bound_on_the_same_scale_takes_it(later, moves):
    first, second = (
        ModelVersion(MODEL_NAME, str(number), 0, tags=[
            ModelVersionTag(name, text)
            for name, text in _tags(made_version(number, strength=strength)).items()
        ])
        for number, strength in ((1, STRENGTH), (2, later))
    )
    assert (why_not_better(second, first) is None) == moves


def test_a_later_champion_of_the_same_campaign_takes_it_if_it_is_measured_better(uri, tmp_path):
    promote(uri, tmp_path, "one", 1)
    promote(uri, tmp_path, "one", 2, strength=replace(STRENGTH, value=190.0, low=100.0))
    assert (holder(uri), holder(uri, "champion-one-id")) == (("one", "1"), ("one", "2"))
    promote(uri, tmp_path, "one", 3, strength=STRONG)
    assert holder(uri) == ("one", "3")


def test_without_a_measured_champion_the_alias_is_not_set(uri, tmp_path):
    line = promote(uri, tmp_path, "one", 1, strength=None)
    assert "evaluation.ladder_test = true" in line
    assert "champion" not in MlflowClient(uri, uri).get_registered_model(MODEL_NAME).aliases
    assert holder(uri, "champion-one-id") == ("one", "1")


def test_a_version_of_an_earlier_program_keeps_it_until_the_alias_is_removed(uri, tmp_path):
    """Its tags were texts for people."""
    promote(uri, tmp_path, "old", 1)
    client = MlflowClient(uri, uri)
    for tag in ("scale", "search_budget", "games", "elo_low", "elo_high"):
        client.delete_model_version_tag(MODEL_NAME, "1", tag)
    client.set_model_version_tag(MODEL_NAME, "1", "elo", "225 (-138 to 587)")
    assert not promote(uri, tmp_path, "new", 1, strength=STRONG).endswith("now")
    assert holder(uri) == ("old", "1")
    client.delete_registered_model_alias(MODEL_NAME, "champion")
    assert promote(uri, tmp_path, "new", 1, strength=STRONG).endswith("now")
    assert holder(uri) == ("new", "1")
