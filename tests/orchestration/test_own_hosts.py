"""A campaign whose workers are other hosts, of which one is cut off and one is blind."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from own_hosts import Host
from own_site import (
    CHESS_SNN,
    POLL_S,
    STEP_TIMEOUT_S,
    Site,
    made_site,
    start_campaign,
    start_cluster,
    start_worker,
)

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(3600)]
pytest.importorskip("prefect")
pytest.importorskip("distributed")

from chess_snn import failpoints  # noqa: E402
from chess_snn.campaign import CampaignFolder, read_receipts  # noqa: E402
from chess_snn.data import is_committed, read_manifest, read_shard, verify_folder  # noqa: E402

CONTINUED_FOR_S = 1.0
NUM_SHARDS = 16
GAMES = 10
SHARDS_BEFORE = 4
"""The host that is about to commit its shard after so many in all is cut off."""
CONSOLE_LEVEL = "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"
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
    fired = site.base / "fired"
    fired.mkdir()
    start_cluster(site, {
        failpoints.VARIABLE: f"shard.played@{SHARDS_BEFORE}=hold, training.begins@2=hold",
        failpoints.DIRECTORY_VARIABLE: str(fired),
    })
    blind = site.hosts["box-d"]
    assert blind.run("ls", str(site.folder.parent)).stdout == ""
    sent_away = start_worker(site, blind)
    site.wait_for("the blind worker", lambda: site.is_up(blind) == 1)
    start_campaign(site, SETTINGS, {CONSOLE_LEVEL: "INFO"})
    site.wait_for("the refusal", lambda: sent_away.poll() is not None)
    told = site.log("campaign").read_text()
    assert "box-d/cpu-0" in told
    assert str(site.folder) in told
    assert "box-d/cpu-0" in site.log(blind.name).read_text()

    # Self-play: a host that plays is cut off.
    site.wait_for("self-play", (fired / "shard.played").exists)
    lost = site.held(fired / "shard.played")
    assert site.shards(0) < NUM_SHARDS, "cut off too late to be in self-play"
    lost.pull_cable()
    site.wait_for("the other host's games", lambda: site.shards(0) == NUM_SHARDS)

    # Back again, before there is more to be done: it is used.
    before, played = site.is_up(lost), plays(site, lost)
    with held(site.campaign):
        lost.plug_cable()
        site.wait_for("the worker to come back", lambda: site.is_up(lost) > before)
    site.wait_for("the host to be used", lambda: plays(site, lost) > played)

    # Training: the host that trains generation 2 is cut off.
    site.wait_for("training", (fired / "training.begins").exists)
    site.held(fired / "training.begins").pull_cable()
    assert not is_committed(site.folder / "checkpoints" / "gen-000002"), "cut off too late"

    assert site.campaign is not None
    assert site.campaign.wait(STEP_TIMEOUT_S) == 0, site.story()
    assert "Traceback" not in site.log("campaign").read_text(), site.story()
    assert_whole(site.folder)


def plays(site: Site, host: Host) -> int:
    """How many shards a host has played, as the campaign tells."""
    shard = f"{host.name}/cpu-0 on the processor of {host.name}: {GAMES} games"
    return site.log("campaign").read_text().count(shard)


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
