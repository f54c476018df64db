"""The content that MLflow gets of a campaign: files of its run, and facts about its networks."""

import shutil
from pathlib import Path
from typing import Final

from chess_snn.campaign import CampaignFolder, Receipt
from chess_snn.campaign.models.model_card import elo_text, model_card
from chess_snn.campaign.models.versions import NetworkVersion
from chess_snn.campaign.stages.networks import game_of
from chess_snn.campaign.store.collection import GameFilter, games_of_iteration
from chess_snn.campaign.store.folder import CONFIG_FILE
from chess_snn.campaign.store.receipts import VERDICT_WORDS
from chess_snn.campaign.strength.champions import read_hand_promotions
from chess_snn.campaign.strength.matches import read_final_matches
from chess_snn.campaign.viewing.recorded_games import to_pgn
from chess_snn.campaign.viewing.results import result_rows, results_csv, results_json
from chess_snn.errors import CorruptDataError
from chess_snn.training import WEIGHTS
from tasks.tracking import DatasetFacts, ModelVersionFacts

SAMPLE_GAMES: Final = 10
"""Of the newest iteration."""


def write_run_files(folder: CampaignFolder, receipts: list[Receipt], target: Path) -> None:
    """Write all of them into ``target``, an empty folder.

    Raises:
        CorruptDataError: a match at the end of the campaign is damaged.
        OSError: there is no room.
    """
    shutil.copy(folder.path / CONFIG_FILE, target)
    if folder.log_file.exists():
        shutil.copy(folder.log_file, target)
    rows = result_rows(folder.config, receipts)
    (target / "results.csv").write_text(results_csv(folder.config, rows))
    (target / "results.json").write_text(results_json(folder, rows, read_final_matches(folder)))
    if receipts and game_of(folder).spec.num_players == 2:  # PGN has white and black
        text = _sample_games(folder, receipts[-1].iteration)
        (target / "sample-games.pgn").write_text(text)


def _sample_games(folder: CampaignFolder, iteration: int) -> str:
    try:
        games = games_of_iteration(folder, iteration)
        wanted = games.games(GameFilter(limit=SAMPLE_GAMES))
        return "".join(to_pgn(games, game) for game in wanted)
    except CorruptDataError as error:
        # A comment of PGN. The campaign itself finds the damage and mends it.
        return f"; {error}\n"


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
