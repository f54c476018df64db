"""What is known of a campaign's networks, from its folder alone: one version a finished iteration.

The registry shows the same; where it is away or was deleted, nothing is lost.
"""

import functools
import hashlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import torch

from chess_snn.campaign.stages.training import trained_by
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.notes import created_of
from chess_snn.campaign.store.receipts import PromotionFacts, Receipt, read_receipts
from chess_snn.campaign.strength.champions import champion_of
from chess_snn.campaign.strength.matches import EARLIER
from chess_snn.errors import CampaignError
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, Network
from chess_snn.types import Json

_DIGEST_LENGTH: Final = 36
"""Hex digits; MLflow keeps no more of a data set."""


@dataclass(frozen=True, slots=True)
class NetworkVersion:
    """One network, and how it came to be."""

    campaign: str
    """The folder's name."""
    campaign_id: str
    generation: int
    digest: str
    """SHA-256 of the weights."""
    created: str
    """ISO 8601, UTC."""
    size: str
    """Of its blocks and channels: ``"tiny"``, or ``"2x24"`` where no preset has as many."""
    shape: Json
    """Every field of its :class:`~chess_snn.nets.NetConfig`."""
    activation: str
    ticks: int
    precision: str
    """In play."""
    parameters: int
    """Weights and biases that are trained."""
    spike_rate: float | None
    """Share of neurons and ticks that spike, in [0, 1]; None where it was not measured, or nothing
    spikes."""
    simulations: int
    """Of its evaluation, at each move; the rating is for this budget."""
    score: float | None
    """Mean over the fixed opponents, in [0, 1]; None where it was not evaluated."""
    score_low: float | None
    score_high: float | None
    """95 % interval of the score."""
    rating: Json | None
    """Among the players of the campaign alone."""
    ladder_test: Json | None
    """On the ladder's scale; None without a ladder test."""
    promotion: PromotionFacts | None
    """Its games against the champion then."""
    is_champion: bool
    """Now."""
    is_removed: bool
    """Whether the network itself was removed by `chess-snn gc`; the rest is what stays of it."""
    window_shards: tuple[str, ...]
    """Shards of games it was trained on last, the oldest first."""
    window_positions: int
    dataset: str | None
    """Folder of games that its campaign's first network learnt from; None if that was untrained."""
    dataset_digest: str | None
    """Of those games."""
    provenance: dict[str, str]
    """Program, machine and devices that trained it (:func:`chess_snn.sources.provenance`); empty if
    that is not known."""

    @property
    def window_name(self) -> str | None:
        """Names the games it was trained on last, for people; None if there were none."""
        name = f"{self.campaign} window of gen-{self.generation:06d}"
        return name if self.window_shards else None

    @property
    def window_digest(self) -> str:
        """36 hex digits that name the games it was trained on last: which shards of which campaign.

        Shards never change, and one that is played again comes out the same.
        """
        text = "\n".join([self.campaign_id, str(self.window_positions), *self.window_shards])
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]

    def to_json(self) -> Json:
        """All fields."""
        return asdict(self)


def campaign_versions(folder: CampaignFolder) -> list[NetworkVersion]:
    """Every generation of a finished iteration, the oldest first.

    Raises:
        CorruptDataError: a receipt or a checkpoint's manifest is damaged or missing.
    """
    receipts = read_receipts(folder)
    return [describe_version(folder, receipt, receipts) for receipt in receipts]


def version_of(folder: CampaignFolder, generation: int) -> NetworkVersion:
    """One of them. Raises as :func:`campaign_versions`, and CampaignError if there is none."""
    receipts = read_receipts(folder)
    if not 1 <= generation <= len(receipts):
        known = f"1 to {len(receipts)}" if receipts else "none yet"
        raise CampaignError(
            f"{folder.path} has no version of generation {generation}; finished iterations made "
            f"{known}"
        )
    return describe_version(folder, receipts[generation - 1], receipts)


def describe_version(
    folder: CampaignFolder, receipt: Receipt, receipts: Sequence[Receipt]
) -> NetworkVersion:
    """The version that the iteration of ``receipt`` made; ``receipts`` are all there are."""
    config, training = folder.config, receipt.training
    net = config.net.network()
    low, high = _score_interval(receipt)
    created, is_there = created_of(folder, training.generation)
    given = config.supervised if config.supervised.games and config.supervised.epochs else None
    return NetworkVersion(
        campaign=folder.name,
        campaign_id=folder.campaign_id,
        generation=training.generation,
        digest=training.weights_digest,
        created=created,
        is_removed=not is_there,
        size=net.size,
        shape=asdict(net),
        activation=net.activation,
        ticks=net.ticks,
        precision=config.net.precision,
        parameters=_num_parameters(config.campaign.game, net),
        spike_rate=training.metrics.get("spike_rate"),
        simulations=config.evaluation.simulations,
        score=receipt.score,
        score_low=low,
        score_high=high,
        rating=receipt.rating,
        ladder_test=receipt.ladder_test,
        promotion=receipt.promotion,
        is_champion=training.generation == champion_of(folder, receipts),
        window_shards=tuple(training.window_shards),
        window_positions=training.window_positions,
        dataset=None if given is None else Path(given.games).name,
        dataset_digest=None if given is None else given.digest,
        provenance=trained_by(folder, training.generation) if is_there else {},
    )


@functools.lru_cache(maxsize=8)
def _num_parameters(game: str, net: NetConfig) -> int:
    with torch.device("meta"):  # where a network has a shape and takes no memory
        return Network(get_game(game).spec, net).num_parameters


def _score_interval(receipt: Receipt) -> tuple[float | None, float | None]:
    """Of the mean score over the opponents, whose matches are independent.

    The distances from each score to its ends are added as squares (Zou & Donner 2008, "Construction
    of confidence limits about effect measures", Statistics in Medicine 27).
    """
    matches = [match for match in receipt.matches if match["name"] != EARLIER]
    if not matches:
        return None, None
    mean = sum(match["score"] for match in matches) / len(matches)
    below, above = (
        math.hypot(*(match["score"] - match[end] for match in matches)) / len(matches)
        for end in ("score_low", "score_high")
    )
    return mean - below, mean + above
