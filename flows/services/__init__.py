"""Services that stay: a Prefect server, an MLflow server and a worker, for any number of campaigns.

``chess-snn up`` starts one *supervisor*, whose children they are; ``chess-snn down`` ends it. Their
data is in ``$CHESS_SNN_HOME/services``, and so is the record by which the next command finds them::

    supervisor ─┬─ Prefect server     runs, logs, deployments; SQLite
                ├─ MLflow server      curves, models; SQLite and a folder of artifacts
                └─ guard ── worker ── a process for each run ── its Dask workers

Light to import: what needs Prefect is in ``supervisor`` and ``deploying``.
"""

from chess_snn.campaign.store.naming import services_directory
from flows.services.background import start_in_background
from flows.services.record import ServicesRecord, find_running
from flows.services.settings import (
    CREDENTIALS_VARIABLE,
    POOL,
    Credentials,
    ServiceSettings,
    read_credentials,
)
from flows.services.stopping import stop_services

__all__ = [
    "CREDENTIALS_VARIABLE",
    "POOL",
    "Credentials",
    "ServiceSettings",
    "ServicesRecord",
    "find_running",
    "read_credentials",
    "services_directory",
    "start_in_background",
    "stop_services",
]
