"""A supervisor in the background: started, and followed until all of its services are up."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from chess_snn.data.files import make_folder, writing
from chess_snn.errors import ChessSnnError
from flows.services.record import ServicesRecord, read_record

LOG_FILE: Final = "up.log"
ERROR_MARK: Final = "error: "
"""Begins the line in which a command of ours says why it failed."""

_POLL_S: Final = 0.1
_STOP_TIMEOUT_S: Final = 90.0


class ServicesError(ChessSnnError):
    """The services did not come up."""


def start_in_background(
    options: Sequence[str], directory: Path, tell: Callable[[str], None]
) -> ServicesRecord:
    """Run ``chess-snn up --foreground`` in a session of its own; return once all is up.

    Args:
        options: more of the command line.
        directory: of the services; their output goes to ``up.log`` in it.
        tell: is told what the supervisor says meanwhile.

    Returns:
        Where the services are.

    Raises:
        ServicesError: they did not come up; nothing of them is left.
        KeyboardInterrupt: Ctrl-C; nothing of them is left.
    """
    log_file = directory / LOG_FILE
    with writing(log_file):
        make_folder(directory)
        log = log_file.open("wb")
    with log:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "chess_snn", "up", "--foreground", *options],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            # What a pipe or a file gets at once, without waiting for a block to be full.
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
    try:
        return _follow(supervisor, log_file, directory, tell)
    except BaseException:
        _stop(supervisor)
        raise


def _follow(
    supervisor: "subprocess.Popen[bytes]", log_file: Path, directory: Path,
    tell: Callable[[str], None],
) -> ServicesRecord:
    num_told = 0
    while True:
        # Both are looked at before the lines, so that none of the last is missed.
        has_ended = supervisor.poll() is not None
        record = read_record(directory)
        lines = log_file.read_text(errors="replace").splitlines()
        if has_ended:
            raise ServicesError(_reason(lines, supervisor.returncode, log_file))
        for line in lines[num_told:]:
            tell(line)
        num_told = len(lines)
        if record is not None and record.pid == supervisor.pid and record.is_ready:
            return record
        time.sleep(_POLL_S)


def _reason(lines: list[str], code: int, log_file: Path) -> str:
    for number, line in enumerate(lines):
        if line.startswith(ERROR_MARK):
            return "\n".join([line.removeprefix(ERROR_MARK), *lines[number + 1 :]])
    return f"the services ended with code {code}; see {log_file}"


def _stop(supervisor: "subprocess.Popen[bytes]") -> None:
    supervisor.terminate()
    try:
        supervisor.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(supervisor.pid, signal.SIGKILL)
        supervisor.wait()
