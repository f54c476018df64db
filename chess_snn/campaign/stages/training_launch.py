"""Training a campaign's generation in processes of its own, several at a time."""

from collections.abc import Callable
from pathlib import Path

from chess_snn.campaign.stages import (
    check_training_inputs,
    train_generation,
    trained_before,
    training_program,
)
from chess_snn.campaign.stages.training_program import PROGRESS_LINE
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.receipts import TrainingFacts
from chess_snn.data import sweep_temporaries
from chess_snn.errors import RankLostError
from chess_snn.training.rank_launch import RankLayout, run_ranks
from chess_snn.training.ranks import TIMEOUT_S
from chess_snn.types import Progress


def train_as_configured(
    directory: Path, iteration: int, *, num_threads: int = 1, worker: int = 0,
    on_progress: Progress | None = None,
) -> TrainingFacts:
    """Train generation ``iteration + 1`` here, or by as many ranks as the campaign has.

    See :func:`chess_snn.campaign.stages.train_generation`.

    Raises:
        RankLostError: a rank died or froze; nothing is half-written, and it may be tried again.
    """
    num_ranks = CampaignFolder.open(directory).config.execution.training_ranks
    if not num_ranks:
        return train_generation(
            directory, iteration, num_threads=num_threads, worker=worker, on_progress=on_progress
        )
    return train_in_ranks(
        directory, iteration, RankLayout(num_ranks), num_threads=max(1, num_threads // num_ranks),
        on_progress=on_progress,
    )


def train_in_ranks(
    directory: Path, iteration: int, layout: RankLayout, *, num_threads: int = 0,
    timeout_s: float = TIMEOUT_S, on_progress: Progress | None = None,
) -> TrainingFacts:
    """Train generation ``iteration + 1`` by ranks, of which this machine starts its own.

    Args:
        directory: the campaign, the same on all machines.
        iteration: whose games are new.
        layout: how many ranks, and where.
        num_threads: of each on a CPU; 0 shares the cores of a machine.
        timeout_s: how long a rank may keep the others waiting.
        on_progress: called with (steps done, steps in all) where rank 0 is.

    Raises:
        RankLostError: a rank died, froze or did not come; nothing is half-written.
        DamagedFolderError: a shard or the generation before is damaged.
        ChessSnnError: any that training raises.
    """
    folder = CampaignFolder.open(directory)
    if not folder.checkpoint(iteration + 1).exists():
        # Else whole, or its manifest damaged: then this raises below.
        # Here, because what a rank stumbles over reaches this process as text.
        check_training_inputs(folder, iteration)
        _run(folder, iteration, layout, num_threads, timeout_s, on_progress)
    return trained_before(folder, iteration)


def train_share(
    directory: Path, iteration: int, wait_for_layout: Callable[[], RankLayout], *,
    num_threads: int, is_wanted: Callable[[], bool], on_progress: Progress | None = None,
) -> TrainingFacts | None:
    """Train generation ``iteration + 1`` with other machines, whose folders may be copies.

    Args:
        directory: the campaign, or as much of it as training reads.
        iteration: whose games are new.
        wait_for_layout: called once all that training reads is found whole; this machine's place.
        num_threads: of the whole machine, which its ranks share.
        is_wanted: where it says no, the ranks are ended.
        on_progress: called with (steps done, steps in all) where rank 0 is.

    Returns:
        None where the generation is not in this folder, since rank 0 was elsewhere.

    Raises:
        RankLostError: a rank died, froze or did not come; nothing is half-written.
        DamagedFolderError: a shard or the generation before is damaged.
        ChessSnnError: any that training raises.
    """
    folder = CampaignFolder.open(directory)
    target = folder.checkpoint(iteration + 1)
    if not target.exists():
        check_training_inputs(folder, iteration)
        layout = wait_for_layout()
        _run(
            folder, iteration, layout, max(1, num_threads // layout.per_node), TIMEOUT_S,
            on_progress, is_wanted,
        )
    return trained_before(folder, iteration) if target.exists() else None


def _run(
    folder: CampaignFolder, iteration: int, layout: RankLayout, num_threads: int, timeout_s: float,
    on_progress: Progress | None, is_wanted: Callable[[], bool] | None = None,
) -> None:
    try:
        run_ranks(
            layout, f"{folder.campaign_id}-{iteration}", training_program.__name__,
            [
                str(folder.path), "--iteration", str(iteration), "--threads", str(num_threads),
                "--timeout-s", str(timeout_s),
            ],
            on_line=_hear(on_progress), is_wanted=is_wanted,
        )
    except RankLostError:
        sweep_temporaries(folder.checkpoint(iteration + 1).parent)
        raise


def _hear(on_progress: Progress | None) -> Callable[[str], None]:
    def hear(line: str) -> None:
        if on_progress is not None and (steps := PROGRESS_LINE.fullmatch(line)) is not None:
            on_progress(int(steps[1]), int(steps[2]))

    return hear
