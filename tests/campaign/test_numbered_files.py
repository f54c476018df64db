"""Numbered files are read once each, and again only where they were replaced."""

import pytest

from chess_snn.campaign.viewing.watching import NumberedFiles
from chess_snn.data import read_json, write_json
from chess_snn.errors import CorruptDataError


@pytest.fixture
def files(tmp_path):
    """A log of the files in ``tmp_path/log``, with the numbers that were read so far."""
    folder, read = tmp_path / "log", []

    def path_of(number):
        return folder / f"{number}.json"

    def read_one(number):
        read.append(number)
        return read_json(path_of(number))["n"]

    return NumberedFiles[int](path_of, read_one), path_of, read


def test_each_is_read_once_as_it_comes(files):
    log, path_of, read = files
    assert not log.refresh()
    for number in range(3):
        write_json(path_of(number), {"n": number})
        assert log.refresh()
        assert not log.refresh()
    assert log.entries == read == [0, 1, 2]


def test_a_gap_ends_the_list_until_it_is_filled(files):
    log, path_of, _ = files
    for number in (0, 2):
        write_json(path_of(number), {"n": number})
    assert log.refresh()
    assert log.entries == [0]
    write_json(path_of(1), {"n": 1})
    assert log.refresh()
    assert log.entries == [0, 1, 2]


def test_what_was_replaced_or_removed_is_forgotten_with_all_that_follows(files):
    log, path_of, read = files
    for number in range(4):
        write_json(path_of(number), {"n": number})
    log.refresh()
    write_json(path_of(2), {"n": 12})
    assert log.refresh()
    assert log.entries == [0, 1, 12, 3]
    assert read == [0, 1, 2, 3, 2, 3]
    path_of(1).unlink()
    assert log.refresh()
    assert log.entries == [0]
    assert not log.refresh()


def test_a_damaged_one_is_named_each_time(files):
    log, path_of, _ = files
    write_json(path_of(0), {"n": 0})
    path_of(1).write_text("{")
    for _ in range(2):
        with pytest.raises(CorruptDataError, match=r"1\.json"):
            log.refresh()
    write_json(path_of(1), {"n": 1})
    assert log.refresh()
    assert log.entries == [0, 1]
