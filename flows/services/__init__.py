"""Services that stay: a Prefect server, an MLflow server and a worker, for any number of campaigns.

``chess-snn up`` starts one *supervisor*, whose children they are; ``chess-snn down`` stops it.
Their data is in ``$CHESS_SNN_HOME/services``, and so is the record by which the next command finds
them::

    supervisor ─┬─ Prefect server     runs, logs, deployments; SQLite
                ├─ MLflow server      curves, models; SQLite and a folder of artifacts
                └─ tree ── worker ─── a process for each run ── its Dask workers

Light to import: Prefect is needed by ``supervisor`` and ``prefect_service``.
"""

from chess_snn.campaign.store.naming import services_directory
from flows.services.control import ServicesRecord, find_running, start_in_background, stop_services
from flows.services.settings import (
    CREDENTIALS_VARIABLE,
    POOL,
    Credentials,
    ServiceSettings,
    check_ports,
    read_credentials,
)

__all__ = [
    "CREDENTIALS_VARIABLE",
    "POOL",
    "Credentials",
    "ServiceSettings",
    "ServicesRecord",
    "check_ports",
    "find_running",
    "read_credentials",
    "services_directory",
    "start_in_background",
    "stop_services",
]
