"""A campaign's generation trained by ranks: the same as by one process, whatever is killed."""

import os
import subprocess
import sys
import threading
import time

import psutil
import pytest
from made_imports import fixed_games, make_import
from small_campaigns import MICRO, play_first_games
from supervised_steps import supervised_progress
from waiting import assert_gone, wait_for

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.machine.training_launch import (
    first_training,
    generation_training,
    run_training,
    train_here,
    train_network,
)
from chess_snn.campaign.stages import step_losses, train_generation, training_program
from chess_snn.campaign.stages.first_generation import train_first_generation
from chess_snn.campaign.stages.window import iteration_to_train
from chess_snn.campaign.store.plans import begin_iteration
from chess_snn.data import is_committed, read_manifest, sweep_temporaries
from chess_snn.devices import SIMULATED_GPUS
from chess_snn.errors import CampaignError, DamagedFolderError, RankLostError
from chess_snn.ports import LOOPBACK, free_port

pytestmark = pytest.mark.timeout(600)

RANKS = (
    "training.batch_size=16", "training.micro_batch=8", "training.precision=fp32",
    "execution.device=cpu",
)


@pytest.fixture
def played(new_folder):
    """A campaign whose first iteration has played and not trained."""

    def make(*changes: str) -> CampaignFolder:
        folder = new_folder("campaign", *RANKS, *changes)
        play_first_games(folder)
        return folder

    return make


@pytest.mark.slow
def test_two_ranks_train_the_generation_that_one_process_does(played):
    folder = played("execution.training_ranks=2", "training.presentations=1")
    heard = []
    training = generation_training(folder.path, 0)
    by_ranks = train_here(training, num_threads=2, on_progress=lambda *done: heard.append(done))
    target = folder.checkpoint(1)
    assert heard[-1][0] == heard[-1][1] == by_ranks.metrics["steps"] > 1
    meta = read_manifest(target).meta
    assert meta["shares"] == [1, 1]
    assert meta["micro_batches"] == [{"step": 0, "micro_batch": 8}]
    assert by_ranks.metrics["ranks"] == 2
    curve = step_losses(folder, 1)

    target.rename(folder.path / "by-ranks")
    alone = train_generation(folder.path, 0)
    assert alone.metrics["ranks"] == 1
    assert by_ranks.metrics.keys() == alone.metrics.keys()  # so few games may have none held out
    for name in ("total_loss", "value_loss", "policy_loss", "gradient_norm", "learning_rate",
                 "steps", "samples"):
        assert by_ranks.metrics[name] == pytest.approx(alone.metrics[name], rel=1e-4), name
    for found, expected in zip(curve, step_losses(folder, 1), strict=True):
        assert found == pytest.approx(expected, rel=1e-4)


def train_in_ranks(folder, **options):
    return run_training(generation_training(folder.path, 0), 2, **options)


@pytest.mark.fault(11)
def test_a_generation_without_its_manifest_is_named_before_ranks_begin_bug(folder):
    """Whoever hears of it there has it repaired; out of a rank it would come as text."""
    folder.checkpoint(1).mkdir(parents=True)
    with pytest.raises(DamagedFolderError, match=r"gen-000001") as raised:
        train_in_ranks(folder)
    assert raised.value.folder == folder.checkpoint(1)


def torchrun(nodes, *command):
    """Run ``python -m command`` as two ranks, on so many nodes; what each node printed."""
    place = ["--nnodes", str(nodes), "--nproc-per-node", str(2 // nodes), "--master-addr",
             LOOPBACK, "--master-port", str(free_port())]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", *place, "--node-rank", str(node), "-m",
             *command],
            env=os.environ | {"GLOO_SOCKET_IFNAME": "lo"}, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for node in range(nodes)
    ]
    printed = []
    for process in started:
        told, errors = process.communicate(timeout=500)
        assert process.returncode == 0, errors
        printed.append(told.splitlines())
    return printed


@pytest.mark.slow
def test_by_hand_under_torchrun_on_one_node_or_two_and_without(played, tmp_path):
    """One program: torchrun's variables make it a rank, without them it trains alone."""
    folder = played()
    program = (training_program.__name__, str(folder.path), "--threads", "1")

    def alone():
        done = subprocess.run(
            [sys.executable, "-m", *program], capture_output=True, text=True, check=True
        )
        return [done.stdout.splitlines()]

    digests = []
    for launch in (alone, lambda: torchrun(1, *program), lambda: torchrun(2, *program)):
        _, *others = launch()
        assert others in ([], [[]]), "rank 0 alone prints"
        manifest = read_manifest(folder.checkpoint(1))
        assert manifest.meta["metrics"]["ranks"] == min(2, 1 + len(digests))
        digests.append(manifest.meta["weights_digest"])
        folder.checkpoint(1).rename(tmp_path / f"trained-{len(digests)}")
    assert digests == digests[:1] * 3


@pytest.mark.slow
def test_games_are_learnt_under_torchrun_on_two_nodes_as_by_two_ranks_of_one(tmp_path):
    games = make_import(tmp_path / "games")
    settings = [*RANKS, "training.batch_size=64", "training.micro_batch=32", "supervised.epochs=1"]
    command = [
        "chess_snn", "games", "learn", str(games), *(f"--set={setting}" for setting in settings)
    ]
    torchrun(2, *command, "--out", str(tmp_path / "two-nodes"))
    config = fixed_games(load_config(settings=[*settings, f'supervised.games="{games}"']))
    train_network(config, tmp_path / "one-node", 2, num_threads=1)
    digests = {
        read_manifest(tmp_path / name).meta["weights_digest"] for name in ("two-nodes", "one-node")
    }
    assert len(digests) == 1


def test_what_was_trained_is_not_trained_again_and_what_was_not_played_is_refused(played):
    folder = played()
    assert iteration_to_train(folder) == 0
    facts, began = train_generation(folder.path, 0), time.monotonic()
    assert train_in_ranks(folder) == facts
    assert time.monotonic() - began < 1
    with pytest.raises(CampaignError):
        iteration_to_train(folder)
    assert iteration_to_train(folder, 0) == 0
    with pytest.raises(CampaignError, match="iteration 1"):
        iteration_to_train(folder, 1)
    begin_iteration(folder, 1, 0.0)
    with pytest.raises(CampaignError, match="0 of 2"):
        iteration_to_train(folder, 1)


@pytest.mark.fault(5, 7)
@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_killed_training_leaves_nothing_half_written_and_is_done_again(played, victim):
    folder = played("training.presentations=60")
    target = folder.checkpoint(1)
    undisturbed = train_in_ranks(folder, num_threads=1).weights_digest
    target.rename(folder.path / "undisturbed")

    heard = threading.Event()
    killer = threading.Thread(target=lambda: (heard.wait(120), kill(victim, folder)))
    killer.start()
    with pytest.raises(RankLostError, match="SIGKILL"):
        train_in_ranks(
            folder, num_threads=1, on_progress=lambda done, total: heard.set(),
        )
    killer.join()
    assert not is_committed(target)
    assert_gone(of_training(folder))
    sweep_temporaries(target.parent)
    assert [path.name for path in target.parent.iterdir()] == ["gen-000000"]

    again = train_in_ranks(folder, num_threads=1)
    assert again.weights_digest == undisturbed


@pytest.fixture(scope="module")
def warm_config(tmp_path_factory):
    """Settings of a campaign that learns from a dataset first, for some hundred steps."""
    games = make_import(tmp_path_factory.mktemp("games") / "some")
    return fixed_games(load_config(settings=[
        *MICRO, *RANKS, "execution.device=auto", "training.batch_size=64",
        "training.micro_batch=32", "supervised.epochs=12", f'supervised.games="{games}"',
    ]))


@pytest.fixture(scope="module")
def learnt_alone(warm_config, tmp_path_factory):
    """Generation 0 of such a campaign, by one process."""
    folder = CampaignFolder.create(tmp_path_factory.mktemp("alone") / "c", warm_config)
    train_first_generation(folder.path)
    return read_manifest(folder.checkpoint(0)).meta


@pytest.fixture
def warm(warm_config, tmp_path):
    return CampaignFolder.create(tmp_path / "warm", warm_config)


@pytest.mark.fault(5, 7)
@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_all_devices_learn_from_given_games_and_go_on_where_one_was_killed(
    warm, learnt_alone, monkeypatch, victim
):
    monkeypatch.setenv(SIMULATED_GPUS, "2")

    def kill_after_a_checkpoint():
        wait_for(lambda: supervised_progress(warm.supervised))
        kill(victim, warm)

    killer = threading.Thread(target=kill_after_a_checkpoint)
    killer.start()
    with pytest.raises(RankLostError, match="SIGKILL"):
        train_here(first_training(warm.path), 1, None)
    killer.join()
    assert_gone(of_training(warm))
    assert not is_committed(warm.checkpoint(0))
    done, total = supervised_progress(warm.supervised)
    assert 0 < done < total

    heard = []
    facts = train_here(first_training(warm.path), 1, on_progress=lambda *steps: heard.append(steps))
    assert heard[0][0] > done, "it began anew"
    assert heard[-1] == (total, total)
    assert not warm.supervised.exists()
    by_ranks = read_manifest(warm.checkpoint(0)).meta
    assert by_ranks["weights_digest"] == learnt_alone["weights_digest"]
    assert facts["points"][-1]["step"] == total


def of_training(folder):
    return [
        p for p in psutil.process_iter(["cmdline"])
        if str(folder.path) in (p.info["cmdline"] or []) and p.pid != os.getpid()
    ]


def kill(victim, folder):
    for process in of_training(folder):
        if process.environ().get("RANK") == str(victim):
            process.kill()
            return
