"""Try devices side by side, each in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Final

from chess_snn.cores import num_cores
from chess_snn.devices import ASSIGNED_KIND, VISIBLE_GPUS, Device, processor
from chess_snn.doctor.device_trial import Trial
from chess_snn.doctor.findings import Finding, broken, ok

PLAY_S: Final = 3.0
"""How long each device plays."""
_TIMEOUT_S: Final = 300.0
"""Of a trial; the first one on a machine compiles for a minute."""
_REMEDY: Final = "look at nvidia-smi; leave it out by --gpus or CUDA_VISIBLE_DEVICES"


def try_devices(
    devices: Sequence[Device], play_s: float = PLAY_S, timeout_s: float = _TIMEOUT_S
) -> Iterator[Finding]:
    """Play and train on every one of ``devices`` at the same time; a finding each as it ends.

    Args:
        devices: of this machine; none are nothing to do.
        play_s: how long each plays.
        timeout_s: after which a trial is ended.
    """
    if not devices:
        return
    if len(devices) > 1:
        # It compiles for all of them; side by side, each would compile the same.
        _try(processor(), num_cores(), 0.0, timeout_s)
    num_threads = max(1, num_cores() // len(devices))
    with ThreadPoolExecutor(len(devices), thread_name_prefix="trial") as threads:
        trials = [
            threads.submit(_try, device, num_threads, play_s, timeout_s) for device in devices
        ]
        for trial in as_completed(trials):
            yield trial.result()


def _try(device: Device, num_threads: int, play_s: float, timeout_s: float) -> Finding:
    subject = f"GPU {device.index} plays" if device.is_gpu else "CPU plays"
    environment = os.environ | {ASSIGNED_KIND: device.kind, VISIBLE_GPUS: device.token}
    remedy = _REMEDY if device.is_gpu else "look at the memory and the limits of this machine"
    try:
        done = subprocess.run(
            [sys.executable, "-m", "chess_snn.doctor.device_trial"], env=environment, text=True,
            input=json.dumps({"num_threads": num_threads, "play_s": play_s}) + "\n",
            capture_output=True, timeout=timeout_s, check=False,
        )
    except subprocess.TimeoutExpired:
        return broken(subject, f"did not answer within {timeout_s:.0f} s", remedy)
    if done.returncode:
        return broken(subject, _reason(done), remedy)
    trial = Trial(**json.loads(done.stdout.splitlines()[-1]))
    name = f" ({device.model})" if device.model else ""
    return ok(
        subject,
        f"OK{name}: {trial.games_per_s:,.1f} games/s, {trial.positions_per_s:,.0f} positions/s, "
        f"{trial.samples_per_s:,.0f} samples/s, {trial.memory_gib:.1f} GiB",
    )


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """Why a trial failed, in one line."""
    lines = done.stdout.strip().splitlines()
    if lines and lines[-1].startswith("{"):
        return str(json.loads(lines[-1])["error"])
    complaints = done.stderr.strip().splitlines()
    return complaints[-1] if complaints else f"its process ended with exit code {done.returncode}"
