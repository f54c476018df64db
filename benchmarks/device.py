"""How busy self-play would keep a GPU, by groups of games, cores and simulations, without one.

What a group does between two answers of the network is measured here, with the real search and as
processor time. Device times are those of :mod:`benchmarks.device_model`. For cores that are not
here, :mod:`benchmarks.group_queue` plays both; for those that are, self-play itself runs on
:class:`benchmarks.simulated_device.SimulatedDevice`, and the queue is held against it.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Final

import typer

from benchmarks.device_model import (
    H200,
    DeviceModel,
    batch_s,
    evaluations_per_s,
    position_time,
    training_s,
)
from benchmarks.group_queue import run_queue
from benchmarks.report import Quick, Report, benchmark
from benchmarks.self_play import all_at_once
from benchmarks.simulated_device import SimulatedDevice, Stage, StageRecorder
from chess_snn.cores import available_cores
from chess_snn.errors import UsageError
from chess_snn.games import get_game
from chess_snn.nets import Evaluator, NetConfig, net_config
from chess_snn.nets.gpu.cuda_evaluator import NUM_LANES
from chess_snn.nets.model.config import SIZES
from chess_snn.search import Search, SearchSettings, make_search
from chess_snn.self_play import play_games

LEAST_BUSY: Final = 0.9
"""Share of the time in which the device of the target should work."""
TARGET: Final = ("small", 32, 8, 16)
"""Size, simulations, groups and cores of the target."""
_GAME: Final = get_game("chess")
_RECORDED_GROUPS: Final = 2


def run(
    report: Report, quick: Quick = False,
    size: Annotated[str, typer.Option(help="Of the network on the device.")] = "small",
    simulations: Annotated[
        list[int] | None, typer.Option(help="[default: 0, 16, 32 and 64] 0: policy only.")
    ] = None,
    groups: Annotated[
        list[int] | None, typer.Option(help="[default: 2, 3, 4, 6 and 8] Groups of games.")
    ] = None,
    cores: Annotated[
        list[int] | None, typer.Option(help="[default: 1, 2, 4 and 16] Cores of the host.")
    ] = None,
    games: Annotated[int, typer.Option(help="Games in play at once, over all groups.")] = 16384,
) -> None:
    """How busy self-play keeps a GPU, by groups of games, cores and simulations, without a GPU.

    Host times are measured here, device times are modelled. Takes about 3 minutes. What is
    measured on the simulated device holds if the machine does nothing else.

    python -m benchmarks device --simulations 32 --groups 4 --cores 16
    """
    num_games = 64 if quick else games
    _check(simulations=simulations, groups=groups, cores=cores)
    _add_model(report, H200)
    table = _Table(report, net_config(size), H200, num_games, quick)
    report.note(
        f"{size} on an {table.device.name}, {num_games} games, {NUM_LANES} lanes. Measured: the "
        "processor time of the host, and real self-play on a device that waits as long as the "
        "model says. Modelled: groups with that processor time, cores and device as queues; "
        "predicted beside it by the smallest of three bounds, and beside what is measured by the "
        "queues."
    )
    for each in simulations or ((4,) if quick else (0, 16, 32, 64)):
        for number in groups or ((2,) if quick else (2, 3, 4, 6, 8)):
            table.add(size, each, number, cores or (1, 2, 4, 16))


command = benchmark("device", run)


def _check(**numbers: list[int] | None) -> None:
    for name, values in numbers.items():
        least = 0 if name == "simulations" else 1
        if any(value < least for value in values or ()):
            raise UsageError(f"--{name} must be at least {least}, got {min(values or ())}")


def _add_model(report: Report, device: DeviceModel) -> None:
    """Add what the model says of each size of network, in large batches."""
    for size, config in SIZES.items():
        spent = position_time(device, config)
        report.note(
            f"{size} on an {device.name}: convolutions {spent.convolutions * 1e6:.3g}, neurons "
            f"{spent.neurons * 1e6:.2g}, rest {spent.rest * 1e6:.2g} µs/position, modelled"
        )
        report.add(f"{size} on an {device.name}, modelled", 1 / spent.total, "evaluations/s")
        report.add(f"{size}, training, modelled", 1 / training_s(device, config), "samples/s")
        baseline = config.baseline()
        for name, ratio in (
            ("inference", spent.total / position_time(device, baseline).total),
            ("training", training_s(device, config) / training_s(device, baseline)),
        ):
            report.add(f"{size}, {name} over the baseline a tick, modelled",
                       ratio / config.ticks, "times")


class _Table:
    """Rows for one network on one device."""

    def __init__(
        self, report: Report, config: NetConfig, device: DeviceModel, num_games: int, quick: bool
    ) -> None:
        self.report, self.device, self.num_games, self.quick = report, device, num_games, quick
        self._batch_s = partial(batch_s, device, config)
        self._position_s = position_time(device, config).total

    def add(self, size: str, simulations: int, groups: int, cores: Sequence[int]) -> None:
        """Add what is measured and modelled of one number of simulations and groups."""
        name = f"{f'{simulations} simulations' if simulations else 'policy only'}, {groups} groups"
        each = -(-self.num_games // groups)
        stages = record_stages(simulations, each, self._plies(simulations))
        host_s = host_seconds(stages)
        self.report.add(f"{name}: host, measured", host_s * 1e6, "µs/evaluation")
        for num_cores in cores:
            row = f"{name}, {num_cores} cores"
            queue = run_queue(
                [stages[number % len(stages)] for number in range(groups)],
                num_cores, NUM_LANES, self._batch_s,
            )
            predicted = evaluations_per_s(host_s, self._position_s, groups, num_cores)
            is_target = (size, simulations, groups, num_cores) == TARGET and not self.quick
            self.report.add(
                f"{row}: busy, modelled", queue.busy_share, "share",
                at_least=LEAST_BUSY if is_target else None,
                predicted=self._position_s * predicted,
            )
            self.report.add(
                f"{row}: modelled", queue.num_evaluations / queue.seconds, "evaluations/s",
                predicted=predicted,
            )
            if num_cores <= len(available_cores()):
                played = self.play(simulations, groups, num_cores)
                self.report.add(f"{row}: busy, measured", played.busy_share, "share",
                                predicted=queue.busy_share)

    def play(self, simulations: int, groups: int, num_cores: int) -> SimulatedDevice:
        """The device after self-play on ``num_cores`` of this machine's cores."""
        device = SimulatedDevice(self._batch_s, NUM_LANES)
        each = -(-self.num_games // groups)
        searches = [search_for(device, simulations, each) for _ in range(groups)]
        with _on_cores(num_cores):
            _play(searches, self.num_games, plies=1)
            device.forget()
            _play(searches, self.num_games, self._plies(simulations))
        return device

    def _plies(self, simulations: int) -> int:
        """Enough for a second or more."""
        return 2 if self.quick else max(3, 160 // simulations) if simulations else 40


def _play(searches: Sequence[Search], num_games: int, plies: int) -> None:
    play_games(_GAME, searches, all_at_once(plies, num_games), num_games=num_games, seed=1)


def record_stages(simulations: int, num_games: int, plies: int) -> list[list[Stage]]:
    """Stages of two groups of ``num_games`` that play side by side, so that they share the memory.

    The first of ``plies`` + 1 plies is left out: it finds cold memory.
    """
    recorders = [StageRecorder() for _ in range(_RECORDED_GROUPS)]
    searches = [search_for(recorder, simulations, num_games) for recorder in recorders]
    _play(searches, _RECORDED_GROUPS * num_games, plies + 1)
    return [recorder.stages[simulations + 1:] for recorder in recorders]


def host_seconds(stages: Sequence[Sequence[Stage]]) -> float:
    """Processor seconds of the host for each evaluation, over all groups."""
    flat = [stage for group in stages for stage in group]
    return sum(stage.host_s for stage in flat) / sum(stage.num_rows for stage in flat)


def search_for(evaluator: Evaluator, simulations: int, num_games: int) -> Search:
    """The search of a campaign; without simulations, of the policy alone."""
    return make_search(
        _GAME, evaluator, SearchSettings(), simulations=simulations, num_games=num_games
    )


@contextmanager
def _on_cores(count: int) -> Iterator[None]:
    """Keep this thread, and those that it starts in the block, on the first ``count`` cores."""
    before = available_cores()
    os.sched_setaffinity(0, before[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
