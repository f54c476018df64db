"""Silence is added up by looks, not by clocks; how a worker's process ended is said in words."""

import os
import signal
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.timeout(300)]
pytest.importorskip("distributed")

import dask  # noqa: E402
import psutil  # noqa: E402
from dask.utils import parse_timedelta  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

from chess_snn.campaign import load_config  # noqa: E402
from chess_snn.campaign.machine.workers import plan_here  # noqa: E402
from chess_snn.tasks.cluster.nannies import EXIT_TOPIC, count_oom_kills, local_cluster  # noqa: E402
from chess_snn.tasks.cluster.worker_pool import SilenceLog, WorkerPool, describe_exit  # noqa: E402
from chess_snn.tasks.cluster.worker_setup import DASK_SETTINGS  # noqa: E402
from chess_snn.tasks.remote import attempt, device_of  # noqa: E402


def frozen(log: SilenceLog, after_s: float) -> set[str]:
    return {name for name, silent_s in log.silent_s.items() if silent_s >= after_s}


def test_a_worker_is_frozen_once_it_was_silent_for_long_enough() -> None:
    log = SilenceLog()
    for second in range(31):
        log.look({"well": float(second), "ill": 5.0}, now_s=100.0 + second)
    assert frozen(log, after_s=30.0) == {"ill"}
    assert frozen(log, after_s=30.5) == set()


@pytest.mark.fault(19)
@pytest.mark.parametrize("jump_s", [3600.0, -3600.0])
def test_a_jump_of_the_clock_that_workers_are_seen_by_freezes_nobody(jump_s: float) -> None:
    log = SilenceLog()
    for second in range(60):
        seen = 100.0 + second + (jump_s if second >= 30 else 0.0)
        log.look({"a": seen, "b": seen}, now_s=float(second))
        assert frozen(log, after_s=5.0) == set()


@pytest.mark.fault(19)
def test_a_look_after_a_long_pause_freezes_nobody() -> None:
    """Continue as after the sleep of a laptop, or a campaign that was stopped and continued."""
    log = SilenceLog()
    log.look({"a": 1.0}, now_s=0.0)
    log.look({"a": 1.0}, now_s=1.0)
    log.look({"a": 1.0}, now_s=5000.0)
    assert frozen(log, after_s=10.0) == set()


def test_a_sign_of_life_and_a_new_process_begin_anew() -> None:
    log = SilenceLog()
    for second in range(8):
        log.look({"a": 1.0}, now_s=float(second))
    assert frozen(log, after_s=5.0) == {"a"}
    log.look({"a": 2.0, "b": 1.0}, now_s=8.0)
    assert frozen(log, after_s=1.0) == set()


@pytest.mark.parametrize(("values", "text"), [
    ({"exit_code": -11}, "SIGSEGV"), ({"exit_code": 3}, "code 3"),
    ({"exit_code": -50}, "signal 50"),
    ({"exit_code": -15, "is_over_budget": True}, "95 %"),
])
def test_an_end_is_told_in_words(values: dict[str, object], text: str) -> None:
    event = {"worker": 1, "oom_kills": 0, "is_over_budget": False} | values
    assert text in describe_exit(event)


@pytest.mark.fault(14)
def test_a_kill_by_the_kernel_for_want_of_memory_is_told_as_such(tmp_path: Path) -> None:
    vmstat = tmp_path / "vmstat"
    vmstat.write_text("nr_free_pages 1\noom_kill 41\noom_kill_disable 0\n")
    assert count_oom_kills(vmstat) == 41
    assert count_oom_kills(tmp_path / "missing") == 0
    event = {"worker": 0, "exit_code": -9, "oom_kills": 1, "is_over_budget": False}
    assert "memory" in describe_exit(event)
    assert "memory" not in describe_exit(event | {"oom_kills": 0})


def test_who_is_told_of_an_end_may_hang_and_dask_goes_on_bug() -> None:
    """It was told from Dask's loop, which the scheduler and the nannies may share."""
    may_go_on, is_told = threading.Event(), threading.Event()

    def tell(line: str) -> None:
        if "worker 1 was killed by SIGKILL" not in line:  # Dask's own worker is left unused
            return
        is_told.set()
        may_go_on.wait(60)

    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
        WorkerPool(client, tell).running(),
    ):
        event = {"worker": 1, "exit_code": -9, "oom_kills": 0, "is_over_budget": False}
        deadline = time.monotonic() + 30
        while not is_told.wait(0.1):  # the scheduler may hear first of the event, then of the watch
            assert time.monotonic() < deadline
            client.log_event(EXIT_TOPIC, event)
        try:
            assert client.submit(len, "abc").result(timeout=10) == 3
        finally:
            may_go_on.set()


@pytest.mark.slow
@pytest.mark.fault(1, 2)
def test_a_killed_and_a_frozen_worker_are_told_and_replaced() -> None:
    told: list[str] = []
    heard = threading.Event()

    def tell(line: str) -> None:
        told.append(line)
        heard.set()

    def await_line(part: str) -> None:
        while not any(part in line for line in told):
            assert heard.wait(120), told
            heard.clear()

    with (
        dask.config.set(DASK_SETTINGS),
        local_cluster(plan_here(load_config(settings=["execution.workers=1"])).slots) as cluster,
        Client(cluster) as client,
        WorkerPool(client, tell, frozen_after_s=5.0).running(),
    ):
        (first,) = pids(client)
        psutil.Process(first).kill()
        await_line("was killed by SIGKILL; another is started")
        client.wait_for_workers(1, timeout=120)
        (second,) = pids(client)
        assert second != first
        frozen = psutil.Process(second)
        frozen.send_signal(signal.SIGSTOP)
        await_line("has said nothing for 5 s: it is killed")
        frozen.wait(60)
        client.wait_for_workers(1, timeout=120)
        (third,) = pids(client)
        assert third not in {first, second}


@pytest.mark.slow
def test_a_process_whose_gpu_failed_is_replaced() -> None:
    """CUDA refuses everything after such an error, until the process ends."""
    failing = "import torch; raise torch.AcceleratorError('CUDA error: misaligned address')"
    with (
        dask.config.set(DASK_SETTINGS),
        local_cluster(plan_here(load_config(settings=["execution.workers=1"])).slots) as cluster,
        Client(cluster) as client,
    ):
        (first,) = pids(client)
        with pytest.raises(RuntimeError, match="misaligned") as error:
            client.submit(attempt, exec, failing, pure=False).result(timeout=120)
        assert device_of(error.value)
        psutil.Process(first).wait(60)
        client.wait_for_workers(1, timeout=120)
        assert client.submit(attempt, len, "abc").result(timeout=120).result == 3
        assert pids(client) != [first]


def test_a_worker_that_dies_again_much_later_is_not_given_up_bug() -> None:
    """Dask closes the nanny of one that is away at just that time after it was away before."""
    given_up_s = parse_timedelta(DASK_SETTINGS["distributed.deploy.lost-worker-timeout"])
    assert given_up_s > timedelta(days=3650).total_seconds()


def pids(client: Client) -> list[int]:
    return list(client.run(os.getpid).values())
