"""Whether somebody writes a campaign is told without disturbing anybody."""

import json
import os
import socket

import pytest

from chess_snn.campaign import campaign_lock
from chess_snn.campaign.viewing.live import WriterState, find_writer


def test_a_campaign_that_nobody_ran_has_none(new_folder):
    assert find_writer(new_folder()) is None


def test_runs_while_it_holds_the_lock_and_not_merely_while_it_lives(new_folder):
    folder = new_folder()
    with campaign_lock(folder):
        writer = find_writer(folder)
        assert (writer.pid, writer.host) == (os.getpid(), socket.gethostname())
        assert writer.state is WriterState.RUNNING
        assert str(writer).startswith(f"running: process {os.getpid()} on {socket.gethostname()}")
    assert find_writer(folder).state is WriterState.STOPPED


def test_another_hosts_process_cannot_be_seen(new_folder):
    folder = new_folder()
    holder = {"host": "elsewhere", "pid": os.getpid(), "since": "2026-01-31T12:00:00+00:00"}
    folder.lock_file.write_text(json.dumps(holder))
    writer = find_writer(folder)
    assert writer.state is WriterState.ELSEWHERE
    assert writer.since.timestamp() == 1769860800
    assert "on another host: process" in str(writer)


@pytest.mark.parametrize("text", [
    "", "{", "[]", "\xff", '{"host": "a"}',
    '{"host": "a", "pid": -1, "since": "2026-01-31"}',
    '{"host": "a", "pid": 99999999999, "since": "2026-01-31"}',
    '{"host": "a", "pid": 1, "since": "yesterday"}',
])
def test_a_lock_file_that_is_just_being_written_names_nobody(new_folder, text):
    folder = new_folder()
    folder.lock_file.write_text(text, encoding="latin-1")
    assert find_writer(folder) is None
