"""Make what is stored under tests/data/stored: files as today's program writes them.

Run once for each version of a format, from the root of the repository, and committed; later
versions of the program must read it, or refuse it by name::

    PYTHONPATH=.:tests python tests/data/make_stored_campaign.py tests/data/stored

It refuses to replace what is there: files of an old version cannot be made again.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from micro_campaign import micro_networks, play_campaign

from chess_snn.data import staged_folder, verify_folder
from chess_snn.data.schema import columns_of

CAMPAIGN = "campaign"
OLD_SHARD = "shard-version-1"
OLD_RECEIPT = "receipt-version-2.json"
BEFORE_DIGESTS = {
    "plan-version-1.json": "plans/iter-000000.json",
    "match-version-2.json": "matches/gen-000001/random.json",
    "report-version-1.json": "matches/gen-000001/conversion.json",
}
"""By its name, what an older file is made of."""


def make(target: Path) -> None:
    """Write a finished campaign, and files of older versions made of some of its own."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, micro_networks():
        folder = play_campaign(Path(scratch, CAMPAIGN))
        shutil.copytree(folder.path, target / CAMPAIGN)
    make_old_shard(target / CAMPAIGN / "games/iter-000000/shard-0000", target / OLD_SHARD)
    make_old_receipt(target / CAMPAIGN / "receipts/iter-000000.json", target / OLD_RECEIPT)
    for name, source in BEFORE_DIGESTS.items():
        remove_digest(target / CAMPAIGN / source, target / name)


def make_old_shard(source: Path, target: Path) -> None:
    """What version 1 would have written of the games of a shard: fewer columns."""
    meta = dict(verify_folder(source).meta) | {"shard_version": 1}
    with staged_folder(target) as stage:
        for name in columns_of(1):
            shutil.copytree(source / name, stage.path / name)
        shutil.copy(source / "zarr.json", stage.path / "zarr.json")
        stage.commit("shard", meta)


def make_old_receipt(source: Path, target: Path) -> None:
    """What version 2 would have written of an iteration, at first: no digest, fewer fields."""
    body = json.loads(source.read_text())
    for later in ("digest", "rating", "climb", "promotion", "is_warm"):
        del body[later]
    target.write_text(json.dumps(body | {"schema": 2}, indent=2) + "\n")


def remove_digest(source: Path, target: Path) -> None:
    """What was written before files of that kind had digests, by the version before."""
    body = json.loads(source.read_text())
    del body["digest"]
    body["schema"] -= 1
    if body["schema"] == 1 and source.parent.name.startswith("gen-"):
        del body["schema"]  # reports did not say that they were the first
    target.write_text(json.dumps(body, indent=2) + "\n")


if __name__ == "__main__":
    destination = Path(sys.argv[1])
    made = (CAMPAIGN, OLD_SHARD, OLD_RECEIPT, *BEFORE_DIGESTS)
    if any((destination / name).exists() for name in made):
        sys.exit(f"{destination} holds stored files already; give another folder")
    make(destination)
