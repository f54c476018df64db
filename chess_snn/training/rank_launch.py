"""Start ranks on this machine, follow their progress, and end all of them when one fails.

They end with this process, however it ends (Linux).
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import IO, Final

import psutil
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from chess_snn import errors, processes
from chess_snn.config import check_range
from chess_snn.errors import ChessSnnError, RankLostError, UsageError
from chess_snn.training.ranks import LINE, STEPS, TIMEOUT_S, error_key
from chess_snn.types import LogFn, Progress

_LOOPBACK: Final = "127.0.0.1"
_POLL_S: Final = 0.2
_CONNECT_S: Final = 5.0
_STOP_S: Final = 2.0
"""Seconds from SIGTERM to SIGKILL: a rank has nothing to clean up."""
_LOG_TAIL_LINES: Final = 15
_ENDPOINT: Final = re.compile(r"\d{1,3}(\.\d{1,3}){3}:\d{1,5}")


@dataclass(frozen=True, slots=True)
class RankLayout:
    """How many ranks there are, and where."""

    number: int
    """On this machine."""
    first: int = 0
    """The lowest rank on this machine."""
    size: int = 0
    """Ranks on all machines; 0 if this is the only one."""
    endpoint: str = ""
    """``ADDRESS:PORT`` where the machine of rank 0 keeps the store; empty for one machine."""

    @classmethod
    def of_node(cls, number: int, nodes: int, node: int, endpoint: str) -> "RankLayout":
        """The layout of machine ``node`` of ``nodes``, each with ``number`` ranks.

        Raises:
            ConfigError: a number is out of range.
            UsageError: the endpoint is missing or not ``ADDRESS:PORT``.
        """
        check_range("--nproc-per-node", number, ge=1, le=1024)
        check_range("--nnodes", nodes, ge=1, le=1024)
        check_range("--node-rank", node, ge=0, lt=nodes)
        # Not a name: on the machine of that name it may lead to loopback.
        if (nodes > 1 or endpoint) and not _ENDPOINT.fullmatch(endpoint):
            raise UsageError(
                f"--nnodes {nodes} needs --rdzv-endpoint ADDRESS:PORT, the same on each machine: "
                "the IPv4 address of node rank 0 and a free port there, such as 10.0.0.5:29400; "
                f"got {endpoint!r}"
            )
        return cls(number, node * number, nodes * number, endpoint)


def run_ranks(
    layout: RankLayout, module: str, arguments: Sequence[str], *,
    on_line: LogFn | None = None, on_progress: Progress | None = None,
    is_wanted: Callable[[], bool] = lambda: True, timeout_s: float = TIMEOUT_S,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run ``python -m module arguments`` once for each rank of this machine, to their end.

    Args:
        layout: how many, and where.
        module: the program.
        arguments: its arguments.
        on_line: called with the lines that rank 0 tells, if rank 0 is on this machine.
        on_progress: called likewise with (steps done, steps in all).
        is_wanted: asked every few seconds; if it returns False, the ranks are ended.
        timeout_s: how long to wait for the machine of rank 0.
        environment: variables of the ranks beside those of this process.

    Raises:
        RankLostError: a rank died, froze or never came, or they are not wanted any more; none is
            left running.
        ChessSnnError: a rank raised it.
    """
    store = _open_store(layout) if not layout.first else _reach_store(layout, is_wanted, timeout_s)
    listeners: dict[str, LogFn] = {}
    if on_line is not None and not layout.first:
        listeners[LINE] = on_line
    if on_progress is not None and not layout.first:
        listeners[STEPS] = lambda text: on_progress(*map(int, text.split()))
    told = dict.fromkeys(listeners, "")
    with tempfile.TemporaryFile() as log, ExitStack() as stack:
        ranks = []
        for number in range(layout.number):
            ranks.append(processes.start(
                [sys.executable, "-m", module, *arguments], stdout=subprocess.DEVNULL, stderr=log,
                environment=_variables(layout, number, store) | dict(environment or {}),
            ))
            stack.callback(processes.stop, ranks[-1], _STOP_S)
        codes: list[int | None] = [None]
        while None in codes:
            time.sleep(_POLL_S)
            codes = [rank.poll() for rank in ranks]
            for key, listener in listeners.items():
                text = _read(store, key)
                if text != told[key]:
                    told[key] = text
                    listener(text)
            if any(codes):
                raise _error(layout, ranks, store, log)
            if not is_wanted():
                raise RankLostError("the ranks were ended because their result is not wanted")


def _open_store(layout: RankLayout) -> TCPStore:
    """The store that ranks meet at, on the machine of rank 0.

    It listens on the address of the endpoint, or on loopback: by itself torch would listen on every
    network, without authentication.

    Raises:
        UsageError: this machine cannot listen there.
    """
    host, _, port = layout.endpoint.rpartition(":")
    try:
        with socket.create_server((host or _LOOPBACK, int(port or 0))) as server:
            return TCPStore(
                host or _LOOPBACK, server.getsockname()[1], is_master=True, wait_for_workers=False,
                master_listen_fd=server.detach(),
            )
    except OSError as error:
        raise UsageError(
            f"cannot listen on {layout.endpoint}, where ranks meet: {error.strerror}; node rank 0 "
            "must be the machine with that address, and the port must be free"
        ) from error


def _reach_store(layout: RankLayout, is_wanted: Callable[[], bool], timeout_s: float) -> TCPStore:
    """The same on another machine.

    Raises:
        RankLostError: the machine of rank 0 cannot be reached.
    """
    host, _, port = layout.endpoint.rpartition(":")
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return TCPStore(
                host, int(port), is_master=False, wait_for_workers=False,
                timeout=timedelta(seconds=_CONNECT_S),
            )
        except RuntimeError as error:
            if time.monotonic() > deadline or not is_wanted():
                raise RankLostError(
                    f"cannot reach {layout.endpoint}, where ranks meet ({error}); start the ranks "
                    "of node rank 0, and check that its port can be reached"
                ) from error


def _variables(layout: RankLayout, number: int, store: TCPStore) -> dict[str, str]:
    """Those that torchrun sets, and the network that the ranks exchange by."""
    defaults = {"GLOO_SOCKET_IFNAME": _interface_towards(store.host), "OMP_NUM_THREADS": "1"}
    return defaults | os.environ | {
        "RANK": str(layout.first + number),
        "WORLD_SIZE": str(layout.size or layout.number),
        "LOCAL_RANK": str(number),
        "LOCAL_WORLD_SIZE": str(layout.number),
        "MASTER_ADDR": store.host,
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }


def _interface_towards(host: str) -> str:
    """The network interface by which this machine reaches ``host``, which may be itself.

    gloo would take the one that the own host name leads to.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 1))  # sends nothing
        own_address = probe.getsockname()[0]
    interface: str = next(
        name for name, addresses in psutil.net_if_addrs().items()
        if any(each.address == own_address for each in addresses)
    )
    return interface


def _read(store: TCPStore, key: str) -> str:
    """What a rank told under ``key``; empty if nothing, or if the machine of rank 0 has ended."""
    try:
        return store.get(key).decode() if store.check([key]) else ""
    except RuntimeError:
        return ""


def _error(
    layout: RankLayout, ranks: "Sequence[subprocess.Popen[bytes]]", store: TCPStore, log: IO[bytes]
) -> ChessSnnError:
    """The error of the rank that failed first; the others only found it lost."""
    told: list[ChessSnnError] = []
    for rank, process in enumerate(ranks, layout.first):
        code = process.returncode or 0
        if text := _read(store, error_key(rank)):
            kind, message = json.loads(text)
            told.append(getattr(errors, kind)(message))
        elif code:
            log.seek(0)
            tail = b"\n".join(log.read().splitlines()[-_LOG_TAIL_LINES:]).decode(errors="replace")
            # A killed process wrote nothing about it; an aborted one did.
            end = "" if code == -signal.SIGKILL else f"; the end of its log:\n{tail}"
            return RankLostError(
                f"rank {rank} (process {process.pid}) {processes.describe_exit(code)}{end}"
            )
    return min(told, key=lambda error: isinstance(error, RankLostError))
