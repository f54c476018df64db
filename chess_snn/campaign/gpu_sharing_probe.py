"""Measure how many workers a GPU takes: each plays a few plies in a process of its own.

``python -m chess_snn.campaign.gpu_sharing_probe`` is one of them: it reads a configuration, gets
ready, and plays when all of them are.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Final

from chess_snn.campaign.cost import measure_self_play
from chess_snn.campaign.devices import ASSIGNED_KIND, VISIBLE_GPUS, Device, choose_devices
from chess_snn.campaign.gpu_sharing import is_measured, measure_sharing, most_a_gpu
from chess_snn.campaign.loading import build_config, config_values
from chess_snn.campaign.settings import CampaignConfig
from chess_snn.campaign.workers import gpus_for
from chess_snn.cores import num_cores
from chess_snn.errors import ChessSnnError

_READY: Final = "ready"
_TIMEOUT_S: Final = 120.0


def measure_where_unknown(config: CampaignConfig, say: Callable[[str], None]) -> None:
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
        best = measure_sharing(config, gpu, most, lambda count: _pace(config, gpu, count))
    except (ProbeError, subprocess.TimeoutExpired) as error:
        say(f"that failed, so it is settled by rule: {error}")
        return
    say(f"{best} workers a GPU do the most")


class ProbeError(ChessSnnError):
    """A process of the measurement ended without an answer."""


def _pace(config: CampaignConfig, gpu: Device, count: int) -> float:
    """Evaluations/s of ``count`` processes on ``gpu`` together."""
    environment = os.environ | {ASSIGNED_KIND: gpu.kind, VISIBLE_GPUS: gpu.token}
    text = json.dumps({"config": config_values(config), "threads": max(1, num_cores() // count)})
    probes = [
        subprocess.Popen(
            [sys.executable, "-m", __name__], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(count)
    ]
    try:
        for probe in probes:
            assert probe.stdin is not None
            probe.stdin.write(text + "\n")
            probe.stdin.flush()
        for probe in probes:
            assert probe.stdout is not None
            probe.stdout.readline()
        answers = [probe.communicate("go\n", timeout=_TIMEOUT_S) for probe in probes]
    finally:
        for probe in probes:
            probe.kill()
            probe.wait()
    for probe, (_, complaint) in zip(probes, answers, strict=True):
        if probe.returncode:
            lines = complaint.strip().splitlines() or ["no message"]
            raise ProbeError(f"a process of the measurement ended early: {lines[-1]}")
    return sum(float(answer) for answer, _ in answers)


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
