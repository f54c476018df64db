"""A generation trained by two workers that stand for machines: real ranks, faults and ends."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field, replace

import psutil
import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(900)]
pytest.importorskip("distributed")
pytest.importorskip("prefect")

import cloudpickle  # noqa: E402
import dask  # noqa: E402
from distributed import Client  # noqa: E402
from made_imports import make_import  # noqa: E402
from small_campaigns import play_first_games  # noqa: E402

from chess_snn.campaign import CampaignFolder, load_config  # noqa: E402
from chess_snn.campaign.machine.training_launch import generation_training, run_training  # noqa: E402
from chess_snn.campaign.machine.workers import plan_here  # noqa: E402
from chess_snn.campaign.stages.dataset import fix_dataset  # noqa: E402
from chess_snn.campaign.stages.first_generation import (  # noqa: E402
    supervised_facts,
    train_first_generation,
)
from chess_snn.data import is_committed, verify_folder  # noqa: E402
from chess_snn.errors import RankLostError, SchedulerLostError  # noqa: E402
from chess_snn.training.rank_launch import RankLayout  # noqa: E402
from tasks import compute, remote, train_together  # noqa: E402
from tasks.cluster.nannies import local_cluster  # noqa: E402
from tasks.cluster.worker_pool import WorkerPool  # noqa: E402
from tasks.cluster.worker_setup import DASK_SETTINGS  # noqa: E402
from tasks.compute import StoppedError  # noqa: E402
from tasks.remote import PROGRESS_TOPIC  # noqa: E402

# Workers cannot import this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

SETTINGS = (
    "campaign.iterations=2", "self_play.games_per_iteration=6", "self_play.games_per_shard=4",
    "self_play.max_plies_first=6", "self_play.max_plies_last=14", "search.simulations_first=2",
    "search.simulations_last=4", "training.batch_size=16", "training.micro_batch=8",
    "training.precision=fp32", "execution.device=cpu", "execution.training_ranks=1",
    "cluster.training_machines=2", "cluster.trust_network=true",
)
LONG = "training.presentations=1000"
PATIENT_S = 120.0
GONE_WITHIN_S = 30.0
"""Asked several times a second, then SIGTERM, and SIGKILL after 2 s."""


@dataclass
class Scene:
    """Workers that stand for machines, and what was said of them."""

    client: Client
    lines: list[str] = field(default_factory=list)
    trained: threading.Event = field(default_factory=threading.Event)
    """Steps were made."""

    def __post_init__(self) -> None:
        self.pool = WorkerPool(self.client, self.lines.append)

    def pid_of(self, host: str) -> int:
        (address,) = [m.address for m in self.pool.workers if m.slot.host == host]
        return self.client.run(os.getpid, workers=[address])[address]

    def wait_for(self, what: str, condition) -> None:
        deadline = time.monotonic() + PATIENT_S
        while not condition():
            assert time.monotonic() < deadline, f"waited too long for {what}: {self.lines}"
            time.sleep(0.05)


@pytest.fixture
def scene():
    plan = plan_here(load_config(settings=["execution.workers=2", "execution.device=cpu"]))
    slots = [
        replace(slot, host=host, number=0)
        for slot, host in zip(plan.slots, ("box-b", "box-c"), strict=True)
    ]
    with (
        dask.config.set(DASK_SETTINGS),
        local_cluster(slots) as cluster,
        Client(cluster) as client,
    ):
        scene = Scene(client)
        client.subscribe_topic(PROGRESS_TOPIC, lambda event: scene.trained.set())
        compute.start()
        with scene.pool.running(), compute.watched_by(scene.pool):
            yield scene
    compute.start()


@pytest.fixture
def scheduler(tmp_path):
    """In a process of its own, and workers in others, as a cluster has them."""
    address, processes = tmp_path / "scheduler.json", []

    def start(*command: str) -> None:
        with (tmp_path / "cluster.log").open("ab") as log:
            processes.append(subprocess.Popen(
                [sys.executable, "-m", *command], stdout=log, stderr=log, start_new_session=True
            ))

    start(
        "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
        "--scheduler-file", str(address),
    )
    try:
        with dask.config.set(DASK_SETTINGS):
            while not address.exists():
                assert processes[0].poll() is None
                time.sleep(0.05)
            with Client(scheduler_file=str(address)) as client:
                for host in ("box-b", "box-c"):
                    start(
                        "chess_snn", "cluster", "worker", client.scheduler.address, "--name", host,
                        "--workers", "1", "--device", "cpu",
                    )
                yield processes[0], client
    finally:
        for process in processes:
            process.kill()
            process.wait()
    compute.start()


@pytest.fixture
def played(tmp_path):
    """A campaign whose first iteration has played and not trained."""

    def make(name: str, *changes: str) -> CampaignFolder:
        folder = CampaignFolder.create(
            tmp_path / name, load_config(settings=[*SETTINGS, *changes])
        )
        play_first_games(folder)
        return folder

    return make


def train_done(folder: CampaignFolder, scene: Scene, machines: int = 2) -> remote.Done:
    cluster = replace(folder.config.cluster, training_machines=machines)
    directory = str(folder.path)
    return train_together.train_together(
        replace(folder.config, cluster=cluster), scene.pool, 1,
        (remote.train_generation, directory, 0, None),
    )


def train(folder: CampaignFolder, scene: Scene, machines: int = 2):
    return train_done(folder, scene, machines).result


def ranks_of(folder: CampaignFolder) -> list[psutil.Process]:
    """Ranks of its training."""
    return [
        process for process in psutil.process_iter(["cmdline"])
        if str(folder.path) in (process.info["cmdline"] or []) and process.pid != os.getpid()
    ]


def assert_gone(folder: CampaignFolder) -> None:
    _, alive = psutil.wait_procs(ranks_of(folder), timeout=GONE_WITHIN_S)
    assert not [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def test_two_machines_train_what_two_ranks_of_one_do(played, scene):
    folder = played("c")
    done = train_done(folder, scene)
    facts = done.result
    assert done.worker == "box-b, box-c"
    assert facts.metrics["ranks"] == 2
    assert verify_folder(folder.checkpoint(1)).meta["weights_digest"] == facts.weights_digest
    assert scene.lines == []
    assert_gone(folder)

    folder.checkpoint(1).rename(folder.path / "by-machines")
    again = run_training(generation_training(folder.path, 0), RankLayout(2), num_threads=1)
    assert again.weights_digest == facts.weights_digest


def test_two_machines_learn_from_given_games_what_one_process_does(scene, tmp_path):
    games = make_import(tmp_path / "games")
    config = fix_dataset(load_config(settings=[
        *SETTINGS, "training.batch_size=64", "training.micro_batch=32",
        f'supervised.games="{games}"',
    ]))
    folder = CampaignFolder.create(tmp_path / "c", config)
    directory = str(folder.path)
    done = train_together.train_together(
        config, scene.pool, 0, (remote.train_first_generation, directory, None),
    )
    assert done.result == supervised_facts(folder)
    assert scene.lines == []
    assert_gone(folder)

    alone = CampaignFolder.create(tmp_path / "alone", config)
    train_first_generation(alone.path)
    first, second = (verify_folder(each.checkpoint(0)).meta for each in (folder, alone))
    assert first["weights_digest"] == second["weights_digest"]


def test_where_fewer_machines_are_there_those_train_and_that_is_said(played, scene):
    folder = played("c", "training.micro_batch=4")
    assert train(folder, scene, machines=3).metrics["ranks"] == 2
    assert scene.lines == [
        "generation 1 is to be trained on 3 machines, and 2 can: box-b, box-c"
    ]
    folder.checkpoint(1).rename(folder.path / "by-two")
    (leaving,) = [member for member in scene.pool.workers if member.slot.host == "box-b"]
    scene.client.retire_workers([leaving.address])
    scene.wait_for("it to leave", lambda: len(scene.pool.workers) == 1)
    assert train(folder, scene).metrics["ranks"] == 1
    assert scene.lines[-1] == "generation 1 is to be trained on 2 machines, and 1 can: box-c"


@pytest.mark.fault(7)
def test_a_machine_that_is_killed_is_named_and_nothing_runs_on(played, scene):
    folder = played("c", LONG)
    victim = scene.pid_of("box-c")
    killer = threading.Thread(
        target=lambda: (scene.trained.wait(PATIENT_S), os.kill(victim, signal.SIGKILL))
    )
    killer.start()
    with pytest.raises(RankLostError, match=r"box-b, box-c"):
        train(folder, scene)
    killer.join()
    assert scene.trained.is_set()
    assert not is_committed(folder.checkpoint(1))
    assert_gone(folder)


def test_a_scheduler_that_dies_while_machines_train_is_named_bug(played, scheduler):
    """It was taken for a campaign that is stopping, which ends with a traceback."""
    process, client = scheduler
    folder, scene = played("c", LONG), Scene(client)
    client.subscribe_topic(PROGRESS_TOPIC, lambda event: scene.trained.set())
    compute.start()
    killer = threading.Thread(target=lambda: (scene.trained.wait(PATIENT_S), process.kill()))
    with scene.pool.running(), compute.watched_by(scene.pool):
        scene.wait_for("the workers", lambda: len(scene.pool.workers) == 2)
        killer.start()
        with pytest.raises(SchedulerLostError, match=r"tcp://127\.0\.0\.1:\d+"):
            train(folder, scene)
    killer.join()
    assert scene.trained.is_set()


@pytest.mark.fault(22)
def test_ranks_of_all_machines_end_when_the_campaign_stops(played, scene):
    folder, seen = played("c", LONG), []

    def stop() -> None:
        scene.trained.wait(PATIENT_S)
        seen.extend(ranks_of(folder))
        compute.stop()

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(StoppedError):
        train(folder, scene)
    stopper.join()
    assert len(seen) == 2
    assert_gone(folder)
    assert not is_committed(folder.checkpoint(1))
    compute.start()
    assert sorted(compute.run_all_on_devices([(len, "ab"), (len, "abc")])) == [2, 3]
