"""A generation trained by two hosts together, and one of them is cut off while they do."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from own_hosts import Host
from own_site import (
    CHESS_SNN,
    STEP_TIMEOUT_S,
    Site,
    made_site,
    start_campaign,
    start_cluster,
)

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(3600)]
pytest.importorskip("prefect")
pytest.importorskip("distributed")

from chess_snn import failpoints  # noqa: E402
from chess_snn.campaign import CampaignFolder, read_receipts  # noqa: E402
from chess_snn.campaign.stages import training_program  # noqa: E402
from chess_snn.data import verify_folder  # noqa: E402

SETTINGS = (
    "campaign.iterations=2", "campaign.seed=7",
    "self_play.games_per_iteration=32", "self_play.games_per_shard=8",
    "self_play.max_plies_first=40", "self_play.max_plies_last=40",
    "search.simulations_first=2", "search.simulations_last=2",
    "training.batch_size=64", "training.micro_batch=32", "training.presentations=4.0",
    'evaluation.opponents=["random"]', "evaluation.num_openings=1", "evaluation.won_positions=2",
    "promotion.rule=score",
    "execution.training_ranks=1", "cluster.training_machines=2", "cluster.trust_network=true",
)
THE_FIRST_RANK_OF_THE_SECOND_TRAINING = "training.begins@3"
CUT_OFF_ENDS_WITHIN_S = 180
"""A worker takes its time to find that it is cut off; its ranks end with it."""
RANKS_END_WITHIN_S = 60
"""Of a campaign that was killed: its scheduler finds that by a connection that is closed."""
CONSOLE_LEVEL = "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    with made_site(tmp_path_factory.mktemp("site")) as site:
        yield site


def ranks_of(host: Host) -> list[psutil.Process]:
    """Processes of a host that train."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        is_rank = training_program.__name__ in words
        if is_rank and any(word.startswith(str(host.work)) for word in words):
            found.append(process)
    return found


@pytest.mark.fault(7)
def test_two_hosts_train_together_and_one_goes_on_where_the_other_is_cut_off(site: Site):
    fired = site.base / "fired"
    fired.mkdir()
    start_cluster(site, {
        failpoints.VARIABLE: f"{THE_FIRST_RANK_OF_THE_SECOND_TRAINING}=hold",
        failpoints.DIRECTORY_VARIABLE: str(fired),
    })
    start_campaign(site, SETTINGS, {CONSOLE_LEVEL: "INFO"})  # Prefect tells of tries

    # One rank of generation 2 is held, and the other waits for it.
    site.wait_for("the second training", (fired / "training.begins").exists)
    site.wait_for("ranks on both hosts", lambda: all(map(ranks_of, site.workers)))
    # The store that ranks meet at is there.
    site.hosts["box-b"].pull_cable()

    assert site.campaign is not None
    assert site.campaign.wait(STEP_TIMEOUT_S) == 0, site.story()
    log = site.log("campaign").read_text()
    assert "Traceback" not in log, site.story()
    assert "worker box-b/cpu-0 is lost; 1 other goes on" in log, site.story()
    assert "Retry 1/2" in log, site.story()
    assert "generation 2 is to be trained on 2 machines, and 1 can: box-c" in log, site.story()
    left = [rank for host in site.workers for rank in ranks_of(host)]
    _, alive = psutil.wait_procs(left, timeout=CUT_OFF_ENDS_WITHIN_S)
    assert not [rank for rank in alive if rank.status() != psutil.STATUS_ZOMBIE]

    assert_whole(site, ranks=[2.0, 1.0])


@pytest.mark.fault(3, 5)
def test_a_campaign_killed_while_two_hosts_train_leaves_no_rank_and_is_resumed(tmp_path: Path):
    fired = tmp_path / "fired"
    fired.mkdir()
    with made_site(tmp_path) as site:
        start_cluster(site, {
            failpoints.VARIABLE: "training.begins=hold",
            failpoints.DIRECTORY_VARIABLE: str(fired),
        })
        start_campaign(site, SETTINGS)
        site.wait_for("training", (fired / "training.begins").exists)
        site.wait_for("ranks on both hosts", lambda: all(map(ranks_of, site.workers)))

        assert site.campaign is not None
        (campaign,) = psutil.Process(site.campaign.pid).children()
        left = [*campaign.children(recursive=True), *(
            rank for host in site.workers for rank in ranks_of(host)
        )]
        campaign.kill()
        site.campaign.wait(STEP_TIMEOUT_S)
        _, there = psutil.wait_procs(left, timeout=RANKS_END_WITHIN_S)
        # A host's first process buries nobody.
        alive = [process for process in there if process.status() != psutil.STATUS_ZOMBIE]
        assert [process.cmdline() for process in alive] == []

        site.campaign = site.hosts["box-a"].start(
            *CHESS_SNN, "campaign", "resume", str(site.folder), log=site.log("campaign")
        )
        assert site.campaign.wait(STEP_TIMEOUT_S) == 0, site.story()
        assert "Traceback" not in site.log("campaign").read_text(), site.story()
        assert_whole(site, ranks=[2.0, 2.0])


def assert_whole(site: Site, ranks: list[float]) -> None:
    """Every generation is there and whole, trained by so many ranks, and nothing is left over."""
    folder = CampaignFolder.open(site.folder)
    receipts = read_receipts(folder)
    assert [receipt.training.metrics["ranks"] for receipt in receipts] == ranks
    for receipt in receipts:
        verify_folder(folder.checkpoint(receipt.training.generation))
    assert [path for path in site.folder.rglob(".tmp-*") if "services" not in path.parts] == []
