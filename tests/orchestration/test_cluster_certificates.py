"""Certificates of a cluster: who is let in, and what is refused before anything is begun."""

import shutil
import ssl
import stat

import pytest

from chess_snn.errors import ConfigError, UsageError
from chess_snn.tasks.cluster import identity
from chess_snn.tasks.cluster.identity import differences, own_resource, own_software
from chess_snn.tasks.cluster.security import (
    CERTIFICATES,
    make_certificates,
    read_certificates,
    security_of,
)

pytestmark = pytest.mark.orchestration
pytest.importorskip("distributed")
pytest.importorskip("cryptography")


ADDRESS = "tls://box-a:8786"


@pytest.fixture
def folder(tmp_path):
    return made_in(tmp_path / "certs")


def made_in(folder):
    make_certificates(folder)
    return folder


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Both ends in memory, until both are content."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        server.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server),
    ]
    for _ in range(6):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    for end in ends:
        end.do_handshake()


def contexts(security):
    return (security.get_listen_args("scheduler")["ssl_context"],
            security.get_connection_args("worker")["ssl_context"])


def test_keys_are_their_owners_alone(folder):
    assert sorted(path.name for path in folder.iterdir()) == ["ca.pem", "node-key.pem", "node.pem"]
    assert mode(folder / "node-key.pem") == 0o600
    assert mode(folder) == 0o700


def test_hosts_with_a_copy_trust_each_other_and_no_other_certificate(tmp_path, folder):
    copy = shutil.copytree(folder, tmp_path / "copy")
    stranger = made_in(tmp_path / "strangers")
    server, _ = contexts(read_certificates(folder))
    shake_hands(server, contexts(read_certificates(copy))[1])
    with pytest.raises(ssl.SSLError):
        shake_hands(server, contexts(read_certificates(stranger))[1])


def test_certificates_are_not_overwritten(folder):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(UsageError, match=str(folder)):
        make_certificates(folder)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file/certs"):
        make_certificates(tmp_path / "file" / "certs")


def test_certificates_come_from_the_option_or_the_environment(folder, monkeypatch):
    assert security_of(ADDRESS, str(folder), "--certificates").require_encryption
    monkeypatch.setenv(CERTIFICATES, str(folder))
    assert security_of(ADDRESS, "", "--certificates").require_encryption
    assert security_of("tcp://127.0.0.1:8786", "", "--certificates") is None


def test_a_key_that_others_may_read_is_refused(folder):
    (folder / "node-key.pem").chmod(0o640)
    with pytest.raises(ConfigError, match="node-key"):
        read_certificates(folder)


def test_a_folder_without_certificates_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"ca\.pem"):
        read_certificates(tmp_path)


def renewed_alone(folder):
    return (made_in(folder.parent / "other") / "node.pem").read_bytes()


@pytest.mark.parametrize(("name", "bytes_of"), [
    ("node.pem", renewed_alone),
    ("node.pem", lambda folder: (folder / "node.pem").read_bytes()[:200]),
    ("node-key.pem", lambda folder: (folder / "node-key.pem").read_bytes()[:100]),
    ("ca.pem", lambda folder: b""),
], ids=["renewed-alone", "cut-certificate", "cut-key", "empty-authority"])
def test_certificates_that_cannot_be_used_are_named_with_their_folder(folder, name, bytes_of):
    (folder / name).write_bytes(bytes_of(folder))
    with pytest.raises(ConfigError, match=str(folder)) as error:
        security_of(ADDRESS, str(folder), "--certificates")
    assert "\n" not in str(error.value)


# The handshake: which differences count, and what they do to the name of a worker's device.


def test_everything_that_must_be_the_same_is_compared():
    ours = own_software()
    assert list(ours) == [
        "chess-snn", "sources", "python", "torch", "numpy", "numba", "distributed", "shards",
        "chess", "2048",
    ]
    assert differences(dict(ours)) == ""
    for name, version in ours.items():
        told = differences(ours | {name: "0.1"})
        assert all(part in told for part in (name, "0.1", version))
        without = {key: value for key, value in ours.items() if key != name}
        assert all(part in differences(without) for part in (name, version))


def test_another_build_of_torch_is_the_same_software(monkeypatch):
    found = {"torch": "2.13.0+cpu", "numpy": "2.4", "numba": "0.68", "distributed": "2026.8.0"}
    monkeypatch.setattr(identity.metadata, "version", found.__getitem__)
    cpu = own_software.__wrapped__()
    found["torch"] = "2.13.0+cu130"
    assert own_software.__wrapped__() == cpu
    assert cpu["torch"] == "2.13.0"


def test_a_device_is_called_by_its_software(monkeypatch):
    ours = own_resource()
    monkeypatch.setattr(identity, "own_software", lambda: {"chess-snn": "0.0.1"})
    assert own_resource() != ours
