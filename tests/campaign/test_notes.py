"""Notes of what was set aside, and of what was removed: nothing makes a damaged one again."""

import pytest

from chess_snn.campaign.store.notes import (
    Removed,
    note_removal,
    read_notes,
    read_removals,
    write_note,
)
from chess_snn.errors import CorruptDataError


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 1}'])
def test_a_damaged_note_is_not_to_be_deleted_bug(new_folder, text):
    folder = new_folder("c")
    notes = {
        note_removal(folder, [Removed("games/iter-000000", 1000, None)]): read_removals,
        write_note(folder, folder.shard(0, 0), "quarantined", "other bytes"): read_notes,
    }
    for path, read in notes.items():
        path.write_text(text)
        with pytest.raises(CorruptDataError, match=f"{path.name} .*; restore it from a copy$"):
            read(folder)


@pytest.mark.parametrize(("formerly", "now"), [
    ("set aside", "quarantined"), ("made again", "rebuilt"), ("dropped", "dropped"),
])
def test_a_note_of_the_first_version_is_read(new_folder, formerly, now):
    folder = new_folder("c")
    path = write_note(folder, folder.shard(0, 0), "dropped", "other bytes")
    text = path.read_text().replace('"schema": 2', '"schema": 1')
    path.write_text(text.replace('"event": "dropped"', f'"event": "{formerly}"'))
    (note,) = read_notes(folder)
    assert note.event == now
