"""Measure how many workers a GPU takes: each plays a few plies in a process of its own.

``python -m chess_snn.campaign.machine.gpu_sharing_probe`` is one of them: it reads a configuration,
gets ready, and plays when all of them are.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final, Self

from chess_snn.campaign.configuration.loading import build_config, config_values
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.machine.cost import measure_self_play
from chess_snn.campaign.machine.gpu_sharing import is_measured, measure_sharing, most_a_gpu
from chess_snn.campaign.machine.workers import gpus_for
from chess_snn.cores import num_cores
from chess_snn.devices import ASSIGNED_KIND, VISIBLE_GPUS, Device, choose_devices
from chess_snn.errors import ChessSnnError
from chess_snn.types import LogFn

_READY: Final = "ready"
_TIMEOUT_S: Final = 120.0


def measure_where_unknown(config: CampaignConfig, say: LogFn) -> None:
    """Measure how many workers a GPU of this machine takes, unless that is known or settled.

    Args:
        config: of the campaign.
        say: is told that it takes a minute, and what came of it.
    """
    execution = config.execution
    if execution.workers or execution.workers_per_device or execution.self_play_device == "cpu":
        return
    gpus = choose_devices(execution.device, execution.gpus, gpus_for(config))
    gpu, most = gpus[0], most_a_gpu(gpus, num_cores())
    if not gpu.is_gpu or gpu.shares_cores or most == 1 or is_measured(config, gpu):
        return
    say(f"measuring how many workers a GPU takes ({gpu.model}): about a minute, once")
    try:
        best = measure_sharing(config, gpu, most, lambda count: pace_together(config, gpu, count))
    except (ProbeError, OSError) as error:
        say(f"that failed, so it is settled by rule: {error}")
        return
    say(f"{best} workers a GPU do the most")


class ProbeError(ChessSnnError):
    """A process of the measurement ended without an answer."""


def pace_together(
    config: CampaignConfig, gpu: Device, count: int, timeout_s: float = _TIMEOUT_S
) -> float:
    """Evaluations/s of ``count`` processes on ``gpu`` together.

    Raises:
        ProbeError: one of them ended without an answer, or was ended after ``timeout_s`` seconds.
    """
    environment = os.environ | {ASSIGNED_KIND: gpu.kind, VISIBLE_GPUS: gpu.token}
    text = json.dumps({"config": config_values(config), "threads": max(1, num_cores() // count)})
    with ExitStack() as stack:
        probes = [stack.enter_context(_Probe(environment)) for _ in range(count)]
        # A process that neither gets ready nor answers is ended, and its pipe with it.
        for probe in probes:
            timer = threading.Timer(timeout_s, probe.kill)
            timer.start()
            stack.callback(timer.cancel)
        for probe in probes:
            probe.tell(text)
        for probe in probes:
            probe.hear()
        for probe in probes:
            probe.tell("go")
        return sum(float(probe.hear()) for probe in probes)


class _Probe:
    """One of the processes, seen from the one that measures."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        # Complaints go to a file: nobody reads a pipe meanwhile, and a full one stops its writer.
        self._complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115 - __exit__ closes it
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._complaints,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()
        self._process.communicate()
        self._complaints.close()

    def tell(self, line: str) -> None:
        """Send it a line.

        Raises:
            ProbeError: it has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise self._ended_early() from error

    def hear(self) -> str:
        """The next line from it.

        Raises:
            ProbeError: it has ended.
        """
        assert self._process.stdout is not None
        if line := self._process.stdout.readline():
            return line
        raise self._ended_early()

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()

    def _ended_early(self) -> "ProbeError":
        self._complaints.seek(0)
        lines = self._complaints.read().strip().splitlines()
        why = lines[-1] if lines else "killed, for it took too long or memory ran out"
        return ProbeError(f"a process of the measurement ended early: {why}")


def _probe() -> None:
    """Be one of the processes."""
    order = json.loads(sys.stdin.readline())
    config = build_config(order["config"])

    def wait() -> None:
        print(_READY, flush=True)  # noqa: T201 - to the process that measures
        sys.stdin.readline()

    _, evaluations_per_s = measure_self_play(config, order["threads"], wait)
    print(evaluations_per_s, flush=True)  # noqa: T201


if __name__ == "__main__":
    _probe()
