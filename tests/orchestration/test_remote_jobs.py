"""Stages on workers that do not see the campaign folder, by a real crew."""

import inspect
from pathlib import Path

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.timeout(900)]
pytest.importorskip("distributed")

from chess_snn.campaign import CampaignFolder, load_config  # noqa: E402
from chess_snn.campaign.stages import play_shard, prepare_first_generation  # noqa: E402
from chess_snn.campaign.store.plans import begin_iteration  # noqa: E402
from chess_snn.data import verify_folder  # noqa: E402
from chess_snn.errors import ClusterError  # noqa: E402
from flows.cluster import campaign_workers  # noqa: E402
from tasks import compute, remote, remote_jobs  # noqa: E402
from tasks.folder_access import check_seen, folder_access  # noqa: E402

SETTINGS = (
    "campaign.iterations=1", "self_play.games_per_iteration=6", "self_play.games_per_shard=2",
    "self_play.max_plies_first=6", "self_play.max_plies_last=6", "search.simulations_first=2",
    "search.simulations_last=2", "training.batch_size=8", "execution.workers=1",
)
TRAINED_HERE = {"train_first_generation", "train_first_share"}
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
    assert {function.__name__ for function in remote_jobs._MAKES} == stages - TRAINED_HERE


@pytest.mark.slow
def test_stages_run_by_workers_in_replicas_are_committed_here(make):
    folder, plain = make("c", "cluster.shared_storage=false"), make("plain")
    directory = str(folder.path)
    expected = [play_shard(plain.path, 0, shard) for shard in range(3)]
    compute.start()
    with (
        campaign_workers(folder, lambda text: None) as crew,
        folder_access(crew.client, folder, crew.addresses),
    ):
        calls = [(remote.play_shard, directory, 0, shard, 1) for shard in range(3)]
        first = compute.run_on_device(*calls[1])
        committed = folder.shard(0, 1).stat()
        facts = compute.run_all_on_devices(calls)
        assert facts[1] == first
        assert folder.shard(0, 1).stat() == committed
        replicas = crew.client.run(lambda dask_worker: dask_worker.local_directory)
        for shard in range(3):
            ours, theirs = (verify_folder(c.shard(0, shard)) for c in (folder, plain))
            assert ours.files == theirs.files
        assert [fact.bytes for fact in facts] == [fact.bytes for fact in expected]
        (replica,) = [Path(d) / "campaigns" / folder.campaign_id for d in replicas.values()]
        kept = sorted(p.relative_to(replica).as_posix() for p in replica.rglob("*") if p.is_file())
        assert kept == [
            "campaign.toml", "checkpoints/gen-000000/MANIFEST.json",
            "checkpoints/gen-000000/weights.safetensors", "plans/iter-000000.json",
        ]


@pytest.mark.slow
def test_workers_that_should_see_the_folder_and_do_not_are_named(make, tmp_path):
    folder = make("c")
    with campaign_workers(folder, lambda text: None) as crew:
        check_seen(crew.client, folder, crew.addresses)
        (folder.path / "campaign.toml").rename(tmp_path / "campaign.toml")
        with pytest.raises(ClusterError, match=r"worker tls://.* does not see .*nothing is there"):
            check_seen(crew.client, folder, crew.addresses)
        with pytest.raises(FileNotFoundError, match="does not see the campaign"):
            crew.client.submit(remote.play_shard, str(folder.path), 0, 0, 1).result()
        other = CampaignFolder.create(folder.path.parent / "other", folder.config)
        (other.path / "campaign.toml").rename(folder.path / "campaign.toml")
        with pytest.raises(ClusterError, match="another campaign is there"):
            check_seen(crew.client, folder, crew.addresses)
