"""A worker meets corrupt data: it is rebuilt, and the call is repeated."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.timeout(300), pytest.mark.fault(10, 11)]
pytest.importorskip("distributed")
pytest.importorskip("prefect")

from distributed import Client, LocalCluster  # noqa: E402
from stored_files import copy_campaign  # noqa: E402

from chess_snn.campaign import CampaignFolder  # noqa: E402
from chess_snn.campaign.artifacts.artifact import Stored  # noqa: E402
from chess_snn.campaign.artifacts.table import CHECKPOINT  # noqa: E402
from chess_snn.campaign.integrity.rebuild import Rebuilder  # noqa: E402
from chess_snn.campaign.store.notes import read_notes  # noqa: E402
from chess_snn.data import read_shard  # noqa: E402
from chess_snn.errors import (  # noqa: E402
    BeyondRepairError,
    DamagedFolderError,
    RankLostError,
)
from chess_snn.flows import campaign as campaign_flow  # noqa: E402
from chess_snn.tasks import compute, remote  # noqa: E402
from chess_snn.tasks.compute import (  # noqa: E402
    DEVICE,
    rebuilds_by,
    run_all_on_devices,
    run_on_device,
)
from chess_snn.tasks.progress import ProgressBoard  # noqa: E402


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, resources={DEVICE: 1},
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def folder(client, tmp_path: Path) -> CampaignFolder:
    compute.start()
    return copy_campaign(tmp_path)


def count_games(shard: Path) -> int:
    return read_shard(shard)[0].num_games


def shards_of(folder: CampaignFolder) -> list[Path]:
    return [folder.shard(i, s) for i in (0, 1) for s in (0, 1)]


def rebuilder_from_copies(
    folder: CampaignFolder, originals: Path, told: list[str]
) -> Rebuilder:
    """Rebuilds by copying the original, on a worker."""

    def copy(_: CampaignFolder, stored: Stored) -> object:
        return run_on_device(shutil.copy, originals / stored.name, stored.path(folder))

    return Rebuilder(folder, told.append, copy)


@pytest.mark.slow
def test_damage_that_workers_meet_is_mended_and_their_calls_are_made_again(
    folder: CampaignFolder, tmp_path: Path
) -> None:
    shutil.copytree(folder.path, tmp_path / "originals")
    noted = read_notes(folder)
    folder.shard(0, 1).write_bytes(b"")
    folder.shard(1, 0).unlink()
    told: list[str] = []
    with rebuilds_by(rebuilder_from_copies(folder, tmp_path / "originals", told).run):
        assert run_all_on_devices([(count_games, shard) for shard in shards_of(folder)]) == [3] * 4
    assert [note.event for note in read_notes(folder) if note not in noted] == [
        "quarantined", "rebuilt", "rebuilt",
    ]


@pytest.mark.slow
def test_one_damaged_shard_is_mended_once_for_all_who_meet_it(
    folder: CampaignFolder, tmp_path: Path
) -> None:
    shutil.copytree(folder.path, tmp_path / "originals")
    folder.shard(0, 0).write_bytes(b"")
    told: list[str] = []
    with rebuilds_by(rebuilder_from_copies(folder, tmp_path / "originals", told).run):
        assert run_all_on_devices([(count_games, folder.shard(0, 0))] * 6) == [3] * 6
    assert len(told) == 2


@pytest.mark.slow
def test_what_cannot_be_mended_ends_the_call(folder: CampaignFolder) -> None:
    folder.shard(0, 0).write_bytes(b"")

    def give_up(work: Callable[[], object]) -> object:
        try:
            return work()
        except DamagedFolderError as error:
            raise BeyondRepairError(f"no way: {error}") from error

    with rebuilds_by(give_up), pytest.raises(BeyondRepairError, match="shard-0000"):
        run_on_device(count_games, folder.shard(0, 0))


def read_otherwise(shard: Path) -> None:
    raise DamagedFolderError(f"{shard} is damaged, as this worker reads it", shard)


@pytest.mark.slow
def test_what_a_worker_alone_finds_damaged_ends_the_call_bug(folder: CampaignFolder) -> None:
    told: list[str] = []
    rebuilder = rebuilder_from_copies(folder, folder.path, told)
    rebuilder.pause_s = 0.0
    with rebuilds_by(rebuilder.run), pytest.raises(BeyondRepairError, match="shard-0000"):
        run_on_device(read_otherwise, folder.shard(0, 0))


def test_a_generation_is_trained_again_though_a_rank_dies_meanwhile_bug(
    folder: CampaignFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []

    def first_rank_dies(function: object, *_: object) -> str:
        made.append(function)
        if len(made) == 1:
            raise RankLostError("rank 1 (process 7) was killed by SIGKILL")
        return "trained"

    monkeypatch.setattr(campaign_flow, "run_on_device", first_rank_dies)
    told: list[str] = []
    board = ProgressBoard([])
    monkeypatch.setattr(board, "message", told.append)
    rebuilder = campaign_flow.rebuilder_of(folder, board)
    assert rebuilder.make(folder, Stored(CHECKPOINT, (1,))) == "trained"
    assert made == [remote.train_generation] * 2
    assert len(told) == 1
