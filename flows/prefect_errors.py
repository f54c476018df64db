"""Errors of a Prefect server in one line: before a run depends on it, and later."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import httpx
from prefect.client.orchestration import get_client
from prefect.exceptions import ObjectNotFound
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    PREFECT_SERVER_ALLOW_EPHEMERAL_MODE,
    temporary_settings,
)

from chess_snn.errors import ChessSnnError, UsageError
from chess_snn.types import LogFn
from tasks import compute

ASK_TIMEOUT_S: Final = 15.0
"""Longest wait for a given server's first answer; Prefect tries four times to be connected."""

AWAY_S: Final = 60.0
"""How long a server may be away where a run begins."""
_ASK_AGAIN_S: Final = 1.0


class ServerGoneError(ChessSnnError):
    """The Prefect server stopped answering, or fails; everything committed is safe."""

    code = "server.gone"

    def __init__(self, what: str) -> None:
        """``what`` says which server failed, and how."""
        super().__init__(
            f"{what}; everything committed is safe. See that it runs and that its disk has room, "
            "then `chess-snn campaign resume`"
        )
        self.what = what


def check_server(api_url: str) -> None:
    """Return if the server at ``api_url`` answers, lets this process in and fits its Prefect.

    Raises:
        UsageError: it does not.
    """
    settings = {
        PREFECT_API_URL: api_url,
        PREFECT_CLIENT_MAX_RETRIES: 0,
        PREFECT_SERVER_ALLOW_EPHEMERAL_MODE: False,
    }
    try:
        with (
            temporary_settings(settings),
            get_client(sync_client=True, httpx_settings={"timeout": ASK_TIMEOUT_S}) as client,
        ):
            client.raise_for_api_version_mismatch()
    except (httpx.HTTPError, RuntimeError) as error:
        raise UsageError(
            f"the Prefect server at {api_url} cannot be used: {_reason(error.__cause__ or error)}; "
            "correct PREFECT_API_URL, which ends with /api, and PREFECT_API_AUTH_STRING "
            "(user:password), or unset both; `chess-snn up` starts a server"
        ) from error


def await_server(tell: LogFn) -> None:
    """Return once the server answers, for a run that is to begin; ``tell`` hears of a wait.

    Prefect's clients wait about a minute for a server that they were connected to, and not at all
    for one that they were not; where a run begins there is a new client.

    Raises:
        httpx.TransportError: it has not answered for :data:`AWAY_S`.
        StoppedError: the campaign is stopping.
    """
    deadline: float | None = None
    while True:
        with get_client(sync_client=True) as client:
            error = client.api_healthcheck()
        if not isinstance(error, httpx.TransportError):
            return  # if it answers with an error, the run that begins reports that
        compute.give_up_if_stopping()
        if deadline is None:
            tell(f"the Prefect server does not answer ({error}); waiting for it")
            deadline = time.monotonic() + AWAY_S
        elif time.monotonic() > deadline:
            raise error
        time.sleep(_ASK_AGAIN_S)


@contextmanager
def answering(api_url: str) -> Iterator[None]:
    """Raise a ServerGoneError of one line if the server stops answering in the block, or fails.

    So does a server that no longer knows a run of the block, as after the loss of its database.
    """
    try:
        yield
    except (httpx.TransportError, httpx.HTTPStatusError, RuntimeError, ObjectNotFound) as error:
        # Where a flow begins, Prefect raises a RuntimeError from the error of its client.
        cause = error.__cause__ if isinstance(error, RuntimeError) else error
        match cause:
            case ObjectNotFound():
                reason = "it has lost the run"
            case httpx.TransportError():
                reason = _reason(cause)
            case httpx.HTTPStatusError(response=response) if response.is_server_error:
                reason = _reason(cause)
            case _:
                raise
        raise ServerGoneError(f"the Prefect server at {api_url} failed ({reason})") from error


def _reason(error: BaseException) -> str:
    """The first line of an error; Prefect's errors go on with the whole answer."""
    return str(error).partition("\n")[0] or type(error).__name__
