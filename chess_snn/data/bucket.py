"""Objects in a bucket of S3, or of what speaks like it. Imports the extra ``s3``.

A store that is away is asked again for a while; one that refuses is not, and says why in one line.
Credentials come from the environment alone.
"""

import os
import re
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final, TypeVar

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import S3Store

from chess_snn.errors import StorageError
from chess_snn.types import LogFn

_Result = TypeVar("_Result")

_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_CREDENTIALS: Final = (
    ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"),
    ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",),
    ("AWS_CONTAINER_CREDENTIALS_FULL_URI",),
)
"""Variables of the environment; all of one row are needed."""

_CONNECT_S: Final = 5
_REQUEST_S: Final = 120
_QUICK_RETRIES: Final = 2
"""Of the library, within a second or so; longer outages are waited for here."""
_PAUSES_S: Final = (1.0, 2.0, 4.0, 8.0, 15.0)
"""Between attempts; the last is repeated."""
_STEP_S: Final = 0.5


class Bucket:
    """The objects below one prefix."""

    def __init__(
        self, url: str, endpoint: str = "", *, patience_s: float = 0.0,
        while_waiting: LogFn | None = None,
    ) -> None:
        """Nothing is asked yet.

        Args:
            url: ``s3://BUCKET/PREFIX``.
            endpoint: of a store that is not Amazon's; by default what the environment says.
            patience_s: how long a store that is away is asked again.
            while_waiting: called about twice a second with what is wrong; what it raises ends the
                waiting.

        Raises:
            StorageError: the environment has no credentials.
        """
        if not any(all(os.environ.get(name) for name in row) for row in _CREDENTIALS):
            raise StorageError(
                f"no credentials for {url}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the "
                "environment"
            )
        self.url = url.rstrip("/")
        self._patience_s, self._while_waiting = patience_s, while_waiting
        self._store = _open(self.url, endpoint or _endpoint_of_environment())

    def put(self, name: str, content: bytes) -> None:
        """Put an object, whatever was there."""
        self._ask("write", name, lambda: obstore.put(self._store, name, content))

    def put_new(self, name: str, content: bytes) -> bool:
        """Put an object unless there is one; whether there was none.

        Of two who do so at the same instant one succeeds, where the store has conditional puts.
        """
        try:
            return self._ask("write", name, lambda: self._create(name, content))
        except NotSupportedError:
            if self.get(name) is not None:
                return False
            self.put(name, content)
            return True

    def get(self, name: str) -> bytes | None:
        """An object; None where there is none."""
        return self._ask("read", name, lambda: self._read(name))

    def names(self, under: str = "") -> list[str]:
        """Of all objects below the prefix ``under``, relative to the bucket's own."""
        return self._ask("list", under, lambda: [
            entry["path"]
            for chunk in obstore.list(self._store, prefix=under or None, chunk_size=1000)
            for entry in chunk
        ])

    def _create(self, name: str, content: bytes) -> bool:
        try:
            obstore.put(self._store, name, content, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
        return True

    def _read(self, name: str) -> bytes | None:
        try:
            return bytes(obstore.get(self._store, name).bytes())
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise
            return None

    def _ask(self, verb: str, name: str, action: Callable[[], _Result]) -> _Result:
        """``action()``, again and again while the store is away."""
        began, attempt = time.monotonic(), 0
        place = f"{self.url}/{name}"
        while True:
            try:
                return action()
            except NotSupportedError:
                raise
            except (PermissionDeniedError, UnauthenticatedError) as error:
                raise StorageError(
                    f"one may not {verb} {place}: {_reason(error)}; look at the rights of the key "
                    "in AWS_ACCESS_KEY_ID"
                ) from error
            except FileNotFoundError as error:
                raise StorageError(
                    f"{self.url}: there is no such bucket; make it, or change "
                    f"storage.object_store ({_reason(error)})"
                ) from error
            except BaseError as error:
                pause_s = _PAUSES_S[min(attempt, len(_PAUSES_S) - 1)]
                waited_s = time.monotonic() - began
                if waited_s + pause_s > self._patience_s:
                    raise StorageError(
                        f"cannot {verb} {place}, tried for {waited_s:.0f} s: {_reason(error)}; "
                        "look at the store, at storage.endpoint and at the network"
                    ) from error
                self._wait(pause_s, _reason(error))
                attempt += 1

    def _wait(self, pause_s: float, reason: str) -> None:
        until = time.monotonic() + pause_s
        while (left_s := until - time.monotonic()) > 0:
            if self._while_waiting is not None:
                self._while_waiting(f"{self.url} is away and asked again: {reason}")
            time.sleep(min(_STEP_S, left_s))


def _open(url: str, endpoint: str) -> S3Store:
    return S3Store.from_url(
        url,
        config={"endpoint": endpoint} if endpoint else {},
        client_options={
            "allow_http": endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=_CONNECT_S),
            "timeout": timedelta(seconds=_REQUEST_S),
        },
        retry_config={
            "max_retries": _QUICK_RETRIES,
            "retry_timeout": timedelta(seconds=_REQUEST_S),
            "backoff": {
                "init_backoff": timedelta(milliseconds=100),
                "max_backoff": timedelta(seconds=1), "base": 2,
            },
        },
    )


def _endpoint_of_environment() -> str:
    found = (os.environ.get(name) for name in _ENDPOINTS)
    return next((endpoint for endpoint in found if endpoint), "")


def _reason(error: Exception) -> str:
    """The store's own words, on one line, and not all of them."""
    text = " ".join(str(error).split())
    message = re.search(r"<Message>(.*?)</Message>", text)
    return message[1] if message else text[:200]
