"""What is wrong with a Prefect server, in one line: before anything rests on it, and later."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import httpx
from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectHTTPStatusError
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

_ANOTHER: Final = "correct PREFECT_API_URL, or unset it"


class ServerGoneError(ChessSnnError):
    """The Prefect server stopped answering, or fails; everything committed is safe."""


def check_server(api_url: str) -> None:
    """Return if the server at ``api_url`` answers, lets this process in and fits its Prefect.

    Raises:
        UsageError: it does not; says why, and the way out.
    """
    settings = {
        PREFECT_API_URL: api_url,
        PREFECT_CLIENT_MAX_RETRIES: 0,
        PREFECT_SERVER_ALLOW_EPHEMERAL_MODE: False,
    }
    with (
        temporary_settings(settings), one_line_errors(api_url),
        get_client(sync_client=True, httpx_settings={"timeout": ASK_TIMEOUT_S}) as client,
    ):
        try:
            client.raise_for_api_version_mismatch()
        except RuntimeError as error:
            if isinstance(error.__cause__, httpx.HTTPError):
                raise error.__cause__ from None
            if isinstance(error.__cause__, ValueError):  # a page, or another program's answer
                raise UsageError(_no_api(api_url)) from error
            raise UsageError(
                f"the Prefect server at {api_url} does not fit: {error} Install its version, or "
                f"{_ANOTHER}"
            ) from error


def await_server(tell: LogFn) -> None:
    """Return once the server answers, for a run that is to begin.

    Prefect's clients wait about a minute for a server that they were connected to, and not at all
    for one that they were not; where a run begins there is a new client.

    Args:
        tell: called once if there is something to wait for.

    Raises:
        httpx.TransportError: it has not answered for :data:`AWAY_S`.
        StoppedError: the campaign is stopping.
    """
    deadline = time.monotonic() + AWAY_S
    is_told = False
    while True:
        with get_client(sync_client=True) as client:
            error = client.api_healthcheck()
        if not isinstance(error, httpx.TransportError):
            return  # where it answers with an error, the run that begins says so
        compute.give_up_if_stopping()
        if time.monotonic() > deadline:
            raise error
        if not is_told:
            tell(f"the Prefect server does not answer ({error}); waiting for it")
            is_told = True
        time.sleep(_ASK_AGAIN_S)


@contextmanager
def one_line_errors(api_url: str) -> Iterator[None]:
    """Say in one line that there is no server at ``api_url``, or that it refuses.

    Raises:
        UsageError: so it is.
    """
    try:
        yield
    except PrefectHTTPStatusError as error:
        raise UsageError(_refusal(api_url, error.response.status_code)) from error
    except httpx.HTTPError as error:
        raise UsageError(
            f"there is no Prefect server at {api_url} ({error}); start one with `chess-snn up`, or "
            f"{_ANOTHER}"
        ) from error


@contextmanager
def answering(api_url: str) -> Iterator[None]:
    """Say in one line that the server at ``api_url`` has gone, or fails.

    Raises:
        ServerGoneError: so it is.
    """
    try:
        yield
    except httpx.TransportError as error:
        raise _gone(api_url, error) from error
    except RuntimeError as error:
        # Where a flow begins, Prefect says so of whatever kept it from its server.
        if not isinstance(error.__cause__, httpx.TransportError):
            raise
        raise _gone(api_url, error.__cause__) from error
    except httpx.HTTPStatusError as error:
        if not error.response.is_server_error:
            raise
        raise ServerGoneError(
            f"the Prefect server at {api_url} fails with {error.response.status_code}; its disk "
            "may be full. Everything committed is safe: make room, then go on with it by "
            "`chess-snn campaign resume`"
        ) from error


def _refusal(api_url: str, status: int) -> str:
    if status == httpx.codes.UNAUTHORIZED:
        return (
            f"the Prefect server at {api_url} wants a password: set PREFECT_API_AUTH_STRING to its "
            "user:password"
        )
    if status == httpx.codes.NOT_FOUND:
        return _no_api(api_url)
    return f"the Prefect server at {api_url} answered with HTTP status {status}; {_ANOTHER}"


def _no_api(api_url: str) -> str:
    return f"what answers at {api_url} is no API of Prefect: those end with /api; {_ANOTHER}"


def _gone(api_url: str, error: httpx.TransportError) -> ServerGoneError:
    return ServerGoneError(
        f"the Prefect server at {api_url} does not answer ({error}); everything committed is "
        "safe, go on with it by `chess-snn campaign resume`"
    )
