"""The MLflow server of the services: how it is started, its login, its pages."""

import secrets
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import httpx

from chess_snn.data import write_text
from chess_snn.errors import UsageError
from flows import server_specs
from flows.server_processes import ServerSpec
from flows.services.settings import Credentials, ServiceSettings
from tasks.tracking import EXPERIMENT, EXPERIMENT_TAGS, experiment_pages, local_tracking_uri

_NEEDED_FOR_PASSWORDS: Final = "flask_wtf"
"""A package that MLflow's user management needs beside MLflow."""

_TIMEOUT_S: Final = 30.0


def mlflow_spec(directory: Path, settings: ServiceSettings) -> ServerSpec:
    """The MLflow server, on SQLite and a folder of artifacts.

    Raises:
        UsageError: it is to ask for a password, and a package is missing.
    """
    host, port = settings.host, settings.mlflow_port
    options: list[str] = []
    environment: dict[str, str] = {}
    if not settings.is_loopback:
        options += ["--allowed-hosts", f"{host},{host}:{port}"]
        options += ["--cors-allowed-origins", settings.mlflow_url]
    if settings.credentials is not None:
        options += ["--app-name", "basic-auth"]
        environment = _users(directory, settings.credentials)
    return server_specs.mlflow_spec(
        directory, port, local_tracking_uri(directory), host=host, options=options,
        environment=environment,
    )


def _users(directory: Path, credentials: Credentials) -> dict[str, str]:
    """MLflow keeps users in a database of its own; the credentials are its first user."""
    if find_spec(_NEEDED_FOR_PASSWORDS) is None:
        raise UsageError(
            "MLflow needs another package to ask for passwords; install it with: "
            "pip install 'chess-snn[auth]'"
        )
    users = directory / "mlflow-users.ini"
    write_text(users, (
        "[mlflow]\n"
        "default_permission = READ\n"
        f"database_uri = sqlite:///{directory / 'mlflow-users.db'}\n"
    ))
    return {
        "MLFLOW_AUTH_CONFIG_PATH": str(users),
        "MLFLOW_AUTH_ADMIN_USERNAME": credentials.user,
        "MLFLOW_AUTH_ADMIN_PASSWORD": credentials.password,
        "MLFLOW_FLASK_SERVER_SECRET_KEY": secrets.token_hex(),
    }


def make_experiment(settings: ServiceSettings) -> None:
    """Create the experiment of all campaigns, unless it exists.

    MLflow's interface over HTTP is used, because importing MLflow takes seconds.

    Raises:
        UsageError: the server was first started with other credentials.
        httpx.HTTPError: the server refuses, or does not answer.
    """
    url, credentials = settings.mlflow_url, settings.credentials
    try:
        if _experiment_id(url, credentials) is None:
            tags = [{"key": name, "value": value} for name, value in EXPERIMENT_TAGS.items()]
            _request("POST", url, "create", credentials, json={"name": EXPERIMENT, "tags": tags})
    except httpx.HTTPStatusError as error:
        if error.response.status_code != httpx.codes.UNAUTHORIZED:
            raise
        raise UsageError(
            "MLflow was first started with another user and password: use those, or delete "
            "mlflow-users.db beside its database"
        ) from error


def service_pages(url: str, credentials: Credentials | None) -> dict[str, str]:
    """Addresses on the server at ``url`` of all runs and all models; empty if it does not tell."""
    try:
        experiment_id = _experiment_id(url, credentials)
    except httpx.HTTPError:
        return {}  # the address of the server is shown all the same
    return {} if experiment_id is None else experiment_pages(url, experiment_id)


def _experiment_id(url: str, credentials: Credentials | None) -> str | None:
    try:
        found = _request(
            "GET", url, "get-by-name", credentials, params={"experiment_name": EXPERIMENT}
        )
    except httpx.HTTPStatusError as error:
        if error.response.status_code == httpx.codes.NOT_FOUND:
            return None
        raise
    experiment_id: str = found["experiment"]["experiment_id"]
    return experiment_id


def _request(
    method: str, url: str, name: str, credentials: Credentials | None, **content: Any
) -> Any:
    auth = None if credentials is None else (credentials.user, credentials.password)
    answer = httpx.request(
        method, f"{url}/api/2.0/mlflow/experiments/{name}", auth=auth, timeout=_TIMEOUT_S, **content
    )
    return answer.raise_for_status().json()
