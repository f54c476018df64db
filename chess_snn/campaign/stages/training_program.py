"""The training program: one rank of those that train a campaign's next generation together.

It does not know what launched it; whatever sets the variables of torchrun will do::

    torchrun --nproc-per-node 2 -m chess_snn.campaign.stages.training_program campaigns/cpu-001

Without them it trains alone. Rank 0 alone prints, and commits.
"""

import argparse
import re
import sys
import time
from pathlib import Path
from typing import Final

from torch.distributed.elastic.multiprocessing.errors import record

from chess_snn.campaign.stages import train_generation
from chess_snn.campaign.stages.to_train import iteration_to_train
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.receipts import TrainingFacts
from chess_snn.cores import num_cores
from chess_snn.devices import find_devices
from chess_snn.errors import ChessSnnError
from chess_snn.interrupts import EXIT_INTERRUPTED
from chess_snn.training import ALONE, RankPlace, Ranks, joined_ranks
from chess_snn.training.ranks import TIMEOUT_S, end_with_launcher
from chess_snn.types import Progress

EXIT_BAD_INPUT: Final = 2
PROGRESS_LINE: Final = re.compile(r"step (\d+)/(\d+)")
"""What rank 0 prints while it trains."""
_LINE_PERIOD_S: Final = 0.5


def main(arguments: list[str] | None = None) -> int:
    """Train as one rank; the exit code."""
    try:
        _run(_parse(arguments))
    except ChessSnnError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)  # noqa: T201
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0


@record  # tells torch's agent which error it was
def _run(options: argparse.Namespace) -> None:
    place = RankPlace.from_environment()
    if place is None:
        _train(options, ALONE, local_rank=0, local_size=1)
        return
    end_with_launcher()
    devices = find_devices(CampaignFolder.open(options.campaign).config.execution.device)
    with joined_ranks(
        place, devices[place.local_rank % len(devices)], options.timeout_s
    ) as ranks:
        _train(options, ranks, place.local_rank, place.local_size)


def _train(
    options: argparse.Namespace, ranks: Ranks, local_rank: int, local_size: int
) -> None:
    folder = CampaignFolder.open(options.campaign)
    facts = train_generation(
        folder.path, iteration_to_train(folder, options.iteration), ranks=ranks,
        worker=local_rank,
        num_threads=options.threads or max(1, num_cores() // local_size),
        on_progress=_print_progress() if ranks.is_first else None,
    )
    if ranks.is_first:
        print(_summary(facts), flush=True)  # noqa: T201


def _summary(facts: TrainingFacts) -> str:
    metrics = facts.metrics
    return (
        f"generation {facts.generation} is trained: {metrics['steps']:,.0f} steps, value loss "
        f"{metrics['value_loss']:.3f}, policy loss {metrics['policy_loss']:.3f}, "
        f"{metrics['samples_per_s']:,.0f} samples/s, {metrics['ranks']:.0f} ranks, micro-batches "
        f"of {metrics['micro_batch']:.0f}"
    )


def _print_progress() -> Progress:
    """A callback that prints a line at most twice a second, and at the end."""
    next_s = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal next_s
        if time.monotonic() >= next_s or done == total:
            next_s = time.monotonic() + _LINE_PERIOD_S
            print(f"step {done}/{total}", flush=True)  # noqa: T201

    return tell


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m chess_snn.campaign.stages.training_program",
        description="Train a campaign's next generation, as one of the ranks that torchrun starts.",
        epilog="Ranks, settings and device are checked against each other before the first step.",
    )
    parser.add_argument("campaign", type=Path, help="the campaign folder, the same for all ranks")
    parser.add_argument(
        "--iteration", type=int, help="whose games are new; else the first that is not trained"
    )
    parser.add_argument(
        "--threads", type=int, default=0, help="of this rank on a CPU; 0 shares the cores"
    )
    parser.add_argument(
        "--timeout-s", type=float, default=TIMEOUT_S,
        help="how long to wait for a rank before it is named and given up (default %(default)g)",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
