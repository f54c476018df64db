"""Workers of a scheduler see the campaign folder under its path, or are sent away with the fix."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.timeout(300)]
pytest.importorskip("distributed")

import dask  # noqa: E402
from distributed import Client  # noqa: E402
from waiting import wait_for  # noqa: E402

from chess_snn.campaign import CampaignFolder, load_config  # noqa: E402
from chess_snn.campaign.machine.workers import plan_here  # noqa: E402
from chess_snn.tasks.cluster.nannies import OwnCluster, local_cluster  # noqa: E402
from chess_snn.tasks.cluster.worker_pool import WorkerPool  # noqa: E402
from chess_snn.tasks.cluster.worker_setup import DASK_SETTINGS  # noqa: E402
from chess_snn.tasks.remote import folder_fault  # noqa: E402

PATIENT_S = 120.0


@pytest.fixture
def make(tmp_path: Path) -> Callable[[str], CampaignFolder]:
    def make(name: str, *settings: str) -> CampaignFolder:
        return CampaignFolder.create(tmp_path / name, load_config(settings=list(settings)))

    return make


def move_away(folder: CampaignFolder) -> Path:
    """The identity file of a campaign, out of its folder."""
    return (folder.path / "campaign.toml").rename(folder.path.parent / "moved.toml")


def test_a_machine_sees_a_campaign_by_its_identity(make) -> None:
    folder, other = make("c"), make("other")
    path = str(folder.path)
    assert folder_fault(path, folder.campaign_id) == ""
    assert f"{path}: another campaign is there" in folder_fault(path, other.campaign_id)
    move_away(folder)
    fault = folder_fault(path, folder.campaign_id)
    assert f"{path}: nothing is there" in fault
    assert "\n" not in fault


@pytest.fixture
def cluster() -> Iterator[OwnCluster]:
    """A scheduler with one worker."""
    plan = plan_here(load_config(settings=["execution.workers=1", "execution.device=cpu"]))
    with dask.config.set(DASK_SETTINGS), local_cluster(plan.slots) as cluster:
        yield cluster


@pytest.mark.slow
def test_a_worker_that_sees_the_folder_is_used_and_another_is_dismissed_at_once(
    make, cluster: OwnCluster
) -> None:
    folder, lines = make("c"), list[str]()
    (nanny,) = cluster.workers.values()
    with Client(cluster) as client:
        with WorkerPool(client, lines.append, shared=folder).running():
            pass
        assert lines == []

        move_away(folder)
        pool = WorkerPool(client, lines.append, shared=folder)
        with pool.running():
            assert not pool.wait_for_workers(PATIENT_S)
            wait_for(lambda: nanny.is_dismissed, "it comes back", PATIENT_S)
    assert lines == pool.dismissals
    assert re.fullmatch(rf"worker \S+ is dismissed: .*{folder.path}: nothing is there.*", lines[0])
