"""Errors before anything is begun with a scheduler: none, another program, another version."""

import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.timeout(60)]
pytest.importorskip("distributed")

from distributed import LocalCluster  # noqa: E402

from chess_snn.errors import ClusterError  # noqa: E402
from chess_snn.tasks.cluster import programs  # noqa: E402
from chess_snn.tasks.cluster.programs import check_scheduler  # noqa: E402
from chess_snn.tasks.cluster.security import make_certificates, read_certificates  # noqa: E402

LOOPBACK = "127.0.0.1"


@contextmanager
def scheduler(security=None):
    with LocalCluster(
        n_workers=0, processes=False, host=LOOPBACK, dashboard_address=None,
        protocol="tcp://" if security is None else "tls://", security=security,
    ) as cluster:
        yield cluster.scheduler_address


@contextmanager
def listening_port():
    with socket.create_server((LOOPBACK, 0)) as server:
        yield server.getsockname()[1]


def test_the_same_versions_are_fine_and_another_is_named_with_both_sides(monkeypatch):
    with scheduler() as address:
        check_scheduler(address, None)
        theirs = programs.distributed.__version__
        monkeypatch.setattr(programs.distributed, "__version__", "2020.1.0")
        with pytest.raises(ClusterError) as error:
            check_scheduler(address, None)
    assert f"{address} has distributed {theirs} (2020.1.0 here)" in str(error.value)


def test_nobody_there_is_said_with_the_address():
    with listening_port() as port:
        pass
    with pytest.raises(ClusterError, match=f"tcp://{LOOPBACK}:{port}"):
        check_scheduler(f"tcp://{LOOPBACK}:{port}", None, timeout_s=2.0)


def test_somebody_who_says_nothing_is_not_waited_for_long():
    with listening_port() as port, pytest.raises(ClusterError, match=str(port)):
        check_scheduler(f"tcp://{LOOPBACK}:{port}", None, timeout_s=2.0)


def test_another_kind_of_server_is_no_scheduler():
    server = HTTPServer((LOOPBACK, 0), BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with pytest.raises(ClusterError, match=str(server.server_port)):
            check_scheduler(f"tcp://{LOOPBACK}:{server.server_port}", None, timeout_s=2.0)
    finally:
        server.shutdown()
        server.server_close()


def test_other_certificates_are_refused(tmp_path):
    for name in ("ours", "theirs"):
        make_certificates(tmp_path / name)
    ours, theirs = (read_certificates(tmp_path / name) for name in ("ours", "theirs"))
    with scheduler(ours) as address:
        check_scheduler(address, ours)
        with pytest.raises(ClusterError, match=address):
            check_scheduler(address, theirs, timeout_s=3.0)
