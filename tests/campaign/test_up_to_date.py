"""When the views of a finished campaign are taken to have all of it."""

import os

import pytest
from small_campaigns import finish, make_campaign

from chess_snn.campaign.store.folder import REPORT
from chess_snn.campaign.store.plans import Length, write_extension
from chess_snn.campaign.viewing.up_to_date import is_up_to_date, note_up_to_date

STORE = "sqlite:///mlflow.db"


@pytest.fixture
def folder(tmp_path):
    made = make_campaign(tmp_path / "campaign")
    finish(made, 0)
    (made.path / REPORT).write_text("<html>")
    made.services.mkdir(exist_ok=True)
    assert not is_up_to_date(made, STORE)
    note_up_to_date(made, STORE)
    assert is_up_to_date(made, STORE)
    return made


def later(path):
    """Let ``path`` be a second newer than it is, for clocks of files are coarse."""
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))


@pytest.mark.parametrize("change", [
    lambda folder: later(folder.receipt(finish(folder, 1).iteration)),
    lambda folder: (write_extension(folder, Length(9), 0.0), later(folder.extension(0))),
    lambda folder: later(folder.path / REPORT),
    lambda folder: (folder.path / REPORT).unlink(),
])
def test_what_came_later_is_not_in_them(folder, change):
    change(folder)
    assert not is_up_to_date(folder, STORE)


def test_another_store_lacks_all_of_it_and_no_password_is_noted(folder):
    assert not is_up_to_date(folder, "http://127.0.0.1:5000")
    note_up_to_date(folder, "http://me:secret@box:5000")
    assert is_up_to_date(folder, "http://me:secret@box:5000")
    assert not [path for path in folder.services.iterdir() if "secret" in path.read_text()]
