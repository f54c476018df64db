"""The campaigns of a soak: small ones with every stage, and what is committed of them."""

from dataclasses import dataclass
from pathlib import Path

MANIFEST = "MANIFEST.json"

COMMITTED = (
    "games/iter-*/shard-*", f"checkpoints/gen-*/{MANIFEST}", "matches/*/*.json",
    "receipts/*.json",
)
"""What stands in a campaign's folder once it is committed."""

ITERATIONS = 3

_SETTINGS = (
    f"campaign.iterations={ITERATIONS}", "net.size=tiny",
    "self_play.games_per_iteration=32", "self_play.games_per_shard=8",
    "self_play.max_plies_first=40", "self_play.max_plies_last=40",
    "search.simulations_first=4", "search.simulations_last=4",
    "training.batch_size=64", "training.micro_batch=32", "training.presentations=3.0",
    'evaluation.opponents=["random"]', "evaluation.num_openings=4", "evaluation.max_plies=30",
    "evaluation.won_positions=4", "promotion.max_openings=4", "promotion.openings_each=2",
    "execution.workers=2", "execution.device=cpu",
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """One of the two kinds of campaigns that take turns."""

    name: str
    training_ranks: int
    """0 trains in a worker."""

    def options(self, seed: int) -> list[str]:
        """What ``chess-snn campaign start`` is told."""
        settings = [
            *_SETTINGS, f"campaign.seed={seed}", f"execution.training_ranks={self.training_ranks}"
        ]
        return [f"--set={setting}" for setting in settings]


RECIPES = (Recipe("workers", 0), Recipe("ranks", 2))
"""Campaigns of one recipe and one seed have the same games and weights, whatever befalls them."""


def committed(directory: Path) -> frozenset[Path]:
    """Everything that is committed in the campaign in ``directory`` just now."""
    return frozenset(path for pattern in COMMITTED for path in directory.glob(pattern))


def has_all_receipts(directory: Path) -> bool:
    """Whether every iteration of the campaign in ``directory`` is finished."""
    return len(list(directory.glob(COMMITTED[3]))) == ITERATIONS


def committed_shards(directory: Path) -> list[Path]:
    """The committed shards, in order."""
    return sorted(directory.glob(COMMITTED[0]))


def committed_checkpoints(directory: Path) -> list[Path]:
    """Folders of the committed generations, the newest last."""
    return sorted(path.parent for path in directory.glob(COMMITTED[1]))
