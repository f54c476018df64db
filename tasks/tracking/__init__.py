"""The one home of MLflow: a campaign's curves and its model versions.

MLflow is a view on the campaign folder. Whatever is recorded here can be recorded again from the
receipts and checkpoints, any number of times, without a duplicate; so a store that is away delays
its curves and nothing else: catch :class:`TrackingError`, go on, and record what is missing later.

MLflow takes over a second to import, so its modules are loaded when their names are first used.
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

from tasks.tracking.facts import (
    EXPERIMENT,
    EXPERIMENT_TAGS,
    MODEL_NAME,
    DatasetFacts,
    ModelVersionFacts,
    RegisteredVersion,
    TrackingError,
    artifact_directory,
    existing_store,
    experiment_pages,
    is_server,
    local_tracking_uri,
    tracking_uri,
)

if TYPE_CHECKING:
    from tasks.tracking.campaign_run import (
        campaign_pages,
        keep_artifacts,
        promote_registered,
        registered_versions,
    )
    from tasks.tracking.fetching import fetch_model
    from tasks.tracking.recorder import CampaignTracker
    from tasks.tracking.store import prepare_store

__all__ = [
    "EXPERIMENT",
    "EXPERIMENT_TAGS",
    "MODEL_NAME",
    "CampaignTracker",
    "DatasetFacts",
    "ModelVersionFacts",
    "RegisteredVersion",
    "TrackingError",
    "artifact_directory",
    "campaign_pages",
    "existing_store",
    "experiment_pages",
    "fetch_model",
    "is_server",
    "keep_artifacts",
    "local_tracking_uri",
    "prepare_store",
    "promote_registered",
    "registered_versions",
    "tracking_uri",
]

# MLflow reads the first two when it is imported. The bars would write over our own progress.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")

_HOMES = {
    "CampaignTracker": "tasks.tracking.recorder",
    "campaign_pages": "tasks.tracking.campaign_run",
    "fetch_model": "tasks.tracking.fetching",
    "keep_artifacts": "tasks.tracking.campaign_run",
    "prepare_store": "tasks.tracking.store",
    "promote_registered": "tasks.tracking.campaign_run",
    "registered_versions": "tasks.tracking.campaign_run",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
