"""Facts about a campaign's networks, from its folder alone: one version a finished iteration.

The registry shows the same; where it is away or was deleted, nothing is lost.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Final

from chess_snn.campaign.stages.training import trained_by
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.match_facts import LadderTestFacts, RatingFacts
from chess_snn.campaign.store.notes import created_of
from chess_snn.campaign.store.receipt_parts import PromotionFacts
from chess_snn.campaign.store.receipts import Receipt, read_receipts
from chess_snn.campaign.strength.champions import champion_of
from chess_snn.campaign.strength.match_schedule import EARLIER
from chess_snn.campaign.strength.ratings import Strength, strength_of
from chess_snn.data import is_committed, read_manifest
from chess_snn.errors import CampaignError
from chess_snn.games import get_game
from chess_snn.nets import num_parameters
from chess_snn.training import WEIGHTS
from chess_snn.types import Json
from chess_snn.wording import counted

_DIGEST_LENGTH: Final = 36
"""Hex digits; MLflow keeps no more of a data set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkVersion:
    """One network, and how it came to be."""

    campaign: str
    """The folder's name."""
    campaign_id: str
    game: str
    generation: int
    digest: str
    """SHA-256 of the weights."""
    created: str
    """ISO 8601, UTC."""
    size: str
    """Size by blocks and channels: ``"tiny"``, or ``"2x24"`` where no preset has as many."""
    shape: Json
    """Every field of its :class:`~chess_snn.nets.NetConfig`."""
    activation: str
    ticks: int
    precision: str
    """Precision in play."""
    parameters: int
    """Weights and biases that are trained."""
    spike_rate: float | None = None
    """Share of neurons and ticks that spike, in [0, 1]; None where it was not measured, or nothing
    spikes."""
    simulations: int
    """Search budget of its matches, at each move; the score is for this budget."""
    score: float | None = None
    """Mean over the fixed opponents, in [0, 1]; None where it was not evaluated."""
    score_low: float | None = None
    score_high: float | None = None
    """95 % interval of the score."""
    rating: RatingFacts | None = None
    """Among the players of the campaign alone."""
    ladder_test: LadderTestFacts | None = None
    """Rating on the ladder's scale; None without a ladder test."""
    strength: Strength | None = None
    """Strength on the scale that campaigns share; None where it was not measured."""
    promotion: PromotionFacts | None = None
    """Its games against the champion then."""
    is_champion: bool
    """Now."""
    is_removed: bool
    """True if the network itself was removed by `chess-snn gc`; the rest is what stays of it."""
    window_shards: tuple[str, ...] = ()
    """Shards of games it was trained on last, the oldest first."""
    window_positions: int = 0
    origin: str | None = None
    """Origin of its campaign, if not from nothing: see :meth:`.Origin.describe`."""
    dataset: str | None
    """Folder of games that its campaign's first network learnt from; None if there were none."""
    dataset_digest: str | None
    """Digest of those games."""
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
    """One of them, or generation 0, which no iteration made.

    Raises:
        CorruptDataError: as :func:`campaign_versions`.
        CampaignError: there is no such generation.
    """
    receipts = read_receipts(folder)
    if generation == 0 and is_committed(folder.checkpoint(0)):
        digest = read_manifest(folder.checkpoint(0)).meta["weights_digest"]
        return _version(folder, receipts, 0, digest, trained_at=0.0)
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
    training = receipt.training
    low, high = _score_interval(receipt)
    return replace(
        _version(
            folder, receipts, training.generation, training.weights_digest,
            trained_at=receipt.plan.progress_first,
        ),
        spike_rate=training.metrics.get("spike_rate"),
        score=receipt.score,
        score_low=low,
        score_high=high,
        rating=receipt.rating,
        ladder_test=receipt.ladder_test,
        strength=strength_of(folder.config, receipt),
        promotion=receipt.promotion,
        window_shards=tuple(training.window_shards),
        window_positions=training.window_positions,
    )


def _version(
    folder: CampaignFolder, receipts: Sequence[Receipt], generation: int, digest: str,
    trained_at: float,
) -> NetworkVersion:
    """A version without the figures of an iteration.

    It was trained after the share ``trained_at`` of the campaign.
    """
    config = folder.config
    net = config.net.at(trained_at).network()
    created, is_there = created_of(folder, generation)
    given = config.supervised if config.supervised.games and config.supervised.epochs else None
    return NetworkVersion(
        campaign=folder.name,
        campaign_id=folder.campaign_id,
        game=config.campaign.game,
        generation=generation,
        digest=digest,
        created=created,
        is_removed=not is_there,
        size=net.size,
        shape=asdict(net),
        activation=net.activation,
        ticks=net.ticks,
        precision=config.net.precision,
        parameters=num_parameters(get_game(config.campaign.game).spec, net),
        simulations=config.evaluation.simulations,
        is_champion=generation == champion_of(folder, receipts),
        origin=None if folder.origin is None else folder.origin.describe(),
        dataset=None if given is None else Path(given.games).name,
        dataset_digest=None if given is None else given.digest,
        provenance=trained_by(folder, generation) if is_there else {},
    )


def _score_interval(receipt: Receipt) -> tuple[float | None, float | None]:
    """Return the interval of the mean score over opponents with independent matches.

    The distances from each score to its ends are added as squares (Zou & Donner 2008, "Construction
    of confidence limits about effect measures", Statistics in Medicine 27).
    """
    matches = [match for match in receipt.matches if match.name != EARLIER]
    if not matches:
        return None, None
    mean = sum(match.score for match in matches) / len(matches)
    below, above = (
        math.hypot(*(match.score - end(match) for match in matches)) / len(matches)
        for end in (attrgetter("score_low"), attrgetter("score_high"))
    )
    return mean - below, mean + above


def model_card(version: NetworkVersion) -> str:
    """Markdown for people: what the network is, how strong, made of what, and how it is played."""
    sources = [] if version.origin is None else ["what another network knew"]
    if version.dataset is not None:
        sources.append("a dataset")
    if version.generation:
        sources.append("games with itself")
    games = ", and then from ".join(sources) or "nothing"
    return "\n".join([
        f"# {version.campaign}, generation {version.generation}",
        "",
        f"A network that plays {version.game}, trained by chess-snn from {games}.",
        "",
        "| | |",
        "| --- | --- |",
        *(f"| {name} | {text} |" for name, text in describe(version).items()),
        "",
        "It is played by any command of chess-snn that takes a network:",
        "",
        "```console",
        "$ chess-snn play --model FOLDER",
        *(["$ chess-snn uci --model FOLDER"] if version.game == "chess" else []),
        "$ chess-snn match FOLDER:64 greedy",
        "```",
        "",
        f"`{WEIGHTS}` is read by `chess_snn.nets.load_network`; `model.toml` has the settings of "
        "the campaign.",
        "",
        "Elo points count from a player of random moves, for the search budget named. Those on the "
        "ladder can be compared between campaigns; those by a campaign's own games cannot. Neither "
        "are ratings of people.",
        "",
    ])


def describe(version: NetworkVersion) -> dict[str, str]:
    """Return the facts of a version, for people, by heading."""
    shards = version.window_shards
    rows = {
        "Elo on the ladder": "" if (test := version.ladder_test) is None else
            f"{test.elo_text}, {test.simulations} simulations a move",
        "Elo by its campaign's games": "" if version.rating is None else version.rating.elo_text,
        "score": score_text(version),
        "search budget": "" if version.score is None
                         else f"{counted(version.simulations, 'simulation')} a move",
        "network": f"{version.size}, {version.parameters:,} parameters, "
                   f"{version.activation}, {counted(version.ticks, 'tick')}, {version.precision}",
        "shape": ", ".join(f"{name} {value}" for name, value in version.shape.items()),
        "spike rate": "" if version.spike_rate is None
                      else f"{version.spike_rate:.1%} of neurons and ticks",
        "candidacy": "" if version.promotion is None else str(version.promotion),
        "trained on": "" if not shards
                      else f"{counted(version.window_positions, 'position')} in "
                           f"{counted(len(shards), 'shard')}, {shards[0]} to {shards[-1]}",
        "origin": version.origin or "",
        "pretraining dataset": "" if version.dataset is None
                       else f"{version.dataset} (digest {version.dataset_digest}), before the "
                            "first iteration",
        "campaign": f"{version.campaign} ({version.campaign_id})",
        "trained by": _provenance_text(version.provenance),
        "made": version.created,
        "digest": version.digest,
    }
    return {name: text for name, text in rows.items() if text}


def _provenance_text(facts: dict[str, str]) -> str:
    if not facts:
        return ""
    commit = f" at {facts['commit']}" if "commit" in facts else ""
    return (
        f"chess-snn {facts['version']}{commit} (sources {facts['sources']}), torch "
        f"{facts['torch']}, Python {facts['python']}; {facts['devices']} of {facts['machine']}"
    )


def rating_figures(version: NetworkVersion) -> dict[str, float]:
    """The strength on the scale that campaigns share (:meth:`.Strength.figures`).

    Where it was not measured, ``elo_own_games``, ``elo_own_games_low`` and ``elo_own_games_high``,
    to a tenth of a point, and ``search_budget``. Without both bounds of the interval there is only
    the bound that there is.
    """
    if version.strength is not None:
        return version.strength.figures()
    figures: dict[str, float] = {"search_budget": version.simulations}
    if (rating := version.rating) is not None:
        is_bounded = None not in (rating.elo_low, rating.elo_high)
        ends = {"": rating.elo if is_bounded else None, "_low": rating.elo_low,
                "_high": rating.elo_high}
        figures |= {
            f"elo_own_games{end}": round(elo, 1) for end, elo in ends.items() if elo is not None
        }
    return figures


def score_text(version: NetworkVersion) -> str:
    """``0.812 (0.700 to 0.905)``; empty where it was not evaluated."""
    if version.score is None or version.score_low is None or version.score_high is None:
        return ""
    return f"{version.score:.3f} ({version.score_low:.3f} to {version.score_high:.3f})"
