"""Notes of what was set aside, and of what was removed: nothing makes a damaged one again."""

import pytest

from chess_snn.campaign.store.quarantine import read_notes, write_note
from chess_snn.campaign.store.removals import Removed, note_removal, read_removals
from chess_snn.errors import CorruptDataError


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 1}'])
def test_a_damaged_note_is_not_to_be_deleted_bug(new_folder, text):
    folder = new_folder("c")
    notes = {
        note_removal(folder, [Removed("games/iter-000000", 1000, None)]): read_removals,
        write_note(folder, folder.shard(0, 0), "set aside", "other bytes"): read_notes,
    }
    for path, read in notes.items():
        path.write_text(text)
        with pytest.raises(CorruptDataError, match=f"{path.name} .*; restore it from a copy$"):
            read(folder)
