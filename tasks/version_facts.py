"""What the registry is told of a campaign's networks."""

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.models.model_card import elo_text, model_card
from chess_snn.campaign.models.versions import NetworkVersion
from chess_snn.campaign.store.receipts import VERDICT_WORDS
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
    dataset = _dataset_facts(folder, version)
    return ModelVersionFacts(
        generation=version.generation,
        weights_path=folder.checkpoint(version.generation) / WEIGHTS,
        tags=_tags(version),
        params=_params(version, dataset),
        description=model_card(version),
        dataset=dataset,
    )


def _tags(version: NetworkVersion) -> dict[str, str]:
    """Elo with its interval on the one scale there is, search budget, verdict."""
    scale = "elo_own_games" if version.climb is None else "elo"
    tags = {
        scale: elo_text(version.climb or version.rating),
        "search_budget": f"{version.simulations} simulations",
        "promotion": "" if version.promotion is None else VERDICT_WORDS[version.promotion.verdict],
    }
    return {name: value for name, value in tags.items() if value}


def _params(version: NetworkVersion, dataset: DatasetFacts | None) -> dict[str, str]:
    """Everything else that is no metric; names and values as the settings have them."""
    params = {
        "net.size": version.size,
        **{f"net.{name}": value for name, value in version.shape.items()},
        "net.precision": version.precision,
        "net.parameters": version.parameters,
        "evaluation.simulations": version.simulations,
        "weights_digest": version.digest,
        "created": version.created,
        "window_positions": version.window_positions,
        "window_shards": len(version.window_shards),
        "dataset": None if dataset is None else dataset.name,
        "dataset_digest": None if dataset is None else dataset.digest,
        "given_games": version.given_games,
        "given_digest": version.given_digest,
        "promotion": version.promotion,
        **version.provenance,
    }
    return {name: str(value) for name, value in params.items() if value is not None}


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
