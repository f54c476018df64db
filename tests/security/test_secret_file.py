"""Secrets come from the environment or from files of their owner alone, and are shown nowhere."""

import os
import stat

import pytest

pytest.importorskip("httpx")

from chess_snn.credentials import Credentials, read_credentials
from chess_snn.errors import ChessSnnError, ConfigError, without_credentials
from chess_snn.flows.services import owned_folder

SECRET = "canary-password"


@pytest.fixture
def secret_file(tmp_path, monkeypatch):
    path = tmp_path / "credentials"
    path.touch(0o600)
    path.write_text(f"me:{SECRET}\n")
    monkeypatch.delenv("CHESS_SNN_CREDENTIALS", raising=False)
    monkeypatch.setenv("CHESS_SNN_CREDENTIALS_FILE", str(path))
    return path


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_file_of_its_owner_alone_is_read(secret_file, mode):
    secret_file.chmod(mode)
    assert read_credentials() == Credentials("me", SECRET)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o777, 0o610, 0o602])
def test_a_wider_mode_is_refused_by_name(secret_file, mode):
    secret_file.chmod(mode)
    with pytest.raises(ConfigError) as refused:
        read_credentials()
    told = str(refused.value)
    assert f"mode {mode:04o}" in told
    assert f"chmod 600 {secret_file}" in told
    assert SECRET not in told


def test_both_at_once_are_refused(secret_file, monkeypatch):
    monkeypatch.setenv("CHESS_SNN_CREDENTIALS", "me:another-password")
    with pytest.raises(ConfigError):
        read_credentials()


def test_what_is_no_secret_file_is_named(secret_file, tmp_path, monkeypatch):
    secret_file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError):
        read_credentials()
    for path in (tmp_path / "absent", tmp_path):
        monkeypatch.setenv("CHESS_SNN_CREDENTIALS_FILE", str(path))
        with pytest.raises(ConfigError, match=str(path)):
            read_credentials()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(secret_file):
    os.chown(secret_file, 12345, -1)
    with pytest.raises(ConfigError, match="12345"):
        read_credentials()


def test_the_folder_of_the_services_is_its_owners_alone(tmp_path):
    with owned_folder(tmp_path / "services"):
        assert stat.S_IMODE((tmp_path / "services").stat().st_mode) == 0o700


@pytest.mark.parametrize(("text", "shown"), [
    ("at http://me:canary-password@box:5000/api failed", "at http://***@box:5000/api failed"),
    ("postgresql+psycopg2://u:p%40w@db/x and https://t@h", "postgresql+psycopg2://***@db/x and "
                                                           "https://***@h"),
    ("http://me:p@ss:w@box/a b@c", "http://***@box/a b@c"),
    ("sqlite:////a/b@c.db, mail me@here, http://host/a@b", None),
])
def test_no_error_repeats_what_an_address_holds(text, shown):
    assert without_credentials(text) == (shown or text)
    assert str(ChessSnnError(text)) == (shown or text)
