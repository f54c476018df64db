"""A folder that is missing or cannot be written is refused before any work, in one line."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaign_driver import SMALL

from chess_snn.campaign import CampaignFolder, load_config

pytestmark = [pytest.mark.fault(23), pytest.mark.orchestration, pytest.mark.timeout(600)]
pytest.importorskip("prefect")

ROOT = Path(__file__).parents[2]
NOBODY = 65534


def as_another_user(
    *arguments: str, home: Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``chess-snn campaign`` as a user to whom nothing belongs but ``home``."""
    os.chown(home, NOBODY, NOBODY)
    variables = {
        "PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT),
        "NUMBA_CACHE_DIR": str(home / "numba"), **(environment or {}),
    }
    return subprocess.run(
        [sys.executable, "-m", "chess_snn", "campaign", *arguments], user=NOBODY, group=NOBODY,
        extra_groups=[], cwd=home, env=variables, capture_output=True, text=True, check=False,
        timeout=400,
    )


@pytest.fixture
def places() -> Iterator[Path]:
    """A folder that everybody may enter; in it a campaign of somebody else, and a closed folder."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    with tempfile.TemporaryDirectory(prefix="closed-folders-") as folder:
        root = Path(folder)  # pytest's own are closed to other users
        root.chmod(0o755)
        if subprocess.run([sys.executable, "-c", ""], user=NOBODY, check=False).returncode:
            pytest.skip("the interpreter is closed to other users")
        (root / "home").mkdir()
        settings = [text.removeprefix("--set=") for text in SMALL]
        theirs = CampaignFolder.create(root / "theirs", load_config(settings=settings))
        theirs.lock_file.touch()
        (root / "closed").mkdir()
        yield root


def contents(root: Path) -> dict[str, int]:
    return {
        str(path.relative_to(root)): path.stat().st_mtime_ns for path in root.rglob("*")
        if not path.is_relative_to(root / "home")
    }


@pytest.mark.parametrize(("arguments", "reason"), [
    (("start", "--dir", "closed/new"), "cannot use {root}/closed/new as a campaign folder: Permis"),
    (("start", "--dir", "closed"), "cannot write {root}/closed"),
    (("resume", "theirs"), "cannot write {root}/theirs/campaign.lock: Permission denied; mend"),
    (("resume", "nowhere"), "{root}/nowhere holds no campaign"),
], ids=["below a closed folder", "in a closed folder", "of somebody else", "missing"])
def test_a_folder_that_cannot_be_written_is_refused_before_any_work(
    places: Path, arguments: tuple[str, ...], reason: str
) -> None:
    before = contents(places)
    *command, place = arguments
    done = as_another_user(*command, str(places / place), home=places / "home")
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: " + reason.format(root=places))
    assert contents(places) == before


def test_a_closed_folder_inside_a_campaign_is_refused_before_any_work(places: Path) -> None:
    home = places / "home"
    theirs = places / "theirs"
    for path in (theirs, *theirs.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    (theirs / "checkpoints").mkdir()
    before = contents(places)
    done = as_another_user("resume", str(theirs), home=home)
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    assert line == (
        f"error: cannot write {theirs / 'checkpoints'}; mend its permissions, or mount its disk "
        "for writing"
    )
    after = contents(places)
    assert after.keys() == before.keys()
