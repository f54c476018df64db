"""Start ranks on this machine, follow their progress, and end all of them when one fails.

They end with this process, however it ends (Linux).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Final

import psutil

from chess_snn import errors, processes
from chess_snn.errors import ChessSnnError, RankLostError
from chess_snn.later import torch
from chess_snn.ports import LOOPBACK
from chess_snn.training.ranks import LINE, STEPS, error_key
from chess_snn.types import LogFn, Progress

if TYPE_CHECKING:
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

_POLL_S: Final = 0.2
_STOP_S: Final = 2.0
"""Seconds from SIGTERM to SIGKILL: a rank has nothing to clean up."""


def run_ranks(
    number: int, module: str, arguments: Sequence[str], *, on_line: LogFn | None = None,
    on_progress: Progress | None = None, environment: Mapping[str, str] | None = None,
) -> None:
    """Run ``python -m module arguments`` as each of ``number`` ranks, to their end.

    Args:
        number: ranks, all on this machine.
        module: the program.
        arguments: its arguments.
        on_line: called with the lines that rank 0 tells.
        on_progress: called likewise with (steps done, steps in all).
        environment: variables of the ranks beside those of this process.

    Raises:
        RankLostError: a rank died, froze or never came; none is left running.
        ChessSnnError: a rank raised it.
    """
    store = _open_store()
    listeners: dict[str, LogFn] = {}
    if on_line is not None:
        listeners[LINE] = on_line
    if on_progress is not None:
        listeners[STEPS] = lambda text: on_progress(*map(int, text.split()))
    told = dict.fromkeys(listeners, "")
    with tempfile.TemporaryFile() as log, ExitStack() as stack:
        ranks = []
        for rank in range(number):
            ranks.append(processes.start(
                [sys.executable, "-m", module, *arguments], stdout=subprocess.DEVNULL, stderr=log,
                environment=_variables(rank, number, store) | dict(environment or {}),
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
                raise _error(ranks, store, log)


def _open_store() -> TCPStore:
    """The store that ranks meet at.

    It listens on loopback: by itself torch would listen on every network, without authentication.
    """
    with socket.create_server((LOOPBACK, 0)) as server:
        return torch.distributed.TCPStore(  # type: ignore[attr-defined]
            LOOPBACK, server.getsockname()[1], is_master=True, wait_for_workers=False,
            master_listen_fd=server.detach(),
        )


def _variables(rank: int, number: int, store: TCPStore) -> dict[str, str]:
    """Those that torchrun sets, and the network that the ranks exchange by."""
    defaults = {"GLOO_SOCKET_IFNAME": _loopback_interface(), "OMP_NUM_THREADS": "1"}
    return defaults | os.environ | {
        "RANK": str(rank),
        "WORLD_SIZE": str(number),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(number),
        "MASTER_ADDR": store.host,
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }


def _loopback_interface() -> str:
    """The name of loopback; gloo would take the interface that the own host name leads to."""
    interface: str = next(
        name for name, addresses in psutil.net_if_addrs().items()
        if any(each.address == LOOPBACK for each in addresses)
    )
    return interface


def _read(store: TCPStore, key: str) -> str:
    """The text that a rank told under ``key``; empty if none."""
    return store.get(key).decode() if store.check([key]) else ""


def _error(
    ranks: Sequence[subprocess.Popen[bytes]], store: TCPStore, log: IO[bytes]
) -> ChessSnnError:
    """The error of the rank that failed first; the others only found it lost."""
    told: list[ChessSnnError] = []
    for rank, process in enumerate(ranks):
        code = process.returncode or 0
        if text := _read(store, error_key(rank)):
            kind, message = json.loads(text)
            told.append(getattr(errors, kind)(message))
        elif code:
            log.seek(0)
            # A killed process wrote nothing about it; an aborted one did.
            tail = processes.log_tail(log.read())
            end = "" if code == -signal.SIGKILL else f"; the end of its log:\n{tail}"
            return RankLostError(
                f"rank {rank} (process {process.pid}) {processes.describe_exit(code)}{end}"
            )
    return min(told, key=lambda error: isinstance(error, RankLostError))
