"""A certificate authority for one cluster, and a certificate for each of its hosts.

A host is let in because the authority signed its certificate; names in it are for people, and for
programs that check them. Files::

    DIR/ca.pem  DIR/ca-key.pem            the authority; its key signs more hosts, and stays here
    DIR/box-a/{ca,node,node-key}.pem      what box-a needs, and nobody else
"""

import ipaddress
import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from chess_snn.errors import UsageError
from tasks.cluster.security import AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE

AUTHORITY_KEY_FILE: Final = "ca-key.pem"
AUTHORITY_DAYS: Final = 3650

_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]{0,63}")
_CLOCKS_DIFFER_BY: Final = timedelta(minutes=10)
_OWNER_ONLY: Final = 0o600
_FOLDER_OF_OWNER: Final = 0o700


def make_certificates(directory: Path, hosts: Sequence[str], days: int) -> list[Path]:
    """Make the authority, unless ``directory`` has one, and a certificate for each of ``hosts``.

    Args:
        directory: of the authority.
        hosts: names or addresses; one that has a certificate gets a new one.
        days: that a host's certificate is valid for.

    Returns:
        The folder of each host.

    Raises:
        UsageError: a host's name is none, or the folder cannot be used.
    """
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise UsageError(f"--host must be a host name or an address, got {host!r}")
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=_FOLDER_OF_OWNER)
        authority, authority_key = _authority(directory)
        return [
            _certify(directory / host, host, days, authority, authority_key) for host in hosts
        ]
    except OSError as error:
        raise UsageError(
            f"cannot write certificates to {directory}: {error.strerror} ({error.filename})"
        ) from error


def _authority(directory: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    certificate_file, key_file = directory / AUTHORITY_FILE, directory / AUTHORITY_KEY_FILE
    if certificate_file.exists() != key_file.exists():
        raise UsageError(
            f"{directory} has one of {AUTHORITY_FILE} and {AUTHORITY_KEY_FILE} without the other; "
            "restore it, or make all certificates anew in another folder"
        )
    if certificate_file.exists():
        return _read_authority(certificate_file, key_file)
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("chess-snn cluster")
    certificate = (
        _builder(name, name, key, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    _write_private(key_file, _key_bytes(key))
    certificate_file.write_bytes(_pem(certificate))
    return certificate, key


def _read_authority(
    certificate_file: Path, key_file: Path
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    try:
        certificate = x509.load_pem_x509_certificate(certificate_file.read_bytes())
        key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
    except ValueError as error:
        raise UsageError(
            f"{certificate_file} and {key_file} are no certificate and key; make all certificates "
            "anew in another folder"
        ) from error
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return certificate, key


def _certify(
    folder: Path, host: str, days: int, authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    usages = x509.ExtendedKeyUsage(
        [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    )
    certificate = (
        _builder(_name(host), authority.subject, key, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([_alternative_name(host)]), critical=False)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(usages, critical=False)
        .add_extension(issuer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    folder.mkdir(exist_ok=True, mode=_FOLDER_OF_OWNER)
    _write_private(folder / KEY_FILE, _key_bytes(key))
    (folder / CERTIFICATE_FILE).write_bytes(_pem(certificate))
    (folder / AUTHORITY_FILE).write_bytes(_pem(authority))
    return folder


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER_BY)
        .not_valid_after(now + timedelta(days=days))
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=signs_certificates, crl_sign=signs_certificates,
        content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, encipher_only=False, decipher_only=False,
    )


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write_private(path: Path, text: bytes) -> None:
    """Readable by its owner alone from the first byte on."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
