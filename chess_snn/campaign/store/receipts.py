"""Receipts: what each finished iteration committed, in one small JSON file.

An iteration is finished when its receipt exists. Everything that MLflow shows can be computed from
the receipts again.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from math import inf
from pathlib import Path
from typing import Final

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.match_facts import (
    ConversionFacts,
    LadderTestFacts,
    MatchFacts,
    RatingFacts,
)
from chess_snn.campaign.store.plans import Length, ProgressPlan, read_plan
from chess_snn.campaign.store.receipt_parts import (
    DeviceUse,
    PromotionFacts,
    ShardFacts,
    StageSeconds,
    TrainingFacts,
)
from chess_snn.campaign.store.typed_json import RecordFormat, numbered_files, read_numbered
from chess_snn.data import StoredFormat, write_text
from chess_snn.errors import ConfigError, CorruptDataError
from chess_snn.self_play import SelfPlayStatistics, combine

FORMAT: Final = StoredFormat("receipt", version=6, has_digest=True)

MOST_UNDER_WAY: Final = 3
"""Iterations that may have a plan and no receipt yet."""


@dataclass(frozen=True)  # without slots, which leave no room for a cached property
class Receipt:
    """The outcome of one iteration; None stands for what was not measured."""

    iteration: int
    plan: ProgressPlan
    """Plan that the iteration began with."""
    shards: list[ShardFacts]
    training: TrainingFacts
    matches: list[MatchFacts]
    """The candidate's; none where it is not evaluated."""
    conversion: ConversionFacts | None
    """How the candidate played out won positions."""
    score: float | None
    """The candidate's mean score over the opponents, earlier generations left out, in [0, 1]."""
    champion: int
    """Generation of the champion after this iteration."""
    seconds: StageSeconds
    elapsed_s: float
    """Seconds that the campaign had run when it was finished, pauses left out."""
    rating: RatingFacts | None = None
    """The candidate's, by the campaign's own games."""
    ladder_test: LadderTestFacts | None = None
    promotion: PromotionFacts | None = None
    """The candidate's games against the champion."""
    is_warm: bool = False
    """Whether the campaign began with a pretrained network."""
    devices: DeviceUse | None = None
    """How busy the devices were."""
    joules: float | None = None
    """Joules since the receipt before, by the counters of the machine that finished it; other
    programs' and pauses' are in them."""

    def __post_init__(self) -> None:
        if not self.shards:
            raise ConfigError("it names no shard")

    @cached_property
    def statistics(self) -> SelfPlayStatistics:
        """Self-play statistics over all shards."""
        return combine([shard.statistics for shard in self.shards])

    @property
    def playing_s(self) -> float:
        """Seconds in which at least one shard was played, in whichever processes."""
        lasted = [(shard.began_s, shard.statistics.seconds) for shard in self.shards]
        total_s, end_s = 0.0, -inf
        for began_s, seconds in sorted(lasted):
            total_s += max(0.0, began_s + seconds - max(began_s, end_s))
            end_s = max(end_s, began_s + seconds)
        return total_s

    @property
    def promoted(self) -> bool:
        """Whether this iteration's candidate became the champion."""
        return self.champion == self.training.generation

    def share_of(self, length: Length) -> float:
        """Share of a campaign of ``length`` that is done when the iteration ends, in [0, 1].

        The plan has the progress that schedules follow, by the length that was known then.
        """
        return length.share(self.iteration + 1, self.elapsed_s)


RECEIPTS: Final = RecordFormat(Receipt, FORMAT)


def write_receipt(folder: CampaignFolder, receipt: Receipt) -> None:
    """Finish the iteration."""
    write_text(folder.receipt(receipt.iteration), RECEIPTS.text(receipt))


def read_receipt(folder: CampaignFolder, iteration: int) -> Receipt:
    """The receipt of a finished iteration.

    Raises:
        UnknownVersionError: it is of a version that is not read.
        CorruptDataError: it is missing or damaged.
    """
    path = folder.receipt(iteration)
    hint = (
        "restore it from a copy, or have its iteration finished again: "
        f"chess-snn verify {folder.path} --repair"
    )
    receipt = RECEIPTS.read(path, hint)
    if receipt.iteration != iteration:
        raise CorruptDataError(f"{path} is the receipt of iteration {receipt.iteration}; {hint}")
    return receipt


def read_receipts(folder: CampaignFolder) -> list[Receipt]:
    """The receipts of all finished iterations, in order; they have no gaps."""
    return read_numbered(folder.receipt, partial(read_receipt, folder))


def recorded_seconds(folder: CampaignFolder) -> float:
    """Seconds that the campaign is known to have run: by its newest plan and its newest receipt."""
    num_begun = len(numbered_files(folder.plan))
    num_finished = num_finished_iterations(folder)
    begun_s = read_plan(folder, num_begun - 1).elapsed_s if num_begun else 0.0
    finished_s = read_receipt(folder, num_finished - 1).elapsed_s if num_finished else 0.0
    return max(begun_s, finished_s)


def num_finished_iterations(folder: CampaignFolder) -> int:
    """How many receipts :func:`read_receipts` would read; none is read."""
    return len(numbered_files(folder.receipt))


def lost_receipt(folder: CampaignFolder) -> Path | None:
    """The first receipt that is missing although there are later ones, or far later plans.

    :func:`read_receipts` ends before it. None if no receipt is known to be missing.
    """
    finished, begun = num_finished_iterations(folder), len(numbered_files(folder.plan))
    lost = folder.receipt(finished)
    is_older = any(path.name > lost.name for path in lost.parent.glob("iter-*.json"))
    return lost if is_older or finished + MOST_UNDER_WAY < begun else None
