"""A campaign whose workers are other hosts that do not see its folder, and one is cut off."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from own_site import (
    CHESS_SNN,
    POLL_S,
    STEP_TIMEOUT_S,
    Site,
    made_site,
    start_campaign,
    start_cluster,
)

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(3600)]
pytest.importorskip("prefect")
pytest.importorskip("distributed")

from chess_snn.campaign import CampaignFolder, read_receipts  # noqa: E402
from chess_snn.data import is_committed, read_manifest, read_shard, verify_folder  # noqa: E402

CONTINUED_FOR_S = 1.0
NUM_SHARDS = 16
GAMES = 10
SETTINGS = (
    "campaign.iterations=2", "campaign.seed=7",
    f"self_play.games_per_iteration={NUM_SHARDS * GAMES}", f"self_play.games_per_shard={GAMES}",
    "self_play.max_plies_first=40", "self_play.max_plies_last=40",
    "search.simulations_first=2", "search.simulations_last=2",
    "training.presentations=2.0", 'evaluation.opponents=["random"]', "evaluation.num_openings=2",
    "evaluation.won_positions=4", "promotion.max_openings=2", "promotion.openings_each=1",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    with made_site(tmp_path_factory.mktemp("site")) as site:
        yield site


def test_one_host_is_cut_off_in_self_play_comes_back_and_one_is_cut_off_in_training(site: Site):
    start_cluster(site)
    for host in site.workers:
        assert host.run("ls", str(site.folder.parent)).stdout == ""
    start_campaign(site, SETTINGS)

    # Self-play: a host that has begun to play is cut off.
    lost = site.hosts["box-b"]
    weights = "checkpoints/gen-00000{}/weights.safetensors"
    site.wait_for("both to play", lambda: site.shards(0) >= 1 and all(
        site.brought(host, weights.format(0)) for host in site.workers
    ))
    assert site.shards(0) < NUM_SHARDS - 1, "cut off too late to be in self-play"
    lost.pull_cable()
    site.wait_for("the other host's games", lambda: site.shards(0) == NUM_SHARDS)
    assert not site.brought(lost, weights.format(1))

    # Back again, before there is more to be done: it is brought the next network.
    before = site.is_up(lost)
    with held(site.campaign):
        lost.plug_cable()
        site.wait_for("the worker to come back", lambda: site.is_up(lost) > before)
    site.wait_for("the host to be used", lambda: site.brought(lost, weights.format(1)))

    # Training: the host that has been brought an optimiser trains.
    optimizer = "checkpoints/gen-000001/optimizer.safetensors"
    site.wait_for("training", lambda: any(site.brought(h, optimizer) for h in site.workers))
    (trains,) = [host for host in site.workers if site.brought(host, optimizer)]
    (spared,) = [host for host in site.workers if host is not trains]
    trains.pull_cable()
    assert not is_committed(site.folder / "checkpoints" / "gen-000002"), "cut off too late"
    site.wait_for("the other host to train", lambda: site.brought(spared, optimizer))

    assert site.campaign is not None
    assert site.campaign.wait(STEP_TIMEOUT_S) == 0, site.story()
    assert "Traceback" not in site.log("campaign").read_text(), site.story()
    assert_whole(site.folder)


@contextmanager
def held(process: subprocess.Popen[bytes] | None) -> Iterator[None]:
    """Stop a process, which was started on a host, for the length of the block."""
    assert process is not None
    entered = psutil.Process(process.pid)
    family = [entered, *entered.children()]
    for member in family:
        member.suspend()
    try:
        yield
    finally:
        # Who has entered the host stops itself when it hears, late, that its child was stopped.
        until_s = time.monotonic() + CONTINUED_FOR_S
        while time.monotonic() < until_s:
            for member in family:
                member.resume()
            time.sleep(POLL_S)


def assert_whole(path: Path) -> None:
    """Two iterations are finished, every game is there once and every digest right."""
    folder = CampaignFolder.open(path)
    receipts = read_receipts(folder)
    assert len(receipts) == 2
    for receipt in receipts:
        for shard in range(NUM_SHARDS):
            verify_folder(folder.shard(receipt.iteration, shard))
            assert read_shard(folder.shard(receipt.iteration, shard))[0].num_games == GAMES
        assert receipt.statistics.games == NUM_SHARDS * GAMES
        verify_folder(folder.checkpoint(receipt.training.generation))
    assert [entry for entry in path.rglob(".tmp-*") if "services" not in entry.parts] == []


def test_games_and_weights_are_those_of_a_campaign_on_one_machine(site: Site, tmp_path: Path):
    if not (site.folder / "receipts" / "iter-000001.json").exists():
        pytest.fail("the campaign on several hosts did not get so far")
    log = site.log("one-machine")
    with log.open("ab") as output:
        alone = subprocess.run(
            [*CHESS_SNN, "campaign", "start", "--dir", str(tmp_path / "c"),
             *[f"--set={setting}" for setting in (*SETTINGS, "execution.workers=2")]],
            stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False,
            timeout=2 * STEP_TIMEOUT_S,
        )
    assert alone.returncode == 0, site.story()
    ours, theirs = (CampaignFolder.open(path) for path in (site.folder, tmp_path / "c"))
    for iteration in range(2):
        for shard in range(NUM_SHARDS):
            files = [read_manifest(c.shard(iteration, shard)).files for c in (ours, theirs)]
            assert files[0] == files[1]
    digests = [read_manifest(c.checkpoint(2)).meta["weights_digest"] for c in (ours, theirs)]
    assert digests[0] == digests[1]
