"""The settings of storage: what workers without the campaign folder keep, and the object store."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from chess_snn.config import check_range
from chess_snn.errors import ConfigError

_URL: Final = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w.=@~-]+)*/?")


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """Where games and checkpoints are kept beside the campaign folder; it changes no result.

    Credentials are no settings: they come from the environment alone (`AWS_ACCESS_KEY_ID`,
    `AWS_SECRET_ACCESS_KEY`, and `AWS_SESSION_TOKEN` where they are temporary).
    """

    object_store: str = ""
    """Keeps a copy of what is committed, `s3://BUCKET/PREFIX`, from which
    `chess-snn campaign restore` makes the folder anew; empty keeps none. A prefix holds one
    campaign."""
    endpoint: str = ""
    """Address of a store that is not Amazon's: `https://minio.example:9000`; empty takes
    `AWS_ENDPOINT_URL`, or else Amazon's for `AWS_REGION`."""
    patience_s: float = 300.0
    """How long a store that is away is asked again, in seconds; then the campaign stops, and
    `resume` goes on with it."""
    worker_cache_mib: int = 4096
    """Where `cluster.shared_storage` is off: what a worker keeps on its disk of weights and games
    that it was brought, in MiB. What a task needs at the moment is kept in any case."""

    def __post_init__(self) -> None:
        check_range("storage.patience_s", self.patience_s, ge=0, le=1_000_000)
        check_range("storage.worker_cache_mib", self.worker_cache_mib, ge=0, le=1 << 30)
        if self.object_store and not _URL.fullmatch(self.object_store):
            raise ConfigError(
                'storage.object_store must be like "s3://my-bucket/first-campaign", got '
                f'"{self.object_store}"'
            )
        _check_endpoint(self.endpoint)


def _check_endpoint(endpoint: str) -> None:
    parts = urlsplit(endpoint)
    if endpoint and (parts.scheme not in {"http", "https"} or not parts.hostname):
        raise ConfigError(
            f'storage.endpoint must be like "https://minio.example:9000", got "{endpoint}"'
        )
    if parts.username or parts.password:
        raise ConfigError(
            "storage.endpoint must not hold a user or a password; keys belong into "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
