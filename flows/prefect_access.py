"""Access to a Prefect server that this program runs: the secret, and the link that carries it.

A web page, or another user of the machine, that reaches a Prefect server can start programs as the
user who runs it. A server therefore always demands credentials; unless the user gives some, they
are made here. Light to import.
"""

import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from chess_snn.credentials import Credentials
from chess_snn.data.files import staged_file, take_name, writing

AUTH_VARIABLE: Final = "PREFECT_API_AUTH_STRING"
"""Environment variable by which Prefect's clients get the credentials."""

CREDENTIALS_FILE: Final = "credentials"
SIGN_IN: Final = "/sign-in"
"""Path of the page (:mod:`.prefect_app`) that keeps the credentials in the browser."""

_USER: Final = "chess-snn"
_PASSWORD_BYTES: Final = 32
_MADE: Final = re.compile(rf"{_USER}:([\w-]{{43}})\n", re.ASCII)
_MODE: Final = 0o600


def kept_credentials(directory: Path) -> Credentials:
    """The credentials of the Prefect server on ``directory``, in a file that only this user reads.

    They are made the first time, and again if the file is damaged.

    Raises:
        UsageError: the file cannot be read or written.
    """
    path = directory / CREDENTIALS_FILE
    with writing(path):
        while True:
            with suppress(FileNotFoundError):
                if found := _MADE.fullmatch(path.read_text(encoding="ascii", errors="replace")):
                    return Credentials(_USER, found[1])
                path.unlink()
            with staged_file(path) as stage:
                stage.touch(_MODE)
                stage.write_text(f"{_USER}:{secrets.token_urlsafe(_PASSWORD_BYTES)}\n")
                take_name(stage, path)  # of two processes that make one, both read the first


def new_credentials(directory: Path) -> Credentials:
    """Replace the kept credentials: a campaign's folder may come from elsewhere, with a file of it.

    Raises:
        UsageError: the file cannot be replaced.
    """
    path = directory / CREDENTIALS_FILE
    with writing(path):
        path.unlink(missing_ok=True)
    return kept_credentials(directory)


def sign_in_link(api_url: str, credentials: Credentials) -> str:
    """The address of the server's page that signs a browser in.

    Browsers send no server what follows ``#``, so no log and no ``Referer`` has it.
    """
    return f"{api_url.removesuffix('/api')}{SIGN_IN}#{quote(credentials.text, safe=':')}"
