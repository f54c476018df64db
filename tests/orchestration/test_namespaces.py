"""The hosts that tests make: they see and reach what they should, and leave nothing."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from own_hosts import own_hosts

POLL_S = 0.02
PATIENCE_S = 1.5
ASK = "import socket; socket.create_connection(({!r}, 22), timeout={})"


def test_hosts_have_names_and_addresses_and_are_joined_by_a_cable(tmp_path: Path):
    with own_hosts(["box-x", "box-y"], tmp_path, {}) as hosts:
        one, other = hosts["box-x"], hosts["box-y"]
        name = [sys.executable, "-c", "import socket; print(socket.gethostname())"]
        assert [host.run(*name).stdout for host in (one, other)] == ["box-x\n", "box-y\n"]
        ask = [sys.executable, "-c", ASK.format(one.address, PATIENCE_S)]
        # Nobody listens there: the host answers that.
        assert "ConnectionRefusedError" in other.run(*ask).stderr
        one.pull_cable()
        silence = other.run(*ask).stderr
        assert "TimeoutError" in silence
        one.plug_cable()
        assert "ConnectionRefusedError" in other.run(*ask).stderr


def test_hosts_leave_neither_a_process_nor_a_mount_nor_a_network(tmp_path: Path):
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "file").write_text("x")
    before, pids = traces(), []

    def fail() -> None:
        with own_hosts(["box-x", "box-y"], tmp_path, {"box-y": [hidden]}) as hosts:
            for host in hosts.values():
                sleeper = host.start("sleep", "600", log=tmp_path / "log")
                pids.extend([host.pid, host.switch_pid, sleeper.pid])
            assert hosts["box-y"].run("ls", str(hidden)).stdout == ""
            assert hosts["box-x"].run("ls", str(hidden)).stdout == "file\n"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert traces() == before
    for pid in pids:
        assert is_gone(pid), Path(f"/proc/{pid}/cmdline").read_text()


def traces() -> tuple[set[str], str, str]:
    """What hosts could leave in this machine's own namespaces."""
    return (
        {entry.name for entry in Path("/sys/class/net").iterdir()},
        Path("/proc/mounts").read_text(),
        subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout,
    )


def is_gone(pid: int) -> bool:
    """Within a few seconds; children of this process are buried on the way."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(POLL_S)
    return False
