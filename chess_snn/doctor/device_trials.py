"""Try devices side by side, each in a process of its own: play, answer and train there.

``python -m chess_snn.doctor.device_trials THREADS`` is the process of a trial; it prints a
:class:`Trial` as one line of JSON. A device that breaks takes only its process with it.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from chess_snn import nets
from chess_snn.campaign import load_config
from chess_snn.campaign.machine.cost import measure_self_play, measure_training
from chess_snn.cores import num_cores
from chess_snn.devices import ASSIGNED_KIND, VISIBLE_GPUS, Device, find_devices, is_gpu, processor
from chess_snn.doctor import Finding, broken, ok
from chess_snn.errors import ChessSnnError
from chess_snn.games import get_game
from chess_snn.games.base import Game
from chess_snn.later import torch
from chess_snn.nets import Evaluator

_SETTINGS: Final = (
    "self_play.games_per_iteration=64", "self_play.games_per_shard=64",
    "search.simulations_first=8", "training.batch_size=128",
)
_COMPARED: Final = 64
"""Positions whose answers are compared with the processor's."""
_MOST_DIFFERENCE: Final = 0.1
"""Between both, of probabilities, on average: some spikes fall otherwise in bfloat16."""
_GIB: Final = 2**30
_KIB: Final = 2**10
_TIMEOUT_S: Final = 300.0
"""Longest trial; the first one on a machine compiles for a minute."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Paces of one device."""

    evaluations_per_s: float
    """Positions of self-play that the network answers for."""
    samples_per_s: float
    """Samples of training."""
    memory_gib: float
    """Most that was taken of the GPU, or by the process on the processor."""


class TrialError(ChessSnnError):
    """A device does not do what it should."""

    code = "device-trial"


def try_device(num_threads: int) -> Trial:
    """Use the first device of this process, and ``num_threads`` of the processor.

    Raises:
        TrialError: what it computes is wrong.
        ChessSnnError, RuntimeError: it cannot be used.
    """
    config, device = load_config(settings=_SETTINGS), find_devices("auto")[0]
    game = get_game(config.campaign.game)
    network = nets.build_network(game.spec, config.net.network(), seed=0)
    with nets.make_evaluator(network, device=device, num_threads=num_threads) as evaluator:
        _check_answers(game, network, evaluator)
    records, evaluations_per_s = measure_self_play(config, num_threads)
    report = measure_training(config, records, num_threads)
    if report.skipped_steps or not math.isfinite(report.total_loss):
        raise TrialError(f"trains wrongly: {report.skipped_steps} steps failed")
    memory = (
        torch.cuda.max_memory_reserved(device) if is_gpu(device)
        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB
    )
    return Trial(evaluations_per_s, report.samples_per_s, memory / _GIB)


def _check_answers(game: Game, network: nets.Network, evaluator: Evaluator) -> None:
    """Compare answers with those of the processor in float32."""
    batch = game.allocate(_COMPARED)
    stream = np.random.default_rng(0)
    for _ in range(4):
        choices = stream.integers(batch.num_legal)
        game.step(batch, batch.legal_actions[np.arange(_COMPARED), choices])
    asked = game.planes(batch.state), batch.legal_actions, batch.num_legal
    with nets.make_evaluator(network, precision="fp32") as reference:
        expected = reference.evaluate(*asked).wdl_stm
    difference = float(np.abs(evaluator.evaluate(*asked).wdl_stm - expected).mean())
    if not difference <= _MOST_DIFFERENCE:  # NaN too
        raise TrialError(
            f"computes wrongly: its probabilities differ by {difference:.3f} from the processor's"
        )


def _main() -> int:
    try:
        trial = try_device(int(sys.argv[1]))
    except Exception as error:  # noqa: BLE001 - compilers fail in many ways
        fault = nets.explain(error)
        print(json.dumps({"error": fault.fact, "remedy": fault.remedy}))  # noqa: T201 - to who asked
        return 1
    print(json.dumps(asdict(trial)))  # noqa: T201
    return 0


def try_devices(devices: Sequence[Device], timeout_s: float = _TIMEOUT_S) -> Iterator[Finding]:
    """Play and train on all ``devices`` of this machine at once; a finding each as it ends.

    A trial is ended after ``timeout_s``.
    """
    if not devices:
        return
    if len(devices) > 1:
        # It compiles for all of them; side by side, each would compile the same.
        _try(processor(), num_cores(), timeout_s)
    num_threads = max(1, num_cores() // len(devices))
    with ThreadPoolExecutor(len(devices), thread_name_prefix="trial") as threads:
        trials = [threads.submit(_try, device, num_threads, timeout_s) for device in devices]
        for trial in as_completed(trials):
            yield trial.result()


def _try(device: Device, num_threads: int, timeout_s: float) -> Finding:
    subject = f"GPU {device.index} plays" if device.is_gpu else "CPU plays"
    environment = os.environ | {ASSIGNED_KIND: device.kind, VISIBLE_GPUS: device.token}
    remedy = "look at the memory and the limits of this machine"
    if device.is_gpu:
        remedy = nets.LEAVE_OUT
    try:
        done = subprocess.run(
            [sys.executable, "-m", "chess_snn.doctor.device_trials", str(num_threads)],
            env=environment, text=True, capture_output=True, timeout=timeout_s, check=False,
        )
    except subprocess.TimeoutExpired:
        return broken(subject, f"did not answer within {timeout_s:.0f} s", remedy)
    if done.returncode:
        reason, own_remedy = _reason(done)
        return broken(subject, reason, own_remedy or remedy)
    trial = Trial(**json.loads(done.stdout.splitlines()[-1]))
    name = f" ({device.model})" if device.model else ""
    return ok(
        subject,
        f"OK{name}: {trial.evaluations_per_s:,.0f} evaluations/s, "
        f"{trial.samples_per_s:,.0f} samples/s, {trial.memory_gib:.1f} GiB",
    )


def _reason(done: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    """Why a trial failed, in one line, and the remedy if it is known."""
    lines = done.stdout.strip().splitlines()
    if lines and lines[-1].startswith("{"):
        told = json.loads(lines[-1])
        return told["error"], told["remedy"]
    complaints = done.stderr.strip().splitlines()
    ended = f"its process ended with exit code {done.returncode}"
    return complaints[-1] if complaints else ended, ""


if __name__ == "__main__":
    sys.exit(_main())
