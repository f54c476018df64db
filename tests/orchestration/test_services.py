"""Refusals of `up` before it starts anything, and how its record finds and spares processes."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")
pytest.importorskip("mlflow")

from chess_snn.credentials import Credentials, read_credentials  # noqa: E402
from chess_snn.errors import ConfigError, UsageError  # noqa: E402
from chess_snn.flows.server_records import claim_record, write_record  # noqa: E402
from chess_snn.flows.services import (  # noqa: E402
    RECORD_FILE,
    ServiceSettings,
    ServicesRecord,
    find_running,
    owned_folder,
    stop_services,
)
from chess_snn.flows.supervisor import (  # noqa: E402
    client_environment,
    mlflow_spec,
    prefect_spec,
    worker_spec,
)
from chess_snn.ports import check_port  # noqa: E402

SECRET = "canary-password"
CREDENTIALS = Credentials("me", SECRET)

SUPERVISOR = """
import os, sys, time
from pathlib import Path
from socket import gethostname
from chess_snn.flows.server_records import write_record
from chess_snn.flows.services import ServicesRecord, owned_folder
with owned_folder(Path(sys.argv[1])) as file:
    write_record(file, ServicesRecord(gethostname(), os.getpid(), "", ""))
    print("up", flush=True)
    time.sleep(60)
"""


def record_of(pid: int, machine: str | None = None) -> ServicesRecord:
    return ServicesRecord(
        machine=machine or socket.gethostname(), pid=pid,
        prefect_url="http://127.0.0.1:4200/api", mlflow_url="http://127.0.0.1:5000",
    )


def leave_record(directory: Path, record: ServicesRecord) -> None:
    """Claim as a process does that is killed afterwards."""
    with claim_record(directory / RECORD_FILE) as file:
        write_record(file, record)


@pytest.mark.parametrize(("changes", "named"), [
    ({"host": "192.0.2.7"}, "CHESS_SNN_CREDENTIALS"), ({"host": "gpu-box"}, "gpu-box"),
    ({"host": "0.0.0.0", "credentials": CREDENTIALS}, "'0.0.0.0'"), ({"host": "::1"}, "::1"),
    ({"prefect_port": 0}, "--prefect-port"), ({"mlflow_port": 4200}, "4200"),
    ({"runs": 0}, "--runs"),
])
def test_settings_that_cannot_work_are_refused(changes, named):
    with pytest.raises(ConfigError, match=named):
        ServiceSettings(**changes)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost"])
def test_loopback_needs_no_password(host):
    assert ServiceSettings(host=host).credentials is None


@pytest.mark.parametrize("text", ["nobody", ":long-enough-password", "me:short"])
def test_credentials_that_are_none(monkeypatch, text):
    monkeypatch.setenv("CHESS_SNN_CREDENTIALS", text)
    with pytest.raises(ConfigError, match="CHESS_SNN_CREDENTIALS") as refused:
        read_credentials()
    assert text not in str(refused.value)


def test_a_password_may_have_colons(monkeypatch):
    monkeypatch.setenv("CHESS_SNN_CREDENTIALS", "me:with:colons:in:it")
    assert read_credentials() == Credentials("me", "with:colons:in:it")
    monkeypatch.delenv("CHESS_SNN_CREDENTIALS")
    assert read_credentials() is None


def test_a_secret_is_in_no_command_file_or_text(tmp_path, monkeypatch):
    monkeypatch.setattr("chess_snn.flows.supervisor.find_spec", lambda _: True)
    settings = ServiceSettings(host="192.0.2.7", credentials=CREDENTIALS)
    specs = [prefect_spec(tmp_path, settings), mlflow_spec(tmp_path, settings),
             worker_spec(tmp_path, settings)]
    for spec in specs:
        assert SECRET not in " ".join(spec.command)
        assert any(SECRET in value for value in spec.environment.values()), "it has to have it"
    assert SECRET not in repr(settings)
    for path in tmp_path.rglob("*"):
        assert SECRET.encode() not in path.read_bytes()
    assert client_environment(tmp_path, settings)["PREFECT_API_AUTH_STRING"] == f"me:{SECRET}"


def test_without_mlflows_extra_a_password_is_refused_beforehand(tmp_path, monkeypatch):
    monkeypatch.setattr("chess_snn.flows.supervisor.find_spec", lambda _: None)
    with pytest.raises(UsageError):
        mlflow_spec(tmp_path, ServiceSettings(credentials=CREDENTIALS))


def test_a_port_in_use_is_named_with_the_way_out():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"{port}.*--mlflow-port"):
            ServiceSettings(mlflow_port=port, prefect_port=port - 1 or 1).check_ports()


@pytest.mark.parametrize("host", ["192.0.2.7", "no-such-host.invalid", "a" * 70])
def test_an_address_that_is_not_this_machines(host):
    with pytest.raises(UsageError, match=f"{host}.*--host"):
        check_port(host, 45_678, "Prefect server", "--prefect-port")


def test_a_free_port_is_free_again_afterwards():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for _ in range(2):
        check_port("127.0.0.1", port, "Prefect server", "--prefect-port")


def test_a_living_supervisor_is_found(tmp_path):
    this = record_of(os.getpid())
    with owned_folder(tmp_path) as file:
        write_record(file, this)
        assert find_running(tmp_path) == this
    assert find_running(tmp_path) is None


def test_a_process_that_has_the_id_of_a_dead_supervisor_is_not_found_and_left_alone(tmp_path):
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    stranger = subprocess.Popen(sleep, start_new_session=True)
    try:
        leave_record(tmp_path, record_of(stranger.pid))
        assert find_running(tmp_path) is None
        assert stop_services(tmp_path) is False
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_services_of_another_machine_are_named_and_left_to_it(tmp_path):
    with owned_folder(tmp_path) as file:
        write_record(file, record_of(1, machine="elsewhere"))
        assert find_running(tmp_path) is None
        assert stop_services(tmp_path) is False
        with pytest.raises(UsageError, match="elsewhere"), owned_folder(tmp_path):
            pytest.fail("two at once")


def test_down_ends_the_supervisor(tmp_path):
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, tmp_path], stdout=subprocess.PIPE, text=True
    )
    try:
        assert supervisor.stdout.readline() == "up\n"
        assert stop_services(tmp_path) is True
        supervisor.wait(timeout=10)  # its threads may end a moment after it
    finally:
        supervisor.kill()
        supervisor.wait()
    assert stop_services(tmp_path) is False


def test_a_second_supervisor_on_the_folder_is_refused(tmp_path):
    with (
        owned_folder(tmp_path),
        pytest.raises(UsageError),
        owned_folder(tmp_path),
    ):
        pytest.fail("two at once")
    with owned_folder(tmp_path):
        pass
