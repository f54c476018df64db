"""Entries of one campaign folder in a store: its run, its versions of the model, its pages.

A run belongs to one folder. A campaign that was moved keeps its run. A copy has the id of its
original, but gets a run of its own, so that it never writes into the original's.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlflow.entities import Run
from mlflow.entities.model_registry import ModelVersion
from mlflow.tracking import MlflowClient

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.store.folder import CONFIG_FILE, REPORT
from chess_snn.campaign.strength.champions import read_hand_promotions
from chess_snn.tasks.tracking import (
    CHAMPION,
    EXPERIMENT,
    PAGES_OF_TRAINING,
    TrackingError,
    champion_of_campaign,
    experiment_pages,
)
from chess_snn.tasks.tracking.store import open_store, tracking_errors
from chess_snn.tasks.tracking.strength_tags import describe, why_not_better
from chess_snn.types import Json

CAMPAIGN_ID_TAG = "chess_snn.campaign_id"

FOLDER_TAG = "chess_snn.folder"
"""Place of the campaign's folder: ``host:/path``."""

COPY_TAG = "chess_snn.copy_of"
"""Tag of a copied folder's run: the id of the original's run."""


def place_of(folder: CampaignFolder) -> str:
    """Value of the run's :data:`FOLDER_TAG`."""
    return f"{socket.gethostname()}:{folder.path.resolve()}"


def runs_of(client: MlflowClient, campaign_id: str) -> list[Run]:
    """The runs of the campaign and of its copies, the oldest first."""
    experiment = client.get_experiment_by_name(EXPERIMENT)
    if experiment is None:
        return []
    found: list[Run] = client.search_runs(
        [experiment.experiment_id], f"tags.`{CAMPAIGN_ID_TAG}` = '{campaign_id}'",
        order_by=["attributes.start_time ASC"],
    )
    return found


def find_run(client: MlflowClient, folder: CampaignFolder) -> Run | None:
    """The run that belongs to ``folder``; else one whose folder was moved."""
    runs = runs_of(client, folder.campaign_id)
    own = [run for run in runs if _path_of(run) == folder.path.resolve()]
    moved = [run for run in runs if not _is_elsewhere(run, folder)]
    return next(iter(own + moved), None)


def find_version(client: MlflowClient, run_id: str, generation: int) -> ModelVersion | None:
    """The version that is this generation of the campaign of ``run_id``."""
    found = client.search_model_versions(
        f"run_id = '{run_id}' and tags.generation = '{generation}'",
        max_results=1,
    )
    return found[0] if found else None


def move_champion(
    client: MlflowClient, run: Run, folder: CampaignFolder, generation: int
) -> str | None:
    """Point the campaign's alias at the version of ``generation``; its tags say who chose it.

    The alias that all campaigns share moves too if the version is stronger than the one that has
    it, on the scale that they share, or if it was chosen by hand and the other one is of the same
    campaign.

    Returns:
        A line on the shared alias; None if nothing changed.

    Raises:
        TrackingError: it has none.
    """
    known = find_version(client, run.info.run_id, generation)
    if known is None:
        raise TrackingError(
            f"generation {generation} has no version in the registry to promote; "
            "record its iteration first"
        )
    by_hand = [c for c in read_hand_promotions(folder) if c.generation == generation]
    for choice in by_hand[-1:]:
        tags = {
            "chosen_by": choice.who, "chosen_why": choice.why, "chosen_at": choice.created,
        }
        for name, value in tags.items():
            client.set_model_version_tag(known.name, known.version, name, value)
    is_copy = COPY_TAG in run.data.tags
    own = champion_of_campaign(run.info.run_id if is_copy else run.data.tags[CAMPAIGN_ID_TAG])
    aliases = client.get_registered_model(known.name).aliases
    if is_new := aliases.get(own) != known.version:
        client.set_registered_model_alias(known.name, own, known.version)
    holder = None
    if CHAMPION in aliases:
        holder = client.get_model_version(known.name, aliases[CHAMPION])
        if holder.version == known.version:
            return None
    follows_hand = by_hand and holder is not None and holder.run_id == known.run_id
    reason = None if follows_hand else why_not_better(known, holder)
    address = f"models:/{known.name}@{CHAMPION}"
    if reason is None:
        client.set_registered_model_alias(known.name, CHAMPION, known.version)
        return f"{address} is {describe(known)} now"
    stays = "is not set" if holder is None else f"stays {describe(holder)}"
    return f"{address} {stays}: {reason}" if is_new else None


def _path_of(run: Run) -> Path:
    return Path(run.data.tags[FOLDER_TAG].partition(":")[2])


def _is_elsewhere(run: Run, folder: CampaignFolder) -> bool:
    """Whether the campaign of ``run`` is, or may be, in another folder than ``folder``."""
    if run.data.tags[FOLDER_TAG].partition(":")[0] != socket.gethostname():
        return True  # its disk cannot be looked at from here
    path = _path_of(run)
    config = path / CONFIG_FILE
    try:
        names_it = folder.campaign_id in config.read_text(errors="replace")
        return names_it and not path.samefile(folder.path)
    except OSError:
        return False


def registered_version(
    tracking_uri: str, folder: CampaignFolder, generation: int
) -> Json | None:
    """``number`` and ``aliases`` of a generation's version; None if it has none.

    Versions are numbered from 1 over all campaigns of the store.

    Raises:
        TrackingError: the store is away or refuses.
    """
    with tracking_errors(tracking_uri):
        client = open_store(tracking_uri)
        run = find_run(client, folder)
        found = None if run is None else find_version(client, run.info.run_id, generation)
        if found is None:
            return None
        aliases = client.get_registered_model(found.name).aliases
    number = int(found.version)
    return {
        "number": number,
        "aliases": sorted(alias for alias, of in aliases.items() if int(of) == number),
    }


def promote_registered(tracking_uri: str, folder: CampaignFolder, generation: int) -> str | None:
    """:func:`move_champion` in the store at ``tracking_uri``.

    Raises:
        TrackingError: it is not registered, or the store is away or refuses.
    """
    with _run_of(tracking_uri, folder) as (client, run):
        return move_champion(client, run, folder, generation)


def campaign_pages(tracking_uri: str, folder: CampaignFolder, server: str) -> dict[str, str]:
    """Addresses on the MLflow server at ``server``: all runs and models, curves and report.

    Raises:
        TrackingError: the campaign has no run there, or the store is away or refuses.
    """
    with _run_of(tracking_uri, folder) as (_, run):
        experiment, run_id = run.info.experiment_id, run.info.run_id
    own = f"{server}/#/experiments/{experiment}/runs/{run_id}"
    return experiment_pages(server, experiment) | {
        "curves": f"{own}/model-metrics?{PAGES_OF_TRAINING}",
        "report": f"{own}/artifacts/{REPORT}?{PAGES_OF_TRAINING}",
    }


@contextmanager
def _run_of(tracking_uri: str, folder: CampaignFolder) -> Iterator[tuple[MlflowClient, Run]]:
    with tracking_errors(tracking_uri):
        client = open_store(tracking_uri)
        run = find_run(client, folder)
        if run is None:
            raise TrackingError(
                f"the tracking store {tracking_uri} has no run of the campaign in {folder.path}"
            )
        yield client, run
