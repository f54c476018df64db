"""Finding what a store has of one campaign folder: its run, and its versions of the model.

A run belongs to one folder. A campaign that was moved keeps its run. A copy has the id of its
original, but gets a run of its own, so that it never writes into the original's.
"""

import socket
from collections.abc import Mapping
from pathlib import Path

from mlflow.entities import Run
from mlflow.entities.model_registry import ModelVersion
from mlflow.tracking import MlflowClient

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.store.folder import CONFIG_FILE
from tasks.tracking.facts import (
    CHAMPION,
    EXPERIMENT,
    TrackingError,
    champion_of_campaign,
)

CAMPAIGN_ID_TAG = "chess_snn.campaign_id"

FOLDER_TAG = "chess_snn.folder"
"""Where the campaign's folder is: ``host:/path``. Runs of earlier versions lack it."""

COPY_TAG = "chess_snn.copy_of"
"""Of the run of a copied folder: the id of the original's run."""


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


def run_in(runs: list[Run], folder: CampaignFolder) -> Run | None:
    """The one of ``runs`` that belongs to ``folder``; else one whose folder was moved."""
    own = [run for run in runs if _path_of(run) == folder.path.resolve()]
    moved = [run for run in runs if not _is_elsewhere(run, folder)]
    return next(iter(own + moved), None)


def find_run(client: MlflowClient, folder: CampaignFolder) -> Run | None:
    """The campaign's run."""
    return run_in(runs_of(client, folder.campaign_id), folder)


def find_version(client: MlflowClient, run_id: str, generation: int) -> ModelVersion | None:
    """The version that is this generation of the campaign of ``run_id``."""
    found = client.search_model_versions(
        f"run_id = '{run_id}' and tags.generation = '{generation}'",
        max_results=1,
    )
    return found[0] if found else None


def move_champion(
    client: MlflowClient, run: Run, generation: int, tags: Mapping[str, str]
) -> None:
    """Point the champion's aliases at the version of ``generation``, and add ``tags`` to it.

    Raises:
        TrackingError: it has none.
    """
    known = find_version(client, run.info.run_id, generation)
    if known is None:
        raise TrackingError(
            f"generation {generation} has no version in the registry to promote; "
            "record its iteration first"
        )
    for name, value in tags.items():
        client.set_model_version_tag(known.name, known.version, name, value)
    is_copy = COPY_TAG in run.data.tags
    identity = run.info.run_id if is_copy else run.data.tags[CAMPAIGN_ID_TAG]
    for alias in (CHAMPION, champion_of_campaign(identity)):
        client.set_registered_model_alias(known.name, alias, known.version)


def _path_of(run: Run) -> Path | None:
    tag: str | None = run.data.tags.get(FOLDER_TAG)
    return None if tag is None else Path(tag.partition(":")[2])


def _is_elsewhere(run: Run, folder: CampaignFolder) -> bool:
    """Whether the campaign of ``run`` is, or may be, in another folder than ``folder``."""
    path = _path_of(run)
    if path is None:
        return False
    if run.data.tags[FOLDER_TAG].partition(":")[0] != socket.gethostname():
        return True  # its disk cannot be looked at from here
    config = path / CONFIG_FILE
    try:
        names_it = folder.campaign_id in config.read_text(errors="replace")
        return names_it and not path.samefile(folder.path)
    except OSError:
        return False
