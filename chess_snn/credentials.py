"""The user and the password that a server of this machine demands, and where it may listen."""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from chess_snn.errors import ConfigError
from chess_snn.ports import LOOPBACK, is_every_address, is_loopback

CREDENTIALS_VARIABLE: Final = "CHESS_SNN_CREDENTIALS"
"""Environment variable with ``user:password``; an option would show in the list of processes."""

CREDENTIALS_FILE_VARIABLE: Final = "CHESS_SNN_CREDENTIALS_FILE"
"""Environment variable with the path of a file that holds the same, for its owner alone."""

SHORTEST_PASSWORD: Final = 12
"""Characters; MLflow takes no shorter one."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The one user of both servers."""

    user: str
    password: str = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The credentials in ``user:password``.

        Raises:
            ConfigError: it is something else, or the password is too short; does not repeat them.
        """
        user, colon, password = text.partition(":")
        if not (user and colon) or len(password) < SHORTEST_PASSWORD:
            raise ConfigError(
                f"{CREDENTIALS_VARIABLE} must be user:password, with at least {SHORTEST_PASSWORD} "
                "characters in the password"
            )
        return cls(user, password)

    @property
    def text(self) -> str:
        """``user:password``."""
        return f"{self.user}:{self.password}"


def read_credentials() -> Credentials | None:
    """The credentials in the environment, or in the file that it names, if it has any.

    Raises:
        ConfigError: they are malformed, or others can read the file.
    """
    text, file = os.environ.get(CREDENTIALS_VARIABLE), os.environ.get(CREDENTIALS_FILE_VARIABLE)
    if text and file:
        raise ConfigError(
            f"{CREDENTIALS_VARIABLE} and {CREDENTIALS_FILE_VARIABLE} are both set; unset one"
        )
    if file:
        text = _read_secret(Path(file))
    return Credentials.parse(text) if text else None


def _read_secret(path: Path) -> str:
    """The first line of a regular file of this user, of mode 0600 or less.

    Raises:
        ConfigError: it cannot be read, or others may read or change it; shows no content.
    """
    named = f"{path}, which {CREDENTIALS_FILE_VARIABLE} names,"
    try:
        # The open file is checked and read, even if the path changes meanwhile.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8") as file:
            facts = os.fstat(file.fileno())
            mode = stat.S_IMODE(facts.st_mode)
            if (
                not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.getuid()
                or mode & (stat.S_IRWXG | stat.S_IRWXO)
            ):
                raise ConfigError(
                    f"{named} must be a regular file of your own that others cannot read, has "
                    f"owner {facts.st_uid} and mode {mode:04o}; run chmod 600 {path}, and choose "
                    "another password if others could read it"
                )
            return file.readline().strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it must be UTF-8 text, user:password"
        raise ConfigError(f"{named} cannot be read: {reason}") from error


def check_host(host: str, ports: Sequence[int], asker: str, *, has_password: bool) -> None:
    """Return if servers may listen on the TCP ``ports`` of ``host``.

    Args:
        host: address or name of this machine.
        ports: that the tunnel of the message leads to.
        asker: for the message, as in ``"the page needs"`` (a password).
        has_password: whether clients must give one.

    Raises:
        ConfigError: it would listen on several addresses, or others could use it without a
            password.
    """
    if ":" in host or is_every_address(host):
        raise ConfigError(f"--host must be one IPv4 address or name of this machine, got {host!r}")
    if not is_loopback(host) and not has_password:
        tunnels = " ".join(f"-L {port}:{LOOPBACK}:{port}" for port in ports)
        raise ConfigError(
            f"--host {host} can be reached by others, so {asker} a password: set "
            f"{CREDENTIALS_VARIABLE}=user:password, or {CREDENTIALS_FILE_VARIABLE} to a file that "
            f"holds it, or leave out --host and come by SSH (ssh {tunnels} THIS_MACHINE)"
        )
