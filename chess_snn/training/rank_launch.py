"""Start ranks on this machine, and hear how it goes: torch's elastic agent in a child process.

The agent and its ranks end with this process, however it ends: the kernel tells them (Linux).
"""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chess_snn import errors, processes
from chess_snn.config import check_range
from chess_snn.data import read_json
from chess_snn.errors import ChessSnnError, RankLostError, UsageError
from chess_snn.training import rank_agent
from chess_snn.training.interfaces import interface_of
from chess_snn.types import LogFn

_LOOPBACK: Final = "127.0.0.1"
_MEETING_FILE: Final = "meeting"
"""Where the agent of one machine alone keeps what agents of several would meet at."""
_STOP_S: Final = 10
"""Seconds from SIGTERM to SIGKILL, of ranks by the agent; the agent itself has twice as long."""
_LOOK_S: Final = 0.5
"""How often it is asked whether ranks are still wanted."""


@dataclass(frozen=True, slots=True)
class RankLayout:
    """How many ranks there are, and where."""

    per_node: int
    """On each machine."""
    nodes: int = 1
    """Machines."""
    node_rank: int = 0
    """Which machine this is; the launcher of 0 keeps the store that ranks meet at."""
    endpoint: str = ""
    """``HOST:PORT`` of machine 0, as all machines reach it; one machine alone needs none."""
    address: str = ""
    """Of this machine, as the others reach it; else its full host name."""
    max_restarts: int = 0
    """How often all ranks are started again after one died."""

    def __post_init__(self) -> None:
        check_range("--nproc-per-node", self.per_node, ge=1, le=1024)
        check_range("--nnodes", self.nodes, ge=1, le=1024)
        check_range("--node-rank", self.node_rank, ge=0, lt=self.nodes)
        check_range("--max-restarts", self.max_restarts, ge=0, le=1000)
        host, _, port = self.endpoint.rpartition(":")
        if self.endpoint and not (host and port.isdecimal() and 0 < int(port) < 2**16):
            raise UsageError(
                f"--rdzv-endpoint {self.endpoint!r} is not HOST:PORT; try node-0:29400"
            )
        if self.nodes > 1 and not self.endpoint:
            raise UsageError(
                f"--nnodes {self.nodes} needs --rdzv-endpoint HOST:PORT, the same on each machine: "
                "the host of node rank 0, and a free port there"
            )

    @property
    def is_loopback(self) -> bool:
        """Whether nothing of the ranks listens where other machines could reach it."""
        return self.nodes == 1 and not self.endpoint and self.address in ("", _LOOPBACK)

    def agent_arguments(self, run_id: str, scratch: Path) -> list[str]:
        """What ``torchrun`` is given; ranks of one ``run_id`` belong together.

        Agents meet at a server of torch's, which unpickles what any client sends, on every
        network. One machine alone has a file in ``scratch`` instead.
        """
        is_first = "true" if self.node_rank == 0 else "false"
        address = self.address or (_LOOPBACK if self.nodes == 1 else "")
        local = ["--local-addr", address] if address else []
        endpoint, conf = self.endpoint or f"{_LOOPBACK}:0", f"is_host={is_first}"
        if self.is_loopback:
            endpoint, conf = str(scratch / _MEETING_FILE), "store_type=file"
        return [
            "--nnodes", str(self.nodes), "--nproc-per-node", str(self.per_node), *local,
            "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint,
            "--rdzv-id", run_id, "--rdzv-conf", conf,
            "--max-restarts", str(self.max_restarts),
        ]


def run_ranks(
    layout: RankLayout, run_id: str, module: str, arguments: Sequence[str],
    on_line: LogFn, is_wanted: Callable[[], bool] | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run ``python -m module arguments`` once for each rank of this machine, to their end.

    Args:
        layout: how many, and where.
        run_id: the same on all machines, and no other run's.
        module: the program; rank 0 alone prints.
        arguments: its arguments.
        on_line: called with each line that a rank prints.
        is_wanted: asked from a thread, twice a second; when it says no, the ranks are ended. Left
            out, they always are.
        environment: variables of the ranks beside those of this process.

    Raises:
        RankLostError: a rank or the agent died, froze or never came, or they were wanted no more;
            nothing is left running.
        ChessSnnError: a rank raised it.
    """
    with tempfile.TemporaryDirectory(prefix="chess-snn-ranks-") as scratch:
        failure, log = Path(scratch, rank_agent.FAILURE), Path(scratch, "log")
        command = [
            sys.executable, "-m", rank_agent.__name__, scratch,
            *layout.agent_arguments(run_id, Path(scratch)), "--log-dir", scratch, "-m", module,
            *arguments,
        ]
        with (
            log.open("wb") as stderr, _running(
                layout, command, stderr.fileno(), environment or {}
            ) as agent,
            _ended_when_unwanted(agent, is_wanted),
        ):
            assert agent.stdout is not None
            for line in agent.stdout:
                on_line(line.decode(errors="replace").rstrip("\n"))
            code = agent.wait()
        if code:
            raise _error(code, failure, log)


@contextmanager
def _running(
    layout: RankLayout, command: Sequence[str], stderr: int, further: Mapping[str, str]
) -> "Iterator[subprocess.Popen[bytes]]":
    environment = {
        "OMP_NUM_THREADS": "1", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(_STOP_S)
    } | os.environ | dict(further)
    if (interface := interface_of(_LOOPBACK if _LOOPBACK in command else layout.address)):
        # gloo would take the one that the host's name leads to, which may be loopback.
        environment.setdefault("GLOO_SOCKET_IFNAME", interface)
    if layout.is_loopback or layout.max_restarts:
        # The agent's store would listen on every network, where rank 0 keeps one on loopback; and
        # it would still hold, when all start again, what the ranks before them said.
        environment["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    agent = processes.start(
        command, environment=environment, stdout=subprocess.PIPE, stderr=stderr
    )
    try:
        yield agent
    finally:
        _stop(agent)


def _stop(agent: "subprocess.Popen[bytes]") -> None:
    """Stop it, and so its ranks; may be called again, and by two threads."""
    if agent.poll() is None:
        processes.stop(agent, 2 * _STOP_S)


@contextmanager
def _ended_when_unwanted(
    agent: "subprocess.Popen[bytes]", is_wanted: Callable[[], bool] | None
) -> Iterator[None]:
    if is_wanted is None:
        yield
        return
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_S):
            if not is_wanted():
                _stop(agent)
                return

    thread = threading.Thread(target=look, name="ranks-wanted", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _error(code: int, failure: Path, log: Path) -> ChessSnnError:
    """The error of the rank that failed first, or of the agent."""
    if not failure.exists():
        return RankLostError(
            f"the launcher of the ranks {processes.describe_exit(code)}; the end of its log:\n"
            f"{processes.log_tail(log)}"
        )
    told = read_json(failure)
    kind, message = str(told["kind"]), str(told["message"])
    of_ours = getattr(errors, kind, None)
    if isinstance(of_ours, type) and issubclass(of_ours, ChessSnnError):
        return of_ours(message)
    return RankLostError(f"a rank failed: {kind}: {message}")
