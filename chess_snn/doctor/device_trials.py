"""Try devices side by side, each in a process of its own: play, answer and train there.

``python -m chess_snn.doctor.device_trials`` is the process of a trial. It reads an order and prints
a :class:`Trial`, each as one line of JSON. A device that breaks takes only its process with it.
"""

import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
import torch

from chess_snn.campaign.machine.warm_up import scratch_window
from chess_snn.cores import num_cores
from chess_snn.data import GameRecords
from chess_snn.devices import ASSIGNED_KIND, VISIBLE_GPUS, Device, find_devices, is_gpu, processor
from chess_snn.doctor.findings import Finding, broken, ok
from chess_snn.errors import ChessSnnError
from chess_snn.games import get_game
from chess_snn.games.base import Game
from chess_snn.nets import Evaluator, Network, build_network, make_evaluator, net_config
from chess_snn.search import SearchSettings, make_search
from chess_snn.self_play import SelfPlaySettings, play_games
from chess_snn.training import IterationPlan, Trainer, TrainingSettings

SIZE: Final = "tiny"
"""Of the network that is tried."""
_SEED: Final = 0
_GAMES, _PLIES, _SIMULATIONS = 16, 24, 8
_BATCH: Final = 128
_WARM_STEPS, _STEPS = 3, 8
_COMPARED: Final = 64
"""Positions whose answers are compared with the processor's."""
_MOST_DIFFERENCE: Final = 0.1
"""Between both, of probabilities, on average: some spikes fall otherwise in bfloat16."""
_GIB: Final = 2**30
_KIB: Final = 2**10
PLAY_S: Final = 3.0
"""How long each device plays."""
_TIMEOUT_S: Final = 300.0
"""Of a trial; the first one on a machine compiles for a minute."""
_REMEDY: Final = "look at nvidia-smi; leave it out by --gpus or CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Trial:
    """What a device did."""

    games_per_s: float
    """Of at most 24 plies."""
    positions_per_s: float
    """Played, each after 8 simulations."""
    samples_per_s: float
    """Trained."""
    memory_gib: float
    """Most that was taken of the GPU, or by the process on the processor."""


class TrialError(ChessSnnError):
    """A device does not do what it should."""

    code = "device-trial"


def try_device(num_threads: int, play_s: float) -> Trial:
    """Use the first device of this process: :func:`chess_snn.devices.find_devices`.

    Args:
        num_threads: of the processor.
        play_s: games are played for at least so long.

    Raises:
        TrialError: what it computes is wrong.
        ChessSnnError, RuntimeError: it cannot be used.
    """
    torch.set_num_threads(num_threads)
    game, device = get_game("chess"), find_devices("auto")[0]
    network = build_network(game.spec, net_config(SIZE), _SEED)
    with make_evaluator(network, device=device, num_threads=num_threads) as evaluator:
        _check_answers(game, network, evaluator)
        records, games_per_s, positions_per_s = _play(game, evaluator, play_s)
    samples_per_s = _train(game, network, records, device)
    memory = (
        torch.cuda.max_memory_reserved(device) if is_gpu(device)
        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB
    )
    return Trial(games_per_s, positions_per_s, samples_per_s, memory / _GIB)


def _check_answers(game: Game, network: Network, evaluator: Evaluator) -> None:
    """Compare answers with those of the processor in float32."""
    batch = game.allocate(_COMPARED)
    stream = np.random.default_rng(_SEED)
    for _ in range(4):
        choices = stream.integers(batch.num_legal)
        game.step(batch, batch.legal_actions[np.arange(_COMPARED), choices])
    asked = game.planes(batch.state), batch.legal_actions, batch.num_legal
    with make_evaluator(network, precision="fp32") as reference:
        expected = reference.evaluate(*asked).wdl_stm
    difference = float(np.abs(evaluator.evaluate(*asked).wdl_stm - expected).mean())
    if not difference <= _MOST_DIFFERENCE:  # NaN too
        raise TrialError(
            f"computes wrongly: its probabilities differ by {difference:.3f} from the processor's"
        )


def _play(
    game: Game, evaluator: Evaluator, seconds: float
) -> tuple[GameRecords, float, float]:
    """Records of the last games, games/s and positions/s."""
    settings = SelfPlaySettings(
        concurrent_games=_GAMES, max_plies_first=_PLIES, max_plies_last=_PLIES,
        restart_share_first=0.0, restart_share_last=0.0,
    )
    search = make_search(
        game, evaluator, SearchSettings(), simulations=_SIMULATIONS, num_games=_GAMES
    )
    play_games(game, [search], settings, num_games=_GAMES, seed=_SEED)  # compiles
    games = positions = 0
    begun_s = time.perf_counter()
    while not games or time.perf_counter() - begun_s < seconds:
        records, statistics = play_games(
            game, [search], settings, num_games=_GAMES, seed=_SEED + games
        )
        games, positions = games + statistics.games, positions + statistics.positions
    taken_s = time.perf_counter() - begun_s
    return records, games / taken_s, positions / taken_s


def _train(game: Game, network: Network, records: GameRecords, device: str) -> float:
    """Samples/s."""
    settings = TrainingSettings(batch_size=_BATCH, window_positions=records.num_positions)
    trainer = Trainer(game, network, settings, _SEED, device)
    plan = IterationPlan(_WARM_STEPS + _STEPS, progress_first=0.0, progress_last=1.0)
    window = scratch_window(game, records)
    trainer.run(window, plan, stop_at=_WARM_STEPS)
    report = trainer.run(window, plan)
    if report.skipped_steps or not math.isfinite(report.total_loss):
        raise TrialError(f"trains wrongly: {report.skipped_steps} of {_STEPS} steps failed")
    return report.samples_per_s


def _main() -> int:
    order = json.loads(sys.stdin.readline())
    try:
        trial = try_device(order["num_threads"], order["play_s"])
    except (ChessSnnError, RuntimeError) as error:
        first = str(error).strip().partition("\n")[0] or type(error).__name__
        print(json.dumps({"error": first}))  # noqa: T201 - to the process that asked
        return 1
    print(json.dumps(asdict(trial)))  # noqa: T201
    return 0


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
            [sys.executable, "-m", "chess_snn.doctor.device_trials"], env=environment, text=True,
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


if __name__ == "__main__":
    sys.exit(_main())
