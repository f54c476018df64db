"""Mending what was damaged, as a user would who has read what the campaign said."""

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from chess_snn.campaign import CampaignFolder, Receipt, read_receipt
from chess_snn.data import verify_folder
from chess_snn.errors import CorruptDataError

from .campaigns import committed_checkpoints, committed_shards

VERIFY = (sys.executable, "-m", "chess_snn", "verify")
"""The command that looks for damage and puts it aside."""


@cache
def has_verify() -> bool:
    """Whether this version has that command."""
    return subprocess.run([*VERIFY, "--help"], capture_output=True, check=False).returncode == 0


def verify(directory: Path, log: Path, *options: str) -> int:
    """Let it look at the campaign in ``directory``; its exit code, 0 where all is whole."""
    with log.open("ab") as output:
        return subprocess.run(
            [*VERIFY, str(directory), *options], stdout=output, stderr=subprocess.STDOUT,
            check=False,
        ).returncode


def find_damage(directory: Path) -> dict[Path, str]:
    """Committed folders of a campaign that are not what was committed, and why."""
    found = {}
    for folder in [*committed_shards(directory), *committed_checkpoints(directory)]:
        try:
            verify_folder(folder)
        except CorruptDataError as error:
            found[folder] = str(error)
    return found


def mend(directory: Path, log: Path) -> list[str]:
    """Put damaged things aside so that they are made again by the next run; what was done.

    ``chess-snn verify D --repair`` does it where there is such a command. What it leaves is done by
    hand, as the documentation says: the folder of a damaged shard or generation is deleted, and so
    is the receipt of its iteration.
    """
    done = []
    if has_verify():
        code = verify(directory, log, "--repair")
        done.append(f"chess-snn verify --repair ended with code {code}")
    for path in find_damage(directory):
        shutil.rmtree(path)
        done.append(f"deleted {path.parent.name}/{path.name}")
    return done + _forget_incomplete(CampaignFolder.open(directory))


def _forget_incomplete(folder: CampaignFolder) -> list[str]:
    """Delete receipts of iterations that are not whole, so that these are finished again."""
    done = []
    for iteration in range(folder.config.campaign.iterations):
        path = folder.receipt(iteration)
        if path.exists() and not _is_whole(folder, read_receipt(folder, iteration)):
            path.unlink()
            done.append(f"deleted receipts/{path.name}")
    return done


def _is_whole(folder: CampaignFolder, receipt: Receipt) -> bool:
    needed = [folder.checkpoint(receipt.training.generation)]
    needed += [folder.path / "games" / shard.name for shard in receipt.shards]
    return all(path.is_dir() for path in needed)
