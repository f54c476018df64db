"""A campaign that starts from a network, with its games or without."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from made_imports import fixed_games, make_import
from small_campaigns import MICRO, play_iteration, stage_rebuilder

from chess_snn.campaign import CampaignFolder, read_receipts
from chess_snn.campaign.forking import extend_campaign, fork_campaign, fork_config
from chess_snn.campaign.integrity.gc import dispose, find_disposable
from chess_snn.campaign.integrity.preflight import check_settings
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.models.exporting import export_model
from chess_snn.campaign.models.starting import Start, create_campaign, find_start
from chess_snn.campaign.models.versions import model_card, version_of
from chess_snn.campaign.stages import prepare_first_generation, window_shards
from chess_snn.campaign.stages.first_generation import begins_trained, train_first_generation
from chess_snn.campaign.stages.networks import game_of
from chess_snn.data import ReplayWindow, is_committed, read_manifest, read_shard
from chess_snn.errors import (
    BeyondRepairError,
    CampaignError,
    ConfigError,
    DamagedFolderError,
    UsageError,
)
from chess_snn.games import get_game
from chess_snn.nets import (
    build_network,
    load_network,
    net_config,
    network_digest,
    network_input,
    save_network,
)
from chess_snn.training import WEIGHTS, load_trainer


def start_from(text: object) -> Start:
    return find_start(str(text))


@pytest.fixture
def parent(stored_campaign: CampaignFolder) -> CampaignFolder:
    """Two finished iterations of a micro network."""
    return stored_campaign


def start_with_games(
    parent: CampaignFolder, path: Path, *changes: str, generation: str = "@2"
) -> CampaignFolder:
    """A campaign that begins with a network of ``parent`` and the games it was trained on."""
    start = start_from(f"{parent.path}{generation}")
    settings = [*(text for text in MICRO if not text.startswith("net.")), *changes]
    folder = create_campaign(path, start.load_config(settings=settings), start, with_games=True)
    assert folder.origin is not None
    return folder


def test_generation_0_is_the_given_network_under_its_own_settings(parent, tmp_path):
    export_model(parent, 2, tmp_path / "exported")
    digest = read_manifest(parent.checkpoint(2)).meta["weights_digest"]
    for number, text in enumerate((
        parent.path, f"{parent.path}@2", tmp_path / "exported", parent.checkpoint(2),
        parent.checkpoint(2) / WEIGHTS,
    )):
        start = start_from(text)
        config = start.load_config("gpu", settings=["training.batch_size=512"])
        folder = create_campaign(tmp_path / f"new-{number}", config, start)
        assert folder == CampaignFolder.open(folder.path)
        assert folder.origin is not None
        assert folder.origin.weights_digest == digest
        assert folder.origin.generation == 2
        assert folder.origin.campaign_id == parent.campaign_id
        meta = read_manifest(folder.checkpoint(0)).meta
        assert meta["weights_digest"] == digest
        assert meta["positions_played"] == 0
        assert config.net == parent.config.net
        assert verify_campaign(folder).is_whole


def test_a_given_network_learns_from_a_dataset_first(parent, tmp_path):
    games = make_import(tmp_path / "games")
    settings = [
        *(text for text in MICRO if not text.startswith("net.")), "training.batch_size=64",
        "training.warmup_steps=1000000", f'supervised.games="{games}"',
    ]
    start = start_from(f"{parent.path}@2")
    folder = create_campaign(
        tmp_path / "new", fixed_games(start.load_config(settings=settings)), start
    )
    assert not is_committed(folder.checkpoint(0)), "it has to learn first"
    train_first_generation(folder.path)
    given, learnt = (load_network(path / WEIGHTS) for path in (
        parent.checkpoint(2), folder.checkpoint(0)
    ))
    assert network_digest(learnt) != network_digest(given)
    for before, after in zip(given.parameters(), learnt.parameters(), strict=True):
        # The learning rate is nearly 0: it began as the network that was given.
        torch.testing.assert_close(after, before, atol=1e-2, rtol=0)
    assert f"{parent.path}@2" in model_card(version_of(folder, 0))


def test_neurons_may_have_other_ticks_or_levels_from_then_on(parent, tmp_path):
    shape = net_config("tiny", activation="ilif", ticks=1)
    save_network(tmp_path / "net.safetensors", build_network(get_game("chess").spec, shape, 5))
    for place, setting in (
        (f"{parent.path}@2", "net.ticks=3"), (tmp_path / "net.safetensors", "net.levels=8"),
    ):
        start = start_from(place)
        config = start.load_config("smoke", settings=[setting])
        folder = create_campaign(tmp_path / setting, config, start)
        shutil.copytree(folder.path, tmp_path / f"{setting}-again")
        again = CampaignFolder.open(tmp_path / f"{setting}-again")
        shutil.rmtree(again.checkpoint(0))
        prepare_first_generation(again)
        for made in (folder, again):
            network = load_network(made.checkpoint(0) / WEIGHTS)
            assert network.config == config.net.network()
            assert network_digest(network) == start.origin.weights_digest


@pytest.mark.parametrize("name", ["rule_planes", "target_readout"])
def test_a_network_may_begin_to_see_more_and_not_cease_to(tmp_path, name):
    spec = get_game("chess").spec
    blind = build_network(spec, net_config("tiny", blocks=1), 5).eval()
    save_network(tmp_path / "blind.safetensors", blind)
    start = start_from(tmp_path / "blind.safetensors")
    config = start.load_config("smoke", settings=[f"net.{name}=true"])
    folder = create_campaign(tmp_path / "seeing", config, start)
    seeing = load_network(folder.checkpoint(0) / WEIGHTS)
    assert getattr(seeing.config, name)
    words = np.random.default_rng(0).integers(2**63, size=(16, spec.all_planes), dtype=np.uint64)
    planes = network_input(words, spec.board_shape)
    with torch.inference_mode():
        torch.testing.assert_close(
            seeing(planes).policy_logits_BA, blind(planes).policy_logits_BA, rtol=0, atol=1e-5
        )
    start = start_from(folder.checkpoint(0) / WEIGHTS)
    assert getattr(start.load_config("smoke").net, name)
    with pytest.raises(UsageError, match=rf"net\.{name}"):
        start.load_config("smoke", settings=[f"net.{name}=false"])


@pytest.mark.parametrize(("shape", "precision"), [
    (net_config("small", activation="relu", ticks=1), "bf16"),
    (net_config("tiny", activation="ilif", ticks=1, levels=8), "int8"),
], ids=["relu", "ilif"])
def test_a_weights_file_alone_says_its_shape_and_the_preset_how_it_plays(
    tmp_path, shape, precision
):
    save_network(tmp_path / "net.safetensors", build_network(get_game("chess").spec, shape, 5))
    start = start_from(tmp_path / "net.safetensors")
    config = start.load_config("cpu")
    assert (config.net.size, config.net.activation) == (shape.size, shape.activation)
    assert config.net.network() == shape
    assert config.net.precision == precision
    assert start.origin.campaign == ""


@pytest.mark.parametrize(("changes", "said"), [
    (["net.size=1x2"], "net.size = 1x4.*net.size = 1x2"),
    (["net.threshold=0.7"], r"net.threshold = 0\.5.*net.threshold = 0\.7"),
])
def test_settings_that_contradict_the_network_are_refused(parent, changes, said):
    with pytest.raises(UsageError, match=said):
        start_from(parent.path).load_config("smoke", settings=changes)


def test_another_game_is_refused(parent):
    start = start_from(parent.path)
    start.network.spec = replace(start.network.spec, name="go")
    with pytest.raises(UsageError, match="go"):
        start.load_config("smoke")


def test_the_first_windows_hold_the_games_of_the_network(parent, tmp_path):
    folder = start_with_games(parent, tmp_path / "new")
    own = window_shards(parent, 1)
    names = [f"from-{shard.parent.name}/{shard.name}" for shard in own]
    assert list(folder.origin.games) == names
    assert folder.origin.positions == sum(
        read_manifest(shard).meta["num_positions"] for shard in own
    )
    inode = own[0].stat().st_ino
    assert (folder.path / "games" / names[0]).stat().st_ino == inode
    there, here = (
        ReplayWindow.load(game_of(parent), shards, 10_000, holdout_every=2)
        for shards in (own, [folder.path / "games" / name for name in names])
    )
    assert there.digest() == here.digest(), "games held out there are held out here"

    assert begins_trained(folder)
    receipt = play_iteration(folder, 0)
    played = [facts.name for facts in receipt.shards]
    assert receipt.training.window_shards == [*names, *played]
    meta = read_manifest(folder.checkpoint(1)).meta
    assert meta["positions_played"] == meta["window_positions"]
    assert verify_campaign(folder).is_whole

    # A campaign started from this one takes both along.
    third = start_with_games(folder, tmp_path / "third", generation="")
    assert list(third.origin.games) == [f"from-{name}" for name in [*names, *played]]
    assert verify_campaign(third).is_whole


def test_what_was_taken_along_is_taken_again_when_it_is_damaged(parent, tmp_path):
    folder = start_with_games(parent, tmp_path / "new")
    shard = folder.path / "games" / folder.origin.games[0]
    shard.unlink()
    found = verify_campaign(folder).damage
    assert [(f.kind, f.path, f.state) for f in found] == [
        ("shard", folder.name_of(shard), "lost")
    ]
    told = list[str]()
    rebuilder = stage_rebuilder(folder, told)
    rebuilder.rebuild(DamagedFolderError("gone", shard))
    assert verify_campaign(folder).is_whole

    digest = read_manifest(folder.checkpoint(0)).meta["weights_digest"]
    shutil.rmtree(folder.checkpoint(0))
    prepare_first_generation(folder)
    assert read_manifest(folder.checkpoint(0)).meta["weights_digest"] == digest

    # Without the parent the games are dropped, and the network cannot be had again.
    parent.path.rename(tmp_path / "elsewhere")
    shard.unlink()
    rebuilder.rebuild(DamagedFolderError("gone", shard))
    assert any(line.startswith("DROPPED") for line in told)
    assert verify_campaign(folder).is_whole
    shutil.rmtree(folder.checkpoint(0))
    with pytest.raises(BeyondRepairError, match="restore"):
        prepare_first_generation(folder)


@pytest.mark.slow
def test_gc_removes_games_taken_along_once_no_window_needs_them(parent, tmp_path):
    folder = start_with_games(parent, tmp_path / "new", "training.window_positions=90")
    assert not [e for e in find_disposable(folder) if e.sort == "games"]
    play_iteration(folder, 0)
    play_iteration(folder, 1)
    taken = {f"from-iter-{number:06d}" for number in range(2)}
    names = {entry.path.name for entry in find_disposable(folder) if entry.sort == "games"}
    assert names >= taken & {path.name for path in (folder.path / "games").iterdir()}


def test_a_network_without_games_is_refused_and_nothing_is_made(parent, tmp_path):
    export_model(parent, 2, tmp_path / "exported")
    for text, said in (
        (tmp_path / "exported", "exported"),
        (f"{parent.path}@0", "generation 0"),
    ):
        start = start_from(text)
        config = start.load_config("smoke")
        with pytest.raises(UsageError, match=said):
            create_campaign(tmp_path / "new", config, start, with_games=True)
        assert not (tmp_path / "new").exists()


def test_a_start_that_fails_leaves_nothing(parent, tmp_path):
    start = start_from(f"{parent.path}@2")
    window_shards(parent, 1)[1].write_bytes(b"{")
    config = start.load_config("smoke")
    with pytest.raises(DamagedFolderError):
        create_campaign(tmp_path / "new", config, start, with_games=True)
    assert not (tmp_path / "new").exists() or not list((tmp_path / "new").iterdir())
    assert not list(tmp_path.glob(".tmp-*"))


# A fork has the past of its parent and a future of its own.


def fork(parent: CampaignFolder, at: int, *settings: str) -> CampaignFolder:
    config = fork_config(parent, at, settings)
    return fork_campaign(parent, parent.path.with_name(f"fork-{at}"), at, config)


def digest_of(folder: CampaignFolder, generation: int) -> str:
    return str(read_manifest(folder.checkpoint(generation)).meta["weights_digest"])


def test_without_a_change_it_comes_out_as_its_parent(tmp_path, played_campaign):
    parent = CampaignFolder.open(shutil.copytree(played_campaign.path, tmp_path / "parent"))
    forked = fork(parent, 1)
    assert forked.campaign_id != parent.campaign_id
    assert verify_campaign(forked).is_whole
    assert read_receipts(forked) == read_receipts(parent)[:1]
    assert not begins_trained(parent)
    assert not begins_trained(forked)
    assert not forked.shard(1, 0).exists()
    assert not forked.checkpoint(2).exists()
    play_iteration(forked, 1)
    assert verify_campaign(forked).is_whole
    for shard in parent.path.glob("games/iter-*/shard-*"):
        theirs, ours = (read_shard(root / parent.name_of(shard))[0]
                        for root in (parent.path, forked.path))
        assert (theirs.states == ours.states).all()
        assert (theirs.actions == ours.actions).all()
    assert [digest_of(forked, g) for g in range(3)] == [digest_of(parent, g) for g in range(3)]


def test_changed_settings_hold_from_there_on(tmp_path, played_campaign):
    parent = CampaignFolder.open(shutil.copytree(played_campaign.path, tmp_path / "parent"))
    forked = fork(parent, 1, "training.learning_rate=0.0001", "campaign.iterations=3")
    inode = (parent.checkpoint(1) / "MANIFEST.json").stat().st_ino
    assert (forked.checkpoint(1) / "MANIFEST.json").stat().st_ino == inode
    assert [plan["progress_last"] for plan in _plans(forked)] == [0.5]
    play_iteration(forked, 1)
    assert [plan["progress_last"] for plan in _plans(forked)] == [0.5, 0.75]
    trainer = load_trainer(forked.checkpoint(2), game_of(forked))
    assert trainer.settings.learning_rate == 0.0001
    assert digest_of(forked, 2) != digest_of(parent, 2)
    check_settings(forked)
    forked.with_config(parent.config)
    with pytest.raises(CampaignError, match=r"training\.learning_rate"):
        check_settings(CampaignFolder.open(forked.path))
    forked.with_config(forked.config)
    assert verify_campaign(forked).is_whole
    assert verify_campaign(parent).is_whole


def _plans(folder: CampaignFolder) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted((folder.path / "plans").iterdir())]


@pytest.mark.parametrize(("at", "settings", "said"), [
    (3, (), "iteration 3.* 0 to 2"),
    (-1, (), "iteration -1"),
    (2, (), "campaign"),
    (1, ("net.ticks=4",), r"net\.ticks"),
    (1, ("campaign.game=go",), "'go'|campaign.game"),
    (1, ("supervised.epochs=3",), r"supervised\.epochs"),
])
def test_what_cannot_be_forked_is_refused_and_nothing_is_made(
    tmp_path, parent, at, settings, said
):
    with pytest.raises((UsageError, ConfigError), match=said):
        fork(parent, at, *settings)
    assert not list(tmp_path.glob("*fork*"))


def test_a_damaged_past_makes_no_fork(tmp_path, parent):
    parent.shard(0, 1).write_bytes(b"{")
    with pytest.raises(DamagedFolderError):
        fork(parent, 1)
    assert not list(tmp_path.glob(".tmp-*"))


def test_what_the_parent_removed_the_fork_knows_to_be_removed(parent):
    dispose(parent, find_disposable(parent))
    extend_campaign(parent, iterations=4)
    forked = fork(parent, 2)
    assert forked.config.campaign.iterations == 4
    assert verify_campaign(forked).is_whole
    play_iteration(forked, 2)
    assert verify_campaign(forked).is_whole


def test_damage_is_rebuilt_from_the_parent(parent):
    forked = fork(parent, 1)
    rebuilder = stage_rebuilder(forked, [])
    forked.shard(0, 0).unlink()
    rebuilder.rebuild(DamagedFolderError("gone", forked.shard(0, 0)))
    for path in (forked.checkpoint(1), forked.checkpoint(0)):
        shutil.rmtree(path)
        rebuilder.rebuild(DamagedFolderError("gone", path))
    assert verify_campaign(forked).is_whole
