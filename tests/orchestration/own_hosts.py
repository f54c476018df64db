"""Hosts of our own on one machine: namespaces with a network, a name, processes and mounts each.

::

    with own_hosts(["box-a", "box-b"], hidden={"box-b": campaigns}) as hosts:
        hosts["box-b"].start("chess-snn", "cluster", "worker", …, log=log)
        hosts["box-b"].pull_cable()

They are joined by a switch and reach nothing else. The kernel ends all their processes, and removes
networks and mounts, with the first process of each host; and that one with this process.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest

NETWORK = "10.77.0"
TOOLS = ("ip", "mount", "nsenter", "setpriv", "unshare")
ENDING_S = 30
PIDS_EACH = 10_000
"""Distance between the first process ids of two hosts, so that an id names one process of all."""
FIRST_PROCESS = """
set -e
echo "$1" > /proc/sys/kernel/hostname
echo "$2" > /proc/sys/kernel/ns_last_pid
ip link set lo up
shift 2
for folder in "$@"; do mount -t tmpfs none "$folder"; done
echo ready
exec sleep infinity
"""


@dataclass(frozen=True)
class Host:
    """One of them."""

    name: str
    address: str
    pid: int
    """Id of its first process."""
    switch_pid: int
    work: Path
    """Its own folder for temporary files."""

    def start(
        self, *command: str, log: Path, environment: Mapping[str, str] = MappingProxyType({})
    ) -> subprocess.Popen[bytes]:
        """Run a command there, ``environment`` added; it ends with the host at the latest."""
        inherited = {
            k: v for k, v in os.environ.items() if not k.startswith(("PREFECT", "MLFLOW"))
        }
        with log.open("ab") as output:
            return subprocess.Popen(
                [*_enter(self.pid, "--net", "--mount", "--uts", "--pid"), *command],
                stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                env=inherited | {"TMPDIR": str(self.work)} | dict(environment),
                start_new_session=True,
            )

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a short command there to its end."""
        return subprocess.run(
            [*_enter(self.pid, "--net", "--mount", "--uts", "--pid"), *command],
            capture_output=True, text=True, timeout=60, check=False,
        )

    def pull_cable(self) -> None:
        """Nothing comes or goes from now on, and nobody is told."""
        self._set_port("down")

    def plug_cable(self) -> None:
        """Connect it as before."""
        self._set_port("up")

    def _set_port(self, state: str) -> None:
        _call(*_enter(self.switch_pid, "--net"), "ip", "link", "set", self.name, state)


@contextmanager
def own_hosts(
    names: Sequence[str], base: Path, hidden: Mapping[str, Sequence[Path]]
) -> Iterator[dict[str, Host]]:
    """Have hosts of ``names`` for the length of the block; skips the test where none can be made.

    Args:
        names: at most 13 characters each.
        base: each host gets a folder there, for temporary files.
        hidden: folders that a host sees empty.
    """
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(
            "HOSTS OF OUR OWN WERE NOT TESTED: they need root and Linux's "
            f"{', '.join(missing or TOOLS)}"
        )
    with ExitStack() as stack:
        switch = stack.enter_context(_first_process("switch", 0, []))
        in_switch = _enter(switch, "--net")
        _call(*in_switch, "ip", "link", "add", "bridge", "type", "bridge")
        _call(*in_switch, "ip", "link", "set", "bridge", "up")
        hosts = {}
        for number, name in enumerate(names, start=1):
            pid = stack.enter_context(_first_process(name, number, hidden.get(name, ())))
            _call(*in_switch, "ip", "link", "add", name, "type", "veth",
                  "peer", "name", "eth0", "netns", str(pid))
            _call(*in_switch, "ip", "link", "set", name, "master", "bridge", "up")
            address = f"{NETWORK}.{number}"
            in_host = _enter(pid, "--net")
            _call(*in_host, "ip", "address", "add", f"{address}/24", "dev", "eth0")
            _call(*in_host, "ip", "link", "set", "eth0", "up")
            work = base / f"work-{name}"
            work.mkdir()
            hosts[name] = Host(name, address, pid, switch, work)
        yield hosts


@contextmanager
def _first_process(name: str, number: int, hidden: Sequence[Path]) -> Iterator[int]:
    starter = subprocess.Popen(
        [
            "setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--uts", "--pid",
            "--fork", "--kill-child", "--mount-proc", "sh", "-c", FIRST_PROCESS, "sh", name,
            str(PIDS_EACH * number + 1), *map(str, hidden),
        ],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    try:
        assert starter.stdout is not None
        assert starter.stderr is not None
        if starter.stdout.readline() != "ready\n":
            pytest.skip(
                f"HOSTS OF OUR OWN WERE NOT TESTED: no namespaces here: {starter.stderr.read()}"
            )
        children = Path(f"/proc/{starter.pid}/task/{starter.pid}/children").read_text()
        pid = int(children.split()[0])
        try:
            yield pid
        finally:
            os.kill(pid, signal.SIGKILL)
            starter.wait(ENDING_S)  # buries it
    finally:
        starter.kill()
        starter.communicate()


def _enter(pid: int, *namespaces: str) -> list[str]:
    return ["nsenter", "--target", str(pid), *namespaces, f"--wd={Path.cwd()}", "--"]


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
