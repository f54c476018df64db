"""Runs of an experiment: a campaign, or a training on a dataset, for each variant and seed.

Each is a process of this program on its own cores, as many side by side as there are. What was
committed stays whatever happens; the same call goes on.
"""

import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from time import sleep
from typing import Final

from chess_snn import training
from chess_snn.campaign import CampaignConfig, CampaignFolder, read_receipts
from chess_snn.campaign.configuration.loading import config_values, format_toml
from chess_snn.campaign.forking import fork_campaign
from chess_snn.campaign.machine.workers import gpus_for
from chess_snn.campaign.models.model import Model
from chess_snn.campaign.models.references import find_model
from chess_snn.campaign.models.starting import create_campaign, find_start
from chess_snn.campaign.stages.training_alone import points_of
from chess_snn.campaign.store.folder import CONFIG_FILE
from chess_snn.campaign.store.receipts import recorded_seconds
from chess_snn.campaign.strength.matches import is_finished
from chess_snn.campaign.viewing.results import result_rows
from chess_snn.cores import available_cores
from chess_snn.data import write_text
from chess_snn.devices import VISIBLE_GPUS
from chess_snn.errors import CampaignError, ConfigError
from chess_snn.experiment.file import Experiment, Start
from chess_snn.processes import describe_exit, log_tail, start, stop
from chess_snn.types import Json, LogFn, Progress

_POLL_S: Final = 0.2
_GRACE_S: Final = 60.0
"""Time in which a stopped run commits what it has."""


@dataclass(frozen=True, slots=True)
class Run:
    """One variant with one seed."""

    variant: str
    seed: int
    path: Path
    """The campaign's folder, or the network's."""
    start: Start
    config: CampaignConfig

    @property
    def name(self) -> str:
        """``small-1``."""
        return self.path.name

    @property
    def campaign_id(self) -> str:
        """The campaign's id; empty for a training on a dataset."""
        return "" if self.start.dataset else CampaignFolder.open(self.path).campaign_id

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do."""
        if self.start.dataset:
            return (self.path / training.WEIGHTS).exists()
        return (self.path / CONFIG_FILE).exists() and is_finished(CampaignFolder.open(self.path))

    def command(self) -> list[str]:
        """The command that does what is left, after its folder was made.

        Raises:
            ChessSnnError: the start is gone or damaged, or nothing can be written.
        """
        program = [sys.executable, "-m", "chess_snn"]
        if self.start.dataset:
            file = self.path.with_suffix(".toml")
            write_text(file, format_toml(config_values(self.config)))
            games, out = self.config.supervised.games, str(self.path)
            return [*program, "games", "learn", games, "--out", out, "--config", str(file)]
        if not (self.path / CONFIG_FILE).exists():
            if self.start.fork:
                parent = CampaignFolder.open(Path(self.start.fork))
                fork_campaign(parent, self.path, self.start.at, self.config)
            else:
                network = find_start(self.start.network) if self.start.network else None
                create_campaign(self.path, self.config, network)
        return [*program, "campaign", "resume", str(self.path)]

    def model(self, simulations: int) -> Model:
        """Its newest network, as a player with this budget of a move."""
        if self.start.dataset:
            return Model(
                self.name, self.path / training.WEIGHTS, self.config.campaign.game,
                config=self.config, simulations=simulations,
            )
        return replace(find_model(str(self.path), simulations=simulations), label=self.name)

    def figures(self) -> Json:
        """The figures of its newest iteration, or of the end of its training, by name."""
        if self.start.dataset:
            return dict(points_of(self.path)[-1])
        folder = CampaignFolder.open(self.path)
        receipts = read_receipts(folder)
        return result_rows(folder, receipts)[-1] | {
            "seconds": recorded_seconds(folder),
            "games": sum(receipt.statistics.games for receipt in receipts),
            "positions": sum(receipt.statistics.positions for receipt in receipts),
        }


@dataclass(frozen=True, slots=True)
class Slot:
    """The share of the machine that one run has."""

    cores: tuple[int, ...]
    gpu: str = ""


RunOne = Callable[[Run, Slot, Callable[[], bool]], None]
"""Does what is left of a run on its share of the machine, until the last says that it should
stop."""


def find_slots(experiment: Experiment, config: CampaignConfig) -> list[Slot]:
    """Equal shares of this machine: one for each GPU, or as many as have enough cores.

    Raises:
        ConfigError: a run has more cores than there are.
    """
    cores, wanted = available_cores(), experiment.budget.cores
    gpus = gpus_for(config)
    number = len(gpus) or len(cores) // wanted
    each = len(cores) // number if gpus else wanted
    if not number or each < 1:
        raise ConfigError(
            f"budget.cores = {wanted}, and {len(cores)} are available here; use {len(cores)}"
        )
    return [
        Slot(tuple(cores[place * each : (place + 1) * each]),
             gpus[place].token if gpus else "")
        for place in range(number)
    ]


def run_all(
    runs: Sequence[Run], slots: Sequence[Slot], say: LogFn, on_progress: Progress, run_one: RunOne,
) -> None:
    """Do what is left of ``runs``, as many at once as there are ``slots``, each by ``run_one``.

    Raises:
        CampaignError: one failed; the others are stopped, and what they committed is kept.
        KeyboardInterrupt: likewise.
    """
    free: SimpleQueue[Slot] = SimpleQueue()
    for slot in slots:
        free.put(slot)
    left, stopping = [run for run in runs if not run.is_finished], threading.Event()
    done = len(runs) - len(left)

    def work(run: Run) -> None:
        slot = free.get()
        try:
            if not stopping.is_set():
                run_one(run, slot, stopping.is_set)
        finally:
            free.put(slot)

    with ThreadPoolExecutor(len(slots)) as pool:
        waiting = {pool.submit(work, run): run for run in left}
        try:
            while waiting:
                on_progress(done, len(runs))
                ended, _ = wait(waiting, timeout=_POLL_S, return_when=FIRST_EXCEPTION)
                for future in ended:
                    future.result()
                    done += 1
                    say(f"{waiting.pop(future).name} is finished")
        finally:
            stopping.set()


def run_on(run: Run, slot: Slot, should_stop: Callable[[], bool]) -> None:
    """Let a process do what is left of ``run``. The thread, and so the process, has the cores.

    Raises:
        CampaignError: the process failed.
    """
    run.path.parent.mkdir(parents=True, exist_ok=True)
    command = run.command()
    os.sched_setaffinity(0, slot.cores)
    gpu = {VISIBLE_GPUS: slot.gpu} if slot.gpu else {}
    log_path = run.path.parent / f"{run.name}.log"
    with log_path.open("ab") as log:
        child = start(command, environment=gpu, stdout=log, stderr=log)
        while child.poll() is None:
            if should_stop():
                stop(child, _GRACE_S)
                return
            sleep(_POLL_S)
    if child.returncode:
        raise CampaignError(
            f"{run.name} {describe_exit(child.returncode)}; {log_path} ends with: "
            f"{log_tail(log_path.read_bytes()).rpartition(chr(10))[2]}"
        )
