"""No exit from a block leaves its server behind; shown on the smallest real server there is."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

pytestmark = pytest.mark.orchestration
psutil = pytest.importorskip("psutil")

from waiting import GONE_WITHIN_S, wait_for  # noqa: E402

from chess_snn import processes  # noqa: E402
from chess_snn.errors import UsageError  # noqa: E402
from chess_snn.flows import server_processes  # noqa: E402
from chess_snn.flows.server_processes import (  # noqa: E402
    HOST,
    Server,
    ServerInUseError,
    ServerSpec,
    ServerStartError,
    is_healthy,
    running_server,
)
from chess_snn.flows.server_records import claim_record  # noqa: E402
from chess_snn.ports import free_port  # noqa: E402

ELSEWHERE = (
    "unshare", "--map-root-user", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "sh",
)
"""Runs a command as on a machine of that name, with the same disk."""

PARENT = """
import sys, time
from pathlib import Path
from tests_support import web_server
from chess_snn.flows.server_processes import running_server
with running_server(web_server(Path(sys.argv[1])), start_timeout_s=20):
    print("up", flush=True)
    time.sleep(60)
"""


def web_server(directory: Path, arguments: tuple[str, ...] = ()) -> ServerSpec:
    port = free_port()
    command = [sys.executable, "-m", "http.server", str(port), "--bind", HOST, *arguments]
    return ServerSpec(
        name="test server", command=command, environment={}, log_file=directory / "server.log",
        url=f"http://{HOST}:{port}", health_url=f"http://{HOST}:{port}/",
    )


@contextmanager
def owner_of_server(directory: Path, *launcher: str) -> Iterator[subprocess.Popen]:
    """A process that holds a server open: up in the block, and killed at its end."""
    program = PARENT.replace("tests_support", Path(__file__).stem)
    parent = subprocess.Popen(
        [*launcher, sys.executable, "-c", program, directory],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, Path(__file__).parents[:2]))},
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    )
    try:
        assert parent.stdout.readline() == "up\n"
        yield parent
    finally:
        parent.kill()
        parent.wait()


def recorded_server(directory: Path) -> "psutil.Process":
    return psutil.Process(json.loads((directory / "server.json").read_text())["pid"])


def recorded_port(directory: Path) -> str:
    return json.loads((directory / "server.json").read_text())["url"].rpartition(":")[2]


def wait_until_gone(process: "psutil.Process") -> None:
    """Looks only: to wait for a child is to take its exit status from its owner."""
    wait_for(
        lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE,
        "it is still there", GONE_WITHIN_S,
    )


def is_free(directory: Path) -> bool:
    """Whether no process owns the server's record."""
    file = claim_record(directory / "server.json")
    if file is not None:
        file.close()
    return file is not None


def test_the_server_answers_inside_the_block_and_is_gone_after_it(tmp_path):
    told = []
    with running_server(web_server(tmp_path), tell=told.append, start_timeout_s=20) as url:
        server = recorded_server(tmp_path)
        assert urllib.request.urlopen(url).status == 200
        assert os.getsid(server.pid) == server.pid, "a Ctrl-C of the terminal would reach it"
        assert not is_free(tmp_path)
    assert not server.is_running()
    assert is_free(tmp_path)
    assert ["test server" in line for line in told] == [True]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_exception_in_the_block_ends_the_server(tmp_path, error):
    seen = []

    def fail_inside():
        with running_server(web_server(tmp_path), start_timeout_s=20):
            seen.append(recorded_server(tmp_path))
            raise error

    with pytest.raises(error):
        fail_inside()
    assert not seen[0].is_running()


@pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux's")
def test_a_killed_parent_ends_the_server(tmp_path):
    with owner_of_server(tmp_path) as parent:
        server = recorded_server(tmp_path)
        os.killpg(parent.pid, signal.SIGKILL)
        wait_until_gone(server)


def test_a_launcher_whose_parent_has_died_already_does_not_start_the_command():
    stranger = os.getppid()
    launched = subprocess.run(
        [sys.executable, processes.__file__, str(stranger), "echo", "started"],
        stdout=subprocess.PIPE, check=False,
    )
    assert (launched.returncode, launched.stdout) == (processes.PARENT_IS_DEAD, b"")


def test_a_server_that_dies_early_is_reported_with_its_log(tmp_path):
    with (
        pytest.raises(ServerStartError, match="--no-such-option"),
        running_server(web_server(tmp_path, ("--no-such-option",)), start_timeout_s=20),
    ):
        pytest.fail("it cannot have come up")


def test_a_server_that_is_never_healthy_is_ended_in_time(tmp_path):
    spec = web_server(tmp_path, ("--directory", str(tmp_path / "missing")))
    server = Server(spec)
    try:
        deadline = time.monotonic() + 60  # a loaded machine takes its time
        while "File not found" not in spec.log_file.read_text():
            assert not is_healthy(spec.health_url)
            assert time.monotonic() < deadline
            time.sleep(0.02)
        with pytest.raises(ServerStartError):
            server.wait_until_healthy(0.0)
    finally:
        server.stop()
    assert server.process.poll() is not None
    assert is_free(tmp_path)


APP = """
import os
from pathlib import Path

def create_app():
    if Path("broken").exists():
        raise SystemExit(3)

    async def app(scope, receive, send):
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": str(os.getpid()).encode()})

    return app
"""


def asgi_server(directory: Path) -> ServerSpec:
    """One that takes its socket over; its answer is its process id."""
    (directory / "app.py").write_text(APP)
    port = free_port()
    uvicorn = [
        sys.executable, "-m", "uvicorn", "--app-dir", ".", "--factory", "app:create_app",
        "--lifespan", "off", "--host", HOST, "--port", str(port),
    ]
    return replace(
        web_server(directory), url=f"http://{HOST}:{port}", health_url=f"http://{HOST}:{port}/",
        command=["sh", "-c", f'cd {directory} && exec "$@"', "sh", *uvicorn],
        listens_on=(HOST, port),
    )


def answer_of(url: str) -> int:
    """The process that answers; waits for it, and never asks again."""
    return int(urllib.request.urlopen(url, timeout=30).read())


def test_a_killed_server_is_started_again_and_clients_wait_for_it(tmp_path):
    told = []
    with running_server(asgi_server(tmp_path), tell=told.append, start_timeout_s=30) as url:
        pids = [answer_of(url)]
        for _ in range(2):
            os.killpg(pids[-1], signal.SIGKILL)
            wait_until_gone(psutil.Process(pids[-1]))
            pids.append(answer_of(url))
            assert recorded_server(tmp_path).pid == pids[-1]
        left = psutil.Process(pids[-1])
    assert len(set(pids)) == 3
    assert len(told) == 1 + 2, "a line for each start"
    wait_until_gone(left)
    assert is_free(tmp_path)


def test_a_server_that_ends_again_and_again_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(server_processes, "MOST_RESTARTS", 2)
    monkeypatch.setattr(server_processes, "WATCH_PERIOD_S", 0.1)
    told = []
    with running_server(asgi_server(tmp_path), tell=told.append, start_timeout_s=30) as url:
        (tmp_path / "broken").touch()
        os.killpg(answer_of(url), signal.SIGKILL)
        with pytest.raises(OSError, match=r"refused|reset"):  # noqa: PT012
            while True:
                answer_of(url)
    assert len(told) == 1 + 2 + 1, "a line for each start, and a last one"
    assert is_free(tmp_path)


def test_a_port_that_another_program_has_is_one_line(tmp_path):
    spec = asgi_server(tmp_path)
    with socket.create_server(spec.listens_on), pytest.raises(ServerStartError):
        Server(spec)
    assert is_free(tmp_path)


def test_a_server_that_is_killed_while_it_starts_is_started_again(tmp_path):
    server = Server(asgi_server(tmp_path))
    try:
        first = server.process.pid
        os.killpg(first, signal.SIGKILL)
        server.wait_until_healthy(30)
        assert answer_of(server.spec.url) == server.process.pid != first
    finally:
        server.stop()


def test_the_server_of_a_live_owner_is_shared_and_left_running(tmp_path):
    told = []
    with owner_of_server(tmp_path) as parent:
        server = recorded_server(tmp_path)
        with pytest.raises(ServerInUseError):
            Server(web_server(tmp_path))
        with running_server(web_server(tmp_path), tell=told.append, start_timeout_s=20) as url:
            assert urllib.request.urlopen(url).status == 200
        assert [str(parent.pid) in line for line in told] == [True]
        assert server.is_running()
        assert recorded_server(tmp_path) == server


@contextmanager
def starting_server(directory: Path, delay_s: float) -> Iterator[ServerSpec]:
    """One that listens after ``delay_s`` only, which nothing waits for."""
    spec = web_server(directory)
    spec = replace(spec, command=["sh", "-c", f'sleep {delay_s}; exec "$@"', "sh", *spec.command])
    server = Server(spec)
    try:
        yield spec
    finally:
        server.stop()


def test_a_shared_server_that_is_still_starting_is_awaited(tmp_path):
    with (
        starting_server(tmp_path, 1.0) as starting,
        running_server(web_server(tmp_path), start_timeout_s=20) as url,
    ):
        assert url == starting.url
        assert urllib.request.urlopen(url).status == 200


def test_a_shared_server_that_never_answers_is_waited_for_in_time_and_left_alone(tmp_path):
    with starting_server(tmp_path, 60.0):
        with (
            pytest.raises(ServerStartError),
            running_server(web_server(tmp_path), start_timeout_s=0.5),
        ):
            pytest.fail("it cannot have answered")
        assert recorded_server(tmp_path).is_running()


@pytest.mark.slow
def test_a_server_whose_owner_dies_while_it_is_awaited_is_replaced(tmp_path):
    with owner_of_server(tmp_path) as parent:
        left = recorded_server(tmp_path)
        left.suspend()  # it answers no more
        threading.Timer(1.0, parent.kill).start()
        with running_server(web_server(tmp_path), start_timeout_s=30):
            assert recorded_server(tmp_path) != left
    wait_until_gone(left)


@pytest.fixture
def on_another_machine(tmp_path):
    has_names = shutil.which("unshare") and shutil.which("hostname")
    if not has_names or subprocess.run([*ELSEWHERE, "true"], check=False).returncode:
        pytest.skip("no host names of one's own here")
    with owner_of_server(tmp_path, *ELSEWHERE) as parent:
        yield parent


@pytest.mark.slow
def test_the_server_of_another_machine_is_named_and_left_to_it(tmp_path, on_another_machine):
    server, port = recorded_server(tmp_path), recorded_port(tmp_path)
    told = (
        f"process {on_another_machine.pid} on elsewhere.*ssh -L {port}:127.0.0.1:{port} elsewhere"
    )
    with (
        pytest.raises(UsageError, match=told),
        running_server(web_server(tmp_path), start_timeout_s=20),
    ):
        pytest.fail("a second server on the same data")
    assert server.is_running()
    assert recorded_server(tmp_path) == server


@pytest.mark.slow
def test_what_a_machine_that_is_gone_has_left_is_in_nobodys_way(tmp_path, on_another_machine):
    left = recorded_server(tmp_path)
    on_another_machine.kill()
    on_another_machine.wait()
    wait_until_gone(left)
    assert (tmp_path / "server.json").exists()
    with running_server(web_server(tmp_path), start_timeout_s=20):
        assert recorded_server(tmp_path) != left


def test_a_stale_server_is_stopped(tmp_path):
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    orphan = subprocess.Popen(sleep, start_new_session=True)
    write_record(tmp_path, orphan.pid, psutil.Process(orphan.pid).create_time())
    assert is_free(tmp_path)
    assert orphan.poll() is not None


def test_a_process_that_reuses_the_recorded_pid_is_left_alone(tmp_path):
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        write_record(tmp_path, stranger.pid, psutil.Process(stranger.pid).create_time() - 60)
        assert is_free(tmp_path)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("text", ["", '{"pid": 1', '{"pid": 1}', "[]"])
def test_a_record_cut_short_is_dropped(tmp_path, text):
    (tmp_path / "server.json").write_text(text)
    assert is_free(tmp_path)


def write_record(directory: Path, pid: int, started: float) -> None:
    """A record whose owner is dead."""
    record = {"pid": pid, "started": started, "owner_pid": os.getpid(), "url": "",
              "health_url": "", "machine": socket.gethostname()}
    (directory / "server.json").write_text(json.dumps(record))
