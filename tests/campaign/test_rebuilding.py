"""What is rebuilt and what is not, decided before anything is made."""

import shutil
from pathlib import Path

import pytest
from small_campaigns import finish, idle_rebuilder, make_campaign
from stored_files import copy_campaign

from chess_snn.campaign.integrity.rebuild import MOST_READINGS
from chess_snn.campaign.store.notes import Removed, note_removal
from chess_snn.errors import BeyondRepairError, DamagedFolderError


@pytest.mark.fault(11)
def test_a_generation_whose_games_were_removed_is_not_trained_on_nothing_bug(
    tmp_path: Path,
) -> None:
    folder = make_campaign(tmp_path / "c")
    finish(folder, 0)
    note_removal(folder, [Removed("games/iter-000000", 1, None)])
    for path in (folder.shard(0, 0).parent, folder.checkpoint(1)):
        shutil.rmtree(path)
    with pytest.raises(
        BeyondRepairError,
        match=r"generation 1 cannot be trained again: its games were removed by `chess-snn gc`; "
        r"restore .*gen-000001 from a copy",
    ):
        idle_rebuilder(folder, []).rebuild(DamagedFolderError("it is gone", folder.checkpoint(1)))


@pytest.mark.fault(10)
def test_what_is_whole_here_and_read_otherwise_elsewhere_ends_bug(tmp_path: Path) -> None:
    folder = copy_campaign(tmp_path)
    told, readings = list[str](), 0

    def read() -> None:
        nonlocal readings
        readings += 1
        raise DamagedFolderError("other bytes on box-b", folder.shard(0, 1))

    with pytest.raises(
        BeyondRepairError,
        match=r"shard-0001 .*\(other bytes on box-b\)",
    ):
        idle_rebuilder(folder, told).run(read)
    assert readings == MOST_READINGS + 1
    assert set(told) == {
        "Shard 1 of iteration 0 is intact here; a worker reads it otherwise: other bytes on box-b"
    }


@pytest.mark.fault(10)
def test_many_who_met_what_was_rebuilt_since_just_try_again(tmp_path: Path) -> None:
    folder, told = copy_campaign(tmp_path), list[str]()
    rebuilder = idle_rebuilder(folder, told)
    for _ in range(2 * MOST_READINGS):
        rebuilder.rebuild(DamagedFolderError("other bytes", folder.shard(0, 1)))
    assert told == []
