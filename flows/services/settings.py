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

POOL: Final = "chess"
"""The work pool of ``deployments/prefect.yaml``."""

CREDENTIALS_VARIABLE: Final = "CHESS_SNN_CREDENTIALS"
"""Environment variable with ``user:password``; an option would show in the list of processes."""

CREDENTIALS_FILE_VARIABLE: Final = "CHESS_SNN_CREDENTIALS_FILE"
"""Environment variable with the path of a file that holds the same, for its owner alone."""

SHORTEST_PASSWORD: Final = 12
"""Characters; MLflow takes no shorter one."""

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_MOST_BYTES: Final = 4096
"""Of a file with credentials."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The one user of both servers."""

    user: str
    password: str = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The credentials in ``user:password``.

        Raises:
            ConfigError: they are none; the message does not repeat them.
        """
        user, colon, password = text.partition(":")
        if not (user and colon):
            raise ConfigError(f"{CREDENTIALS_VARIABLE} must be user:password")
        if len(password) < SHORTEST_PASSWORD:
            raise ConfigError(
                f"the password in {CREDENTIALS_VARIABLE} must have at least {SHORTEST_PASSWORD} "
                f"characters, has {len(password)}"
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
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"cannot read {named.rstrip(',')}: {reason}") from error
    try:
        _check_owner_only(named, path, os.fstat(descriptor))
        line = os.read(descriptor, _MOST_BYTES).partition(b"\n")[0]
    finally:
        os.close(descriptor)
    try:
        return line.decode().strip()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{named} is not UTF-8 text; write user:password") from error


def _check_owner_only(named: str, path: Path, facts: os.stat_result) -> None:
    mode = stat.S_IMODE(facts.st_mode)
    if not stat.S_ISREG(facts.st_mode):
        raise ConfigError(f"{named} is not a regular file; give a regular file")
    if facts.st_uid != os.getuid():
        raise ConfigError(f"{named} belongs to user {facts.st_uid}; give a file of your own")
    if mode & _OTHERS:
        raise ConfigError(
            f"{named} has mode {mode:04o}, by which others may read or change it; run chmod 600 "
            f"{path}, and choose another password if they did"
        )


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """How the services are run."""

    host: str = HOST
    """Address of this machine that the servers listen on; off loopback they demand credentials."""
    prefect_port: int = 4200
    """Of the Prefect server."""
    mlflow_port: int = 5000
    """Of the MLflow server."""
    runs: int = 1
    """Runs of deployments at once; a campaign alone takes every core or GPU."""
    credentials: Credentials | None = None
    """Demanded of everybody who talks to a server."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, or would open a server to everybody."""
        check_range("--prefect-port", self.prefect_port, ge=1, le=65_535)
        check_range("--mlflow-port", self.mlflow_port, ge=1, le=65_535)
        if self.prefect_port == self.mlflow_port:
            raise ConfigError(
                f"--prefect-port and --mlflow-port are both {self.mlflow_port}; give each its own"
            )
        check_range("--runs", self.runs, ge=1, le=64)
        self._check_host()

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

    def _check_host(self) -> None:
        if ":" in self.host:
            raise ConfigError(f"--host must be an IPv4 address or a name, got {self.host!r}")
        if self.host == "0.0.0.0":  # noqa: S104 - refused
            raise ConfigError(
                "--host 0.0.0.0 would listen on every network this machine is in; name the one "
                "address or host name that the others reach it by"
            )
        if not self.is_loopback and self.credentials is None:
            raise ConfigError(
                f"--host {self.host} can be reached by others, so the servers need a password: set "
                f"{CREDENTIALS_VARIABLE}=user:password, or {CREDENTIALS_FILE_VARIABLE} to a file "
                "that holds it, or leave out --host and come by SSH "
                f"(ssh -L {self.prefect_port}:127.0.0.1:{self.prefect_port} "
                f"-L {self.mlflow_port}:127.0.0.1:{self.mlflow_port} THIS_MACHINE)"
            )


def check_ports(settings: ServiceSettings) -> None:
    """Return if both servers could listen now.

    Raises:
        UsageError: one could not; says why.
    """
    check_port(settings.host, settings.prefect_port, "Prefect server", "--prefect-port")
    check_port(settings.host, settings.mlflow_port, "MLflow server", "--mlflow-port")
