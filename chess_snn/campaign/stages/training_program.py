"""The training program: one rank of those that train a network together.

It does not know what launched it; whatever sets the variables of torchrun will do::

    torchrun --nproc-per-node 2 -m chess_snn.campaign.stages.training_program campaigns/cpu-001

Without them it trains alone. Rank 0 alone prints, and commits.
"""

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Final, get_args

from torch.distributed.elastic.multiprocessing.errors import record

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.stages import train_generation
from chess_snn.campaign.stages.first_generation import train_first_generation
from chess_snn.campaign.stages.networks import device_of
from chess_snn.campaign.stages.training_alone import LEARN, PROGRAM, learn_network, network_config
from chess_snn.campaign.stages.window import iteration_to_train
from chess_snn.campaign.store.folder import CONFIG_FILE, CampaignFolder
from chess_snn.cores import num_cores
from chess_snn.devices import Backend
from chess_snn.errors import ChessSnnError
from chess_snn.interrupts import EXIT_INTERRUPTED
from chess_snn.known import TIMEOUT_S
from chess_snn.processes import end_with_parent
from chess_snn.training import RankInfo, Ranks, StepLines, StepListener, joined_ranks
from chess_snn.training.ranks import LINE, STEPS
from chess_snn.types import Progress

EXIT_BAD_INPUT: Final = 2


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


@record  # tells torchrun which error it was
def _run(options: argparse.Namespace) -> None:
    is_campaign = (options.path / CONFIG_FILE).exists() or not options.learn
    config = (
        CampaignFolder.open(options.path).config if is_campaign else network_config(options.path)
    )
    info = RankInfo.from_environment()
    if info.size > 1:
        end_with_parent(os.getppid(), signal.SIGKILL)  # torchrun would leave it running
    with joined_ranks(
        info, device_of(config, info.local_rank), options.timeout_s,
        options.backend or config.execution.training_backend,
    ) as ranks:
        _train(options, config, is_campaign, ranks, info.local_size)


def _train(
    options: argparse.Namespace, config: CampaignConfig, is_campaign: bool, ranks: Ranks,
    local_size: int,
) -> None:
    num_threads = options.threads or max(1, num_cores() // local_size)
    on_progress, on_step = _listeners(ranks, config.training.batch_size)
    if options.learn:
        learn = train_first_generation if is_campaign else learn_network
        learn(
            options.path, num_threads=num_threads, on_progress=on_progress, on_step=on_step,
            ranks=ranks,
        )
        return
    folder = CampaignFolder.open(options.path)
    facts = train_generation(
        folder.path, iteration_to_train(folder, options.iteration), num_threads=num_threads,
        on_progress=on_progress, on_step=on_step, ranks=ranks,
    )
    if ranks.is_first:
        print(f"generation {facts.generation} is trained", flush=True)  # noqa: T201


def _listeners(ranks: Ranks, batch_size: int) -> tuple[Progress | None, StepListener | None]:
    """Callbacks of rank 0, which prints the steps and tells them to the launcher."""
    if not ranks.is_first:
        return None, None

    def say(line: str) -> None:
        print(line, flush=True)  # noqa: T201
        ranks.tell(LINE, line)

    def on_progress(done: int, total: int) -> None:
        lines.on_progress(done, total)
        ranks.tell(STEPS, f"{done} {total}")

    lines = StepLines(say, batch_size)
    return on_progress, lines.on_step


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python -m {PROGRAM}",
        description="Train a campaign's next generation, as one of the ranks that torchrun starts.",
        epilog="Ranks, settings and device are checked against each other before the first step.",
    )
    parser.add_argument("path", type=Path, help="the campaign folder, the same for all ranks")
    parser.add_argument(
        "--iteration", type=int, help="whose games are new; else the first that is not trained"
    )
    parser.add_argument(
        LEARN, action="store_true",
        help="learn from a dataset: generation 0 of the campaign; or, if path is not a campaign, "
             "the network that `chess-snn games learn` has begun to make there",
    )
    parser.add_argument(
        "--threads", type=int, default=0, help="of this rank on a CPU; 0 shares the cores"
    )
    parser.add_argument(
        "--timeout-s", type=float, default=TIMEOUT_S,
        help="how long to wait for a rank before it is named and given up (default %(default)g)",
    )
    parser.add_argument(
        "--backend", choices=get_args(Backend),
        help="what ranks exchange by (default: execution.training_backend)",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
