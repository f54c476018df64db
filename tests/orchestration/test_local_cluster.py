"""Workers that are killed before they are up, and who may talk to those of a campaign."""

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.timeout(300)]
pytest.importorskip("distributed")

import psutil  # noqa: E402
from distributed import Client, Security  # noqa: E402
from waiting import wait_for  # noqa: E402

from chess_snn.campaign import load_config  # noqa: E402
from chess_snn.campaign.machine.workers import plan_here  # noqa: E402
from chess_snn.devices import SIMULATED_GPUS  # noqa: E402
from chess_snn.errors import ClusterError  # noqa: E402
from chess_snn.flows.cluster import check_devices  # noqa: E402
from chess_snn.tasks.cluster.nannies import local_cluster  # noqa: E402

POLL_S = 0.05
STARTS_AND_WAITS = """
import time
from chess_snn.campaign import load_config
from chess_snn.campaign.machine.workers import plan_here
from chess_snn.interrupts import interruptible
from chess_snn.tasks.cluster.nannies import local_cluster

if __name__ == "__main__":
    config = load_config(settings=["execution.workers=1", "execution.device=cpu"])
    with interruptible():
        try:
            with local_cluster(plan_here(config).slots):
                time.sleep(600)
        except KeyboardInterrupt:
            print("stopped")
"""


@contextmanager
def killed_at_once(most: int) -> Iterator[list[int]]:
    """Kill the first workers that this process starts; yields their pids as they are killed."""
    killed: list[int] = []
    ended = threading.Event()

    def kill() -> None:
        this = psutil.Process(os.getpid())
        while len(killed) < most and not ended.wait(POLL_S):
            for child in this.children():
                if is_worker(child) and child.pid not in killed:
                    child.kill()
                    killed.append(child.pid)
                    break

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


def is_worker(process: psutil.Process) -> bool:
    try:
        return any("spawn_main" in word for word in process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


@pytest.fixture
def slots():
    return plan_here(load_config(settings=["execution.workers=1", "execution.device=cpu"])).slots


@pytest.mark.slow
@pytest.mark.fault(1)
def test_a_worker_that_is_killed_while_it_starts_is_started_again(slots):
    with killed_at_once(2) as killed, local_cluster(slots) as cluster:
        assert len(cluster.scheduler.workers) == len(slots)
    assert len(killed) == 2


@pytest.mark.fault(1)
def test_one_that_is_killed_whenever_it_starts_is_one_line(slots):
    with killed_at_once(100) as killed, pytest.raises(ClusterError) as raised:
        local_cluster(slots)
    assert len(killed) >= 4
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_a_gpu_that_disappears_before_its_worker_starts_is_one_line(monkeypatch):
    monkeypatch.setenv(SIMULATED_GPUS, "3")
    two = load_config(settings=["execution.gpus=[1,2]", "execution.workers=2"])
    planned = plan_here(two).slots
    monkeypatch.setenv(SIMULATED_GPUS, "2")
    reason = r"GPU 2 \(simulated\) .* --gpus 1,$"
    with (
        local_cluster(planned) as cluster, Client(cluster) as client,
        pytest.raises(ClusterError, match=reason) as raised,
    ):
        check_devices(client, planned)
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_nobody_comes_in_without_the_certificate_of_the_campaign(slots):
    """Other users of the machine reach loopback as well."""
    strangers = None, Security.temporary()
    with local_cluster(slots) as cluster:
        nannies = [nanny.address for nanny in cluster.workers.values()]
        addresses = [cluster.scheduler_address, *cluster.scheduler.workers, *nannies]
        assert all(address.startswith("tls://127.0.0.1:") for address in addresses)
        for address, stranger in itertools.product(addresses, strangers):
            asked = address if stranger else address.replace("tls://", "tcp://")
            with pytest.raises(OSError):  # noqa: PT011 - whatever the handshake ends in
                Client(asked, security=stranger, timeout=2)
        with Client(cluster) as client:
            assert client.submit(int, "1").result(timeout=10) == 1
            # Prefect sends SIGTERM to the whole group of a run that is cancelled.
            groups = client.run(os.getpgrp)
        assert os.getpgrp() not in groups.values()


@pytest.mark.slow
def test_a_client_that_left_is_no_traceback_bug(slots, caplog):
    with local_cluster(slots) as cluster, Client(cluster) as client:
        scheduler = cluster.scheduler
        scheduler.client_comms[client.id].abort()
        scheduler.send_all({client.id: [{"op": "told too late"}]}, {})
        assert [record.message for record in caplog.records if record.exc_info] == []


@pytest.mark.fault(22)
@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_while_workers_start_leaves_none_and_no_traceback_bug(tmp_path, sent):
    program = tmp_path / "program.py"
    program.write_text(STARTS_AND_WAITS)
    with subprocess.Popen(
        [sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        parent = psutil.Process(process.pid)
        starting = wait_for(
            lambda: next(filter(is_worker, parent.children()), None), timeout_s=120
        )
        process.send_signal(sent)
        out, err = process.communicate(timeout=120)
    assert (out, err, process.returncode) == ("stopped\n", "", 0)
    assert not starting.is_running()
