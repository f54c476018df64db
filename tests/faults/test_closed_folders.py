"""A folder that is missing or cannot be written is refused before any work, in one line."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_campaigns import SMALL

from chess_snn.campaign import CampaignFolder, load_config

pytestmark = [pytest.mark.fault(23), pytest.mark.orchestration, pytest.mark.timeout(900)]
pytest.importorskip("prefect")

ROOTS_PRIVILEGES = "-dac_override,-dac_read_search"


def without_privileges(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``chess-snn`` as one to whom permissions apply, as they do not to root."""
    command = [sys.executable, "-m", "chess_snn", *arguments]
    if os.geteuid() == 0:
        command = ["setpriv", "--bounding-set", ROOTS_PRIVILEGES, *command]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Path]:
    """A campaign, and a folder that may not be written."""
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root may write anywhere, and setpriv is not installed")
    settings = list(SMALL)
    made = CampaignFolder.create(tmp_path / "made", load_config(settings=settings))
    made.lock_file.touch()
    (tmp_path / "closed").mkdir()
    yield tmp_path
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(0o700)


def contents(root: Path) -> dict[str, int]:
    return {str(path.relative_to(root)): path.stat().st_mtime_ns for path in root.rglob("*")}


def case(name: str, *values: object) -> object:
    return pytest.param(*values, id=name)


@pytest.mark.slow
@pytest.mark.parametrize(("closed", "arguments", "reason"), [
    case("below a closed folder", "closed", ("start", "--dir", "closed/new"),
              "cannot use {root}/closed/new as a campaign folder: Permission denied"),
    case("in one", "closed", ("start", "--dir", "closed"), "cannot write {root}/closed"),
    case("its lock", "made/campaign.lock", ("resume", "made"),
         "cannot write {root}/made/campaign.lock: Permission denied; correct"),
    case("a campaign", "made", ("resume", "made"),
              "cannot write {root}/made; correct its permissions"),
    case("a part of it", "made/checkpoints", ("resume", "made"),
              "cannot write {root}/made/checkpoints; correct its permissions"),
    case("missing", "closed", ("resume", "nowhere"), "{root}/nowhere holds no campaign"),
])
def test_a_folder_that_cannot_be_written_is_refused_before_any_work(
    places: Path, closed: str, arguments: tuple[str, ...], reason: str
) -> None:
    place = places / closed
    if not place.exists():
        place.mkdir()
    place.chmod(0o500)
    before = contents(places)
    *command, last = arguments
    done = without_privileges("campaign", *command, str(places / last))
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: " + reason.format(root=places))
    after = contents(places)
    assert after.keys() == before.keys()
    lock = "made/campaign.lock"  # which says who looked last
    assert {k: v for k, v in after.items() if k != lock} == {
        k: v for k, v in before.items() if k != lock
    }


@pytest.mark.parametrize("closed", ["made", "made/services"])
@pytest.mark.slow
def test_a_campaign_that_may_only_be_read_is_not_served_bug(places: Path, closed: str) -> None:
    services = places / "made" / "services"
    if closed == "made/services":
        services.mkdir()
    (places / closed).chmod(0o500)
    done = without_privileges("ui", str(places / "made"))
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: cannot write {services}/")
    assert "Permission denied" in line
