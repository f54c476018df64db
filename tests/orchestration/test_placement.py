"""Stages on workers that do not see the campaign folder, by real workers."""

import asyncio
import hashlib
import inspect
from pathlib import Path
from types import SimpleNamespace

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.timeout(900)]
pytest.importorskip("distributed")

from chess_snn.campaign import CampaignFolder, load_config  # noqa: E402
from chess_snn.campaign.stages import play_shard, prepare_first_generation  # noqa: E402
from chess_snn.campaign.store.plans import begin_iteration  # noqa: E402
from chess_snn.data import verify_folder  # noqa: E402
from chess_snn.errors import ClusterError, DamagedFolderError  # noqa: E402
from flows.cluster import campaign_workers  # noqa: E402
from tasks import compute, placement, remote  # noqa: E402
from tasks.placement import FileStore, check_seen, give_access  # noqa: E402

SETTINGS = (
    "campaign.iterations=1", "self_play.games_per_iteration=6", "self_play.games_per_shard=2",
    "self_play.max_plies_first=6", "self_play.max_plies_last=6", "search.simulations_first=2",
    "search.simulations_last=2", "training.batch_size=8", "execution.workers=1",
)
TRAINED_HERE = {"train_first_generation"}
"""Read games outside the campaign folder, so they are not sent as remote jobs."""


@pytest.fixture
def make(tmp_path):
    def make(name: str, *changes: str) -> CampaignFolder:
        folder = CampaignFolder.create(
            tmp_path / name / "campaign", load_config(settings=[*SETTINGS, *changes])
        )
        prepare_first_generation(folder)
        begin_iteration(folder, 0, 0.0)
        return folder

    return make


def test_every_stage_says_which_artifact_it_makes():
    stages = {
        name for name, function in vars(remote).items()
        if inspect.isfunction(function) and function.__module__ == remote.__name__
        and not name.startswith("_")
        and next(iter(inspect.signature(function).parameters), "") == "directory"
    }
    assert {function.__name__ for function in placement._MAKES} == stages - TRAINED_HERE


@pytest.mark.slow
def test_stages_on_workers_without_the_folder_are_committed_here(make):
    folder, plain = make("c", "cluster.shared_storage=false"), make("plain")
    directory = str(folder.path)
    expected = [play_shard(plain.path, 0, shard) for shard in range(3)]
    compute.start()
    with campaign_workers(folder, lambda text: None) as pool:
        give_access(pool.client, folder, pool.addresses)
        calls = [(remote.play_shard, directory, 0, shard) for shard in range(3)]
        first = compute.run_on_device(*calls[1])
        committed = folder.shard(0, 1).stat()
        facts = compute.run_all_on_devices(calls)
        assert facts[1] == first
        assert folder.shard(0, 1).stat() == committed
        directories = pool.client.run(lambda dask_worker: dask_worker.local_directory)
        for shard in range(3):
            ours, theirs = (verify_folder(c.shard(0, shard)) for c in (folder, plain))
            assert ours.files == theirs.files
        assert [fact.bytes for fact in facts] == [fact.bytes for fact in expected]
        (cache,) = [Path(d) / "campaigns" / folder.campaign_id for d in directories.values()]
        names = ("campaign.toml", *(
            f"checkpoints/gen-000000/{name}" for name in ("MANIFEST.json", "weights.safetensors")
        ))
        kept = sorted(path.read_bytes() for path in cache.iterdir())
        assert kept == sorted((folder.path / name).read_bytes() for name in names)


@pytest.mark.slow
def test_workers_that_should_see_the_folder_and_do_not_are_named(make, tmp_path):
    folder = make("c")
    with campaign_workers(folder, lambda text: None) as pool:
        check_seen(pool.client, folder, pool.addresses)
        (folder.path / "campaign.toml").rename(tmp_path / "campaign.toml")
        with pytest.raises(ClusterError, match="tls://"):
            check_seen(pool.client, folder, pool.addresses)
        with pytest.raises(FileNotFoundError, match="does not see the campaign"):
            pool.client.submit(remote.play_shard, str(folder.path), 0, 0).result()
        other = CampaignFolder.create(folder.path.parent / "other", folder.config)
        (other.path / "campaign.toml").rename(folder.path / "campaign.toml")
        with pytest.raises(ClusterError):
            check_seen(pool.client, folder, pool.addresses)


def test_the_scheduler_keeps_files_that_were_asked_for_last():
    async def use() -> None:
        store = FileStore()
        await store.start(SimpleNamespace(handlers={}))
        contents = [b"a" * 10, b"b" * 10, b"c" * 10]
        a, b, c = digests = [hashlib.sha256(content).hexdigest() for content in contents]
        assert await store.lacking([a, b], 100) == sorted([a, b])
        for digest, content in zip(digests, contents, strict=True):
            await store.put(digest, content)
        assert await store.lacking([a], 20) == []
        assert [await store.get(digest) for digest in digests] == [contents[0], None, contents[2]]
        assert await store.lacking([a, c, b], 0) == [b], "those of one job are kept"
        store._path(a).write_bytes(b"rotten")
        assert await store.get(a) is None
        assert await store.lacking([a, c], 0) == [a]

    asyncio.run(use())


@pytest.mark.slow
def test_a_damaged_input_is_named_and_one_that_the_scheduler_lost_is_sent_again(make):
    folder = make("c", "cluster.shared_storage=false")
    call = (remote.play_shard, str(folder.path), 0, 0)
    compute.start()
    with campaign_workers(folder, lambda text: None) as pool:
        give_access(pool.client, folder, pool.addresses)
        weights = folder.checkpoint(0) / "weights.safetensors"
        content = weights.read_bytes()
        weights.write_bytes(b"x" + content[1:])
        with pytest.raises(DamagedFolderError) as caught:
            compute.run_on_device(*call)
        assert caught.value.folder == folder.checkpoint(0)
        weights.write_bytes(content)

        job = placement.sent(pool.client, call)
        pool.client.run_on_scheduler(lambda dask_scheduler: [
            path.unlink()
            for path in dask_scheduler.plugins[FileStore.name]._path("x").parent.iterdir()
        ])
        with pytest.raises(FileNotFoundError, match="does not keep"):
            pool.client.submit(*job, pure=False).result()
        assert compute.run_on_device(*call).name == "iter-000000/shard-0000"
