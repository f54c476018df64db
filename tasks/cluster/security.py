"""TLS between the processes of a cluster: all hosts share one key and its certificate.

A process with the key is let in, and no other. Dask does not check the names in certificates, so a
key for each host would not restrict what its holder may do. Folders from an authority that made a
key for each host have the same three files and work as well.
"""

import os
from pathlib import Path
from typing import Final

from distributed import Security

from chess_snn.campaign.configuration.pace import check_address
from chess_snn.errors import ConfigError, UsageError

CERTIFICATES: Final = "CHESS_SNN_CERTIFICATES"
"""Variable with the folder of the certificate, its key and the authority's certificate."""

AUTHORITY_FILE: Final = "ca.pem"
CERTIFICATE_FILE: Final = "node.pem"
KEY_FILE: Final = "node-key.pem"

_ROLES: Final = ("scheduler", "worker", "client")
_OTHERS_MAY: Final = 0o077
_OWNER_ONLY: Final = 0o600
_FOLDER_OF_OWNER: Final = 0o700


def make_certificates(folder: Path) -> None:
    """Make a key and its certificate, valid for a year, for all hosts of a cluster.

    Raises:
        UsageError: ``folder`` has certificates, or cannot be written.
    """
    made = Security.temporary()
    texts = {
        AUTHORITY_FILE: made.tls_ca_file, CERTIFICATE_FILE: made.tls_worker_cert,
        KEY_FILE: made.tls_worker_key,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=_FOLDER_OF_OWNER)
        for name, text in texts.items():
            # Readable by its owner alone from the first byte on.
            descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
    except FileExistsError as error:
        raise UsageError(
            f"{error.filename} exists: hosts that have a copy would be locked out; delete {folder} "
            "to make all certificates anew"
        ) from error
    except OSError as error:
        raise UsageError(
            f"cannot write certificates to {folder}: {error.strerror} ({error.filename})"
        ) from error


def security_of(address: str, certificates: str, setting: str) -> Security | None:
    """How to talk to ``address``; None for plain TCP, which stays on loopback.

    Args:
        address: ``tls://HOST:PORT``, or ``tcp://`` on loopback.
        certificates: folder that `chess-snn cluster certs` made; empty takes that of the
            environment.
        setting: what the folder is called by who gives it, for messages.

    Raises:
        ConfigError: it leaves this machine in clear, or certificates are missing or unusable.
    """
    check_address("the scheduler's address", address)
    if not address.startswith("tls://"):
        return None
    if folder := certificates or os.environ.get(CERTIFICATES, ""):
        return read_certificates(Path(folder).expanduser().absolute())
    raise ConfigError(
        f"{address} needs certificates: make them with `chess-snn cluster certs DIR`, and give the "
        f"folder by {setting} or {CERTIFICATES}"
    )


def read_certificates(folder: Path) -> Security:
    """The certificates in ``folder``, for whatever this host does in the cluster.

    Raises:
        ConfigError: a file is missing or damaged, it is another one's, or others may read the key.
    """
    paths = {name: folder / name for name in (AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE)}
    for path in paths.values():
        if not path.is_file():
            raise ConfigError(
                f"{path} is missing; {folder} must be a folder that `chess-snn cluster certs` made"
            )
    key = paths[KEY_FILE]
    # A mounted secret is a link to a file of the group.
    if not key.is_symlink() and key.stat().st_mode & _OTHERS_MAY:
        raise ConfigError(f"others may read the key {key}; close it: chmod 600 {key}")
    certificate = str(paths[CERTIFICATE_FILE])
    security = Security(
        require_encryption=True,
        tls_ca_file=str(paths[AUTHORITY_FILE]),
        **{f"tls_{role}_cert": certificate for role in _ROLES},
        **{f"tls_{role}_key": str(key) for role in _ROLES},
    )
    try:
        for role in _ROLES:  # else Dask would read the files in the midst of things
            security.get_connection_args(role)
            security.get_listen_args(role)
    except OSError as error:  # those of OpenSSL are such, and some of them say little
        raise ConfigError(
            f"{', '.join(paths)} in {folder} cannot be used: a file is damaged or closed to you, "
            f"or certificate and key do not belong together ({error}); copy the whole folder "
            "again, or make it anew with `chess-snn cluster certs DIR`"
        ) from error
    return security
