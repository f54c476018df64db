"""Mending what was damaged, as a user would who has read what the campaign said."""

import subprocess
import sys
from pathlib import Path

from chess_snn.campaign import CampaignFolder, Receipt, read_receipt
from chess_snn.data import verify_folder
from chess_snn.errors import CorruptDataError

from .campaigns import committed_checkpoints, committed_shards


def find_damage(directory: Path) -> frozenset[Path]:
    """Committed folders of a campaign that are not what was committed."""
    folders = [*committed_shards(directory), *committed_checkpoints(directory)]
    return frozenset(folder for folder in folders if not _is_intact(folder))


def verify(directory: Path, log: Path, *options: str) -> int:
    """Run ``chess-snn verify`` on the campaign; its exit code, 0 where all is whole."""
    command = [sys.executable, "-m", "chess_snn", "verify", str(directory), *options]
    with log.open("ab") as output:
        return subprocess.run(
            command, stdout=output, stderr=subprocess.STDOUT, check=False
        ).returncode


def mend(directory: Path, log: Path) -> list[str]:
    """Put damaged things aside so that the next run makes them again; what was done.

    A campaign makes again what it needs. Of iterations that are finished it needs nothing more, so
    their receipts are deleted, as the documentation says for whoever wants the games back.
    """
    code = verify(directory, log, "--repair")
    done = [f"chess-snn verify --repair ended with code {code}"] if code else []
    return done + _forget_incomplete(CampaignFolder.open(directory))


def _is_intact(folder: Path) -> bool:
    try:
        verify_folder(folder)
    except CorruptDataError:
        return False
    return True


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
    return all(path.exists() for path in needed)
