"""Where the services listen, and who may talk to them: ports, and the password in its file."""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from chess_snn.campaign.configuration.pace import is_loopback
from chess_snn.config import check_range
from chess_snn.errors import ConfigError
from chess_snn.ports import check_port
from flows.server_processes import HOST

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


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """How the services are run."""

    host: str = HOST
    """Address of this machine that the servers listen on; off loopback they demand credentials."""
    prefect_port: int = 4200
    mlflow_port: int = 5000
    runs: int = 1
    """Runs of deployments at once; a campaign alone takes every core or GPU."""
    credentials: Credentials | None = None
    """Required from every client of a server."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, or would open a server to everyone."""
        check_range("--prefect-port", self.prefect_port, ge=1, le=65_535)
        check_range("--mlflow-port", self.mlflow_port, ge=1, le=65_535)
        if self.prefect_port == self.mlflow_port:
            raise ConfigError(
                f"--prefect-port and --mlflow-port are both {self.mlflow_port}; give each its own"
            )
        check_range("--runs", self.runs, ge=1, le=64)
        if self.host == "0.0.0.0" or ":" in self.host:  # noqa: S104 - refused
            raise ConfigError(
                f"--host must be one IPv4 address or name of this machine, got {self.host!r}"
            )
        if not self.is_loopback and self.credentials is None:
            raise ConfigError(
                f"--host {self.host} can be reached by others, so the servers need a password: set "
                f"{CREDENTIALS_VARIABLE}=user:password, or {CREDENTIALS_FILE_VARIABLE} to a file "
                "that holds it, or leave out --host and come by SSH "
                f"(ssh -L {self.prefect_port}:127.0.0.1:{self.prefect_port} "
                f"-L {self.mlflow_port}:127.0.0.1:{self.mlflow_port} THIS_MACHINE)"
            )

    @property
    def is_loopback(self) -> bool:
        """Whether the servers can be reached from this machine alone."""
        return is_loopback(self.host)

    @property
    def prefect_url(self) -> str:
        """Of Prefect's API."""
        return f"http://{self.host}:{self.prefect_port}/api"

    @property
    def mlflow_url(self) -> str:
        """Of the MLflow server, as a tracking URI too."""
        return f"http://{self.host}:{self.mlflow_port}"

    def check_ports(self) -> None:
        """Return if both servers could listen now.

        Raises:
            UsageError: one could not; says why.
        """
        check_port(self.host, self.prefect_port, "Prefect server", "--prefect-port")
        check_port(self.host, self.mlflow_port, "MLflow server", "--mlflow-port")
