"""The experiment of all campaigns on the MLflow server, asked for without loading MLflow."""

from typing import Any

import httpx

from flows.services.settings import Credentials
from tasks.tracking import EXPERIMENT, EXPERIMENT_TAGS, experiment_pages

_TIMEOUT_S = 30.0


def make_experiment(url: str, credentials: Credentials | None) -> None:
    """Create the experiment on the server at ``url``, unless it is there.

    Raises:
        httpx.HTTPError: the server refuses, or does not answer.
    """
    if _experiment_id(url, credentials) is None:
        tags = [{"key": name, "value": value} for name, value in EXPERIMENT_TAGS.items()]
        _request("POST", url, "create", credentials, json={"name": EXPERIMENT, "tags": tags})


def service_pages(url: str, credentials: Credentials | None) -> dict[str, str]:
    """Addresses on the server at ``url`` of all runs and all models; none where it cannot tell."""
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
