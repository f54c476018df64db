"""Store finished campaigns of today's program, for later versions to open, verify and resume.

Run it before a stored format changes, from the root of the repository, and commit the archives::

    PYTHONPATH=.:tests python tests/data/make_stored_campaign.py tests/data/stored

Archives that exist are never replaced: a later program cannot write the files of an earlier one.
"""

import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from made_imports import fixed_games, make_import
from small_campaigns import MICRO, MICRO_2048, play_iteration, play_match
from stored_shards import damage

from chess_snn.campaign import CampaignFolder, load_config, read_receipt, write_receipt
from chess_snn.campaign.forking import extend_campaign
from chess_snn.campaign.integrity.rebuild import repair_campaign
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.stages import play_shard, prepare_first_generation
from chess_snn.campaign.stages.first_generation import train_first_generation
from chess_snn.campaign.store.notes import note_removal
from chess_snn.campaign.store.receipt_parts import DeviceUse
from chess_snn.campaign.strength.champions import promote_by_hand
from chess_snn.campaign.strength.ladder_tests import play_ladder_test
from chess_snn.campaign.strength.match_schedule import final_matches

CHESS = (
    *MICRO, "campaign.iterations=1", "promotion.rule=sprt",
    "promotion.max_openings=2", "promotion.openings_each=1", "evaluation.ladder_test=true",
    "evaluation.ladder_test_games=2", "training.batch_size=64",
)
GAME_2048 = MICRO_2048


def make_chess(root: Path) -> None:
    """A campaign with every kind of file.

    It is pretrained, has a rebuilt shard, was extended, has a champion chosen by hand, and notes
    a removal.
    """
    games = make_import(root / "imported", 1)
    folder = create(root, [*CHESS, f'supervised.games="{games}"'])
    train_first_generation(folder.path)
    finish_iteration(folder, 0)
    play_final_matches(folder)
    rebuild_a_shard(folder)
    extend_campaign(folder, iterations=2)
    finish_iteration(folder, 1)
    play_final_matches(folder)
    champion = read_receipt(folder, 1).champion
    promote_by_hand(folder, 3 - champion, "ada", "to have a choice by hand")
    note_removal(folder, [])
    assert verify_campaign(folder).is_whole


def make_2048(root: Path) -> None:
    """Played from nothing to its end."""
    folder = create(root, GAME_2048)
    prepare_first_generation(folder)
    for iteration in range(2):
        finish_iteration(folder, iteration)
    play_final_matches(folder)
    assert verify_campaign(folder).is_whole


def create(root: Path, settings: Sequence[str]) -> CampaignFolder:
    config = fixed_games(load_config(settings=list(settings)))
    return CampaignFolder.create(root / "campaign", config)


def finish_iteration(folder: CampaignFolder, iteration: int) -> None:
    """Play an iteration; its receipt has the fields that only a whole flow fills in."""
    receipt = play_iteration(folder, iteration)
    ladder_test = None
    if folder.config.evaluation.ladder_test:
        ladder_test = play_ladder_test(folder.path, iteration + 1)
    write_receipt(folder, replace(
        receipt, ladder_test=ladder_test, is_warm=bool(folder.config.supervised.games),
        devices=DeviceUse(count=1.0, utilisation=0.5, memory_gib=1.0),
    ))


def play_final_matches(folder: CampaignFolder) -> None:
    for match in final_matches(folder):
        play_match(folder, match)


def rebuild_a_shard(folder: CampaignFolder) -> None:
    """Damage a shard, quarantine it, and play its games again."""
    damage(folder.shard(0, 0))
    repair_campaign(folder, verify_campaign(folder))
    assert not folder.shard(0, 0).exists()
    play_shard(folder.path, 0, 0)


def store(root: Path, archive: Path) -> None:
    """Pack the campaign, and the games that it was pretrained on."""
    def without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return None if member.name.endswith(".lock") else member

    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for name in sorted(path.name for path in root.iterdir()):
            packed.add(root / name, arcname=name, filter=without_owner)
    print(archive, archive.stat().st_size, "bytes", flush=True)


if __name__ == "__main__":
    today = datetime.now(UTC).date().isoformat()
    for game, make in (("chess", make_chess), ("2048", make_2048)):
        target = Path(sys.argv[1], f"{game}-{today}.tar.xz")
        if target.exists():
            sys.exit(f"{target} exists; stored files are never replaced")
        with tempfile.TemporaryDirectory(prefix="chess-snn-stored-") as scratch:
            make(Path(scratch))
            store(Path(scratch), target)
