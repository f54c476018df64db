"""A scheduler and a campaign on one host, and workers on two others that see its folder."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import psutil
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

    def held(self, mark: Path) -> Host:
        """The host of the process that is held at the failpoint with the file ``mark``."""
        found = []
        for process in psutil.process_iter():
            status = Path(f"/proc/{process.pid}/status").read_text()
            inner = status.partition("NSpid:")[2].partition("\n")[0].split()
            if len(inner) > 1 and inner[-1] == mark.read_text():
                folder = process.environ().get("TMPDIR")
                found += [host for host in self.workers if folder == str(host.work)]
        (host,) = found
        return host

    def shards(self, iteration: int) -> int:
        parent = self.folder / "games" / f"iter-{iteration:06d}"
        return sum(is_committed(path) for path in parent.glob("shard-*"))

    def is_up(self, host: Host) -> int:
        """How often its worker has come up."""
        log = self.log(host.name)
        return log.read_text().count("is up") if log.exists() else 0


@contextmanager
def made_site(base: Path) -> Iterator[Site]:
    """Four hosts with certificates, for the length of the block; box-d does not see campaigns."""
    campaigns = base / "campaigns"
    campaigns.mkdir()
    with own_hosts(["box-a", "box-b", "box-c", "box-d"], base, {"box-d": [campaigns]}) as hosts:
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
        start_worker(site, host, environment)
    site.wait_for("both workers", lambda: all(site.is_up(host) for host in site.workers))


def start_worker(
    site: Site, host: Host, environment: Mapping[str, str] = MappingProxyType({})
) -> subprocess.Popen[bytes]:
    """A worker on ``host`` with ``environment``."""
    return host.start(
        *CHESS_SNN, "cluster", "worker", address(site), "--workers=1", "--device=cpu",
        f"--certificates={certificates(site)}", log=site.log(host.name), environment=environment,
    )


def start_campaign(
    site: Site, wanted: Sequence[str], environment: Mapping[str, str] = MappingProxyType({})
) -> None:
    """On the workers of the scheduler; its own process with ``environment``."""
    first = site.hosts["box-a"]
    settings = [
        *wanted, "cluster.kind=address", f"cluster.address={address(site)}",
        f"cluster.certificates={certificates(site)}",
    ]
    site.campaign = first.start(
        *CHESS_SNN, "campaign", "start", "--dir", str(site.folder),
        *[f"--set={setting}" for setting in settings], log=site.log("campaign"),
        environment=environment,
    )
