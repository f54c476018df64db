"""Errors of a Prefect server, and our own in the log of a flow run, in one line each.

Prefect logs an exception with its traceback where a flow or task raised it, and once more on the
way out of the process. Our errors name the value, the place and the fix in one line; the traceback
of a mistake in a form says nothing more to the user who made it.
"""

import logging
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
from chess_snn.tasks import compute
from chess_snn.types import LogFn

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
        # Prefect raises a RuntimeError from the error of its client where a flow begins.
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


_LOGGERS: Final = ("prefect.flow_runs", "prefect.task_runs", "prefect.engine")


def log_sentences() -> None:
    """Log each error of ours as its sentence from now on, in this process."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_to_sentence)


def _to_sentence(record: logging.LogRecord) -> bool:
    """Leave out the traceback of an error of ours, and a record that has nothing else to say."""
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, ChessSnnError):
        return True
    record.exc_info = record.exc_text = None
    sentence = str(error)
    record.msg, record.args = record.getMessage().replace(repr(error), sentence), ()
    return sentence in record.msg
