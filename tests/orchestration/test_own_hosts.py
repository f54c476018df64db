"""A campaign whose workers are other hosts that do not see its folder, and one is cut off."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from own_hosts import Host, own_hosts

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(3600)]
pytest.importorskip("prefect")
pytest.importorskip("distributed")

from chess_snn.campaign import CampaignFolder, read_receipts  # noqa: E402
from chess_snn.data import is_committed, read_manifest, read_shard, verify_folder  # noqa: E402

CHESS_SNN = (sys.executable, "-m", "chess_snn")
PORT = 8786
NUM_SHARDS = 16
GAMES = 10
STEP_TIMEOUT_S = 900.0
POLL_S = 0.02
SETTINGS = (
    "campaign.iterations=2", "campaign.seed=7",
    f"self_play.games_per_iteration={NUM_SHARDS * GAMES}", f"self_play.games_per_shard={GAMES}",
    "self_play.max_plies_first=40", "self_play.max_plies_last=40",
    "search.simulations_first=2", "search.simulations_last=2",
    "training.presentations=2.0", 'evaluation.opponents=["random"]', "evaluation.num_openings=2",
    "evaluation.won_positions=4", "promotion.max_openings=2", "promotion.openings_each=1",
)


@dataclass
class Site:
    """A scheduler and a campaign on one host, a worker on each of two others."""

    base: Path
    hosts: dict[str, Host]
    folder: Path
    campaign: subprocess.Popen[bytes] | None = None
    logs: list[Path] = field(default_factory=list)

    @property
    def workers(self) -> list[Host]:
        return [self.hosts["box-b"], self.hosts["box-c"]]

    def log(self, name: str) -> Path:
        path = self.base / f"{name}.log"
        if path not in self.logs:
            self.logs.append(path)
        return path

    def wait_for(self, what: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + STEP_TIMEOUT_S
        while not condition():
            ended = self.campaign is not None and self.campaign.poll() is not None
            assert not ended, f"the campaign ended before {what}\n{self.story()}"
            assert time.monotonic() < deadline, f"waited too long for {what}\n{self.story()}"
            time.sleep(POLL_S)

    def story(self) -> str:
        return "\n".join(f"--- {p.name}\n{p.read_text()[-3000:]}" for p in self.logs if p.exists())

    def brought(self, host: Host, path: str) -> bool:
        """Whether a worker of ``host`` has a file of the campaign in a folder of its own."""
        return any(host.work.glob(f"**/campaigns/*/{path}"))

    def shards(self, iteration: int) -> int:
        parent = self.folder / "games" / f"iter-{iteration:06d}"
        return sum(is_committed(path) for path in parent.glob("shard-*"))

    def is_up(self, host: Host) -> int:
        """How often its worker has come up."""
        log = self.log(host.name)
        return log.read_text().count("is up") if log.exists() else 0


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    base = tmp_path_factory.mktemp("site")
    campaigns = base / "campaigns"
    campaigns.mkdir()
    names = ["box-a", "box-b", "box-c"]
    hidden = {name: [campaigns] for name in names[1:]}
    with own_hosts(names, base, hidden) as hosts:
        site = Site(base, hosts, campaigns / "c")
        certify(site)
        yield site


def certify(site: Site) -> None:
    options = [f"--host={host.address}" for host in site.hosts.values()]
    command = [*CHESS_SNN, "cluster", "certs", str(site.base / "certs"), *options]
    subprocess.run(command, check=True, capture_output=True)


def certificates(site: Site, host: Host) -> str:
    return str(site.base / "certs" / host.address)


def address(site: Site) -> str:
    return f"tls://{site.hosts['box-a'].address}:{PORT}"


def start_cluster(site: Site) -> None:
    first = site.hosts["box-a"]
    first.start(
        *CHESS_SNN, "cluster", "scheduler", f"--host={first.address}", f"--port={PORT}",
        f"--certificates={certificates(site, first)}", log=site.log("scheduler"),
    )
    site.wait_for("the scheduler", lambda: "scheduler at" in site.log("scheduler").read_text())
    for host in site.workers:
        host.start(
            *CHESS_SNN, "cluster", "worker", address(site), "--workers=1", "--device=cpu",
            f"--certificates={certificates(site, host)}", log=site.log(host.name),
        )
    site.wait_for("both workers", lambda: all(site.is_up(host) for host in site.workers))


def start_campaign(site: Site) -> None:
    first = site.hosts["box-a"]
    settings = [
        *SETTINGS, "cluster.kind=address", f"cluster.address={address(site)}",
        f"cluster.certificates={certificates(site, first)}", "cluster.shared_storage=false",
    ]
    site.campaign = first.start(
        *CHESS_SNN, "campaign", "start", "--dir", str(site.folder),
        *[f"--set={setting}" for setting in settings], log=site.log("campaign"),
    )


def test_one_host_is_cut_off_in_self_play_comes_back_and_one_is_cut_off_in_training(site: Site):
    start_cluster(site)
    for host in site.workers:
        assert host.run("ls", str(site.folder.parent)).stdout == ""
    start_campaign(site)

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
    entered = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    pids = [process.pid, *map(int, entered)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


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
