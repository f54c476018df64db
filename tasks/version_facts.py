"""What the registry is told of a campaign's networks."""

import math

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.models.versions import NetworkVersion
from chess_snn.campaign.strength.champions import read_hand_promotions
from chess_snn.training import WEIGHTS
from tasks.tracking import DatasetFacts, ModelVersionFacts


def champion_tags(folder: CampaignFolder, champion: int) -> dict[str, str]:
    """Who made ``champion`` it, and why, where it was made so by hand."""
    choices = [c for c in read_hand_promotions(folder) if c.generation == champion]
    if not choices:
        return {}
    last = choices[-1]
    return {"chosen_by": last.who, "chosen_why": last.why, "chosen_at": last.created}


def version_facts(folder: CampaignFolder, version: NetworkVersion) -> ModelVersionFacts:
    """A version of a campaign as the registry should know it."""
    low, high = (
        math.nan if end is None else end for end in (version.score_low, version.score_high)
    )
    return ModelVersionFacts(
        generation=version.generation,
        weights_path=folder.checkpoint(version.generation) / WEIGHTS,
        size=version.size,
        ticks=version.ticks,
        score=math.nan if version.score is None else version.score,
        score_interval=(low, high),
        digest=version.digest,
        dataset=_dataset_facts(folder, version),
        tags={
            "activation": version.activation,
            "precision": version.precision,
            "parameters": str(version.parameters),
            "search_budget": f"{version.simulations} simulations",
            "window_positions": str(version.window_positions),
            "window_shards": str(len(version.window_shards)),
            **({} if version.spike_rate is None else {"spike_rate": f"{version.spike_rate:.4f}"}),
            **({} if version.given_games is None else {"given_games": version.given_games}),
            **({} if version.given_digest is None else {"given_digest": version.given_digest}),
            **_rating_tags(version),
            **_promotion_tags(version),
        },
    )


def _dataset_facts(folder: CampaignFolder, version: NetworkVersion) -> DatasetFacts | None:
    """The window; None of a version that was trained on no shards."""
    shards = version.window_shards
    if not shards:
        return None
    return DatasetFacts(
        name=f"{version.campaign} window of gen-{version.generation:06d}",
        digest=version.window_digest,
        source={"uri": str(folder.path / "games")},
        profile={
            "campaign_id": version.campaign_id, "num_positions": version.window_positions,
            "num_shards": len(shards), "shards": list(shards),
            "trained_generation": version.generation,
        },
    )


def _rating_tags(version: NetworkVersion) -> dict[str, str]:
    """The rating with its interval and what it means, where there is one."""
    if version.rating is None:
        return {}
    points = {
        name: f"{version.rating[name]:.0f}" for name in ("elo", "elo_low", "elo_high")
        if version.rating[name] is not None
    }
    return points | {"elo_anchor": f"{version.rating['anchor']} = 0"}


def _promotion_tags(version: NetworkVersion) -> dict[str, str]:
    """How it fared against the champion of its time, where they played."""
    played = version.promotion
    if played is None:
        return {}
    return {
        "promotion": played.verdict,
        "promotion_champion": str(played.champion),
        "promotion_llr": f"{played.llr:.2f}",
        "promotion_score": f"{played.score:.4f}",
        "promotion_games": str(played.games),
    }
