"""A scheduler and a campaign on one host, and workers on two others that do not see its folder."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from own_hosts import Host, own_hosts

from chess_snn.data import is_committed

CHESS_SNN = (sys.executable, "-m", "chess_snn")
PORT = 8786
STEP_TIMEOUT_S = 900.0
POLL_S = 0.02


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
        """Whether a job that reads the file ``path`` of the campaign is at work on ``host``."""
        # By no pattern of any depth: a walk fails over folders that go meanwhile.
        return any(
            (campaign / path).exists()
            for campaign in host.work.glob("dask-scratch-space/*/campaigns/*/campaign")
        )

    def shards(self, iteration: int) -> int:
        parent = self.folder / "games" / f"iter-{iteration:06d}"
        return sum(is_committed(path) for path in parent.glob("shard-*"))

    def is_up(self, host: Host) -> int:
        """How often its worker has come up."""
        log = self.log(host.name)
        return log.read_text().count("is up") if log.exists() else 0


@contextmanager
def made_site(base: Path) -> Iterator[Site]:
    """Three hosts with certificates, for the length of the block."""
    campaigns = base / "campaigns"
    campaigns.mkdir()
    names = ["box-a", "box-b", "box-c"]
    hidden = {name: [campaigns] for name in names[1:]}
    with own_hosts(names, base, hidden) as hosts:
        site = Site(base, hosts, campaigns / "c")
        command = [*CHESS_SNN, "cluster", "certs", certificates(site)]
        subprocess.run(command, check=True, capture_output=True)
        yield site


def certificates(site: Site) -> str:
    return str(site.base / "certs")


def address(site: Site) -> str:
    return f"tls://{site.hosts['box-a'].address}:{PORT}"


def start_cluster(site: Site, environment: Mapping[str, str] = MappingProxyType({})) -> None:
    """The scheduler, and the workers with ``environment``."""
    first = site.hosts["box-a"]
    first.start(
        *CHESS_SNN, "cluster", "scheduler", f"--host={first.address}", f"--port={PORT}",
        f"--certificates={certificates(site)}", log=site.log("scheduler"),
    )
    site.wait_for("the scheduler", lambda: "scheduler at" in site.log("scheduler").read_text())
    for host in site.workers:
        host.start(
            *CHESS_SNN, "cluster", "worker", address(site), "--workers=1", "--device=cpu",
            f"--certificates={certificates(site)}", log=site.log(host.name),
            environment=environment,
        )
    site.wait_for("both workers", lambda: all(site.is_up(host) for host in site.workers))


def start_campaign(
    site: Site, wanted: Sequence[str], environment: Mapping[str, str] = MappingProxyType({})
) -> None:
    """On workers that do not see its folder; its own process with ``environment``."""
    first = site.hosts["box-a"]
    settings = [
        *wanted, "cluster.kind=address", f"cluster.address={address(site)}",
        f"cluster.certificates={certificates(site)}", "cluster.shared_storage=false",
    ]
    site.campaign = first.start(
        *CHESS_SNN, "campaign", "start", "--dir", str(site.folder),
        *[f"--set={setting}" for setting in settings], log=site.log("campaign"),
        environment=environment,
    )
