"""One network after each number of ticks, and with early exit, beside all its ticks."""

import time
from typing import Annotated, Final

import numpy as np
import typer

from benchmarks.random_data import Positions, random_positions
from benchmarks.report import Quick, Report, benchmark
from chess_snn.cli.players import find_model
from chess_snn.errors import UsageError
from chess_snn.games import get_game
from chess_snn.nets import CpuEvaluator, Evaluation, freeze
from chess_snn.nets.early_exit import EarlyExitNetwork
from chess_snn.nets.inference import InferenceNetwork

MARGINS: Final = (0.02, 0.05, 0.1, 0.25, 0.5, 0.75)
_FEW: Final = 64


def run(
    report: Report,
    model: Annotated[str, typer.Option(help="A leaky network of chess of several ticks.")],
    positions: Annotated[int, typer.Option(help="How many, of random games.")] = 1000,
    quick: Quick = False,
) -> None:
    """Ticks that early exit takes, and how often moves and values stay those of all ticks.

    python -m benchmarks ticks --model campaigns/cpu-001
    """
    chosen = find_model(model)
    network = chosen.load(get_game("chess"))
    most = network.config.ticks
    if most == 1:
        raise UsageError(f"{model} has one tick; give a network of several")
    asked = random_positions(_FEW if quick else positions)
    report.note(f"{model}, {most} ticks, {chosen.precision}; {len(asked):,} positions, one thread")
    frozen = freeze(network, chosen.precision)
    _evaluate(frozen, asked)  # compiles
    expected, _ = _evaluate(frozen, asked)
    for ticks in range(1, most + 1):
        fewer = freeze(network.with_ticks(ticks), chosen.precision)
        _report(report, f"{ticks} ticks", expected, *_evaluate(fewer, asked))
    for margin in MARGINS:
        early = EarlyExitNetwork(frozen, margin)
        found = _evaluate(frozen, asked, early)
        report.add(f"exit at {margin:g}, mean ticks", early.mean_ticks, "ticks")
        _report(report, f"exit at {margin:g}", expected, *found)


def _evaluate(
    network: InferenceNetwork, asked: Positions, early_exit: EarlyExitNetwork | None = None
) -> tuple[Evaluation, float]:
    """What it says, and seconds."""
    with CpuEvaluator(network, early_exit=early_exit) as evaluator:
        start = time.perf_counter()
        return asked.ask(evaluator), time.perf_counter() - start


def _report(
    report: Report, name: str, expected: Evaluation, found: Evaluation, seconds: float
) -> None:
    same = found.legal_logits.argmax(1) == expected.legal_logits.argmax(1)
    distance = np.abs(found.value_stm - expected.value_stm).mean()
    report.add(f"{name}, same move as all ticks", same.mean(), "share")
    report.add(f"{name}, distance of the value", distance, "")
    report.add(f"{name}, speed", len(same) / seconds, "positions/s")


command = benchmark("ticks", run)
