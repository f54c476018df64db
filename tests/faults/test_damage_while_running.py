"""A real campaign that finds damage when it is resumed: it says so, repairs it, and ends the
same."""

from pathlib import Path

import pytest
from campaign_driver import (
    SMALL_OPTIONS,
    faults_at,
    finish,
    kill_campaign,
    launch,
    settings,
    wait_until,
)
from made_imports import make_import
from small_campaigns import assert_whole, committed_shards
from stored_shards import damage

from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.store.notes import read_notes
from chess_snn.data import is_committed, read_manifest
from chess_snn.training import step_checkpoints

pytestmark = [
    pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(900),
    pytest.mark.fault(10, 11),
]

SETTINGS = [*SMALL_OPTIONS, *settings(self_play__games_per_iteration=16)]
"""Two iterations of four shards."""


def test_damage_is_told_and_mended_and_changes_nothing(tmp_path: Path) -> None:
    expected, path, log = tmp_path / "expected", tmp_path / "c", tmp_path / "log"
    finish(launch("start", "--dir", str(expected), *SETTINGS, log=log), log)

    # The second iteration is in self-play, with the network and from the games of the first: its
    # first shard comes after the one of warming up and four of the first.
    fired = tmp_path / "fired"
    environment = faults_at(fired, **{"shard.renamed@6": "hold"})
    process = launch("start", "--dir", str(path), *SETTINGS, log=log, environment=environment)
    wait_until((fired / "shard.renamed").exists, process, log)
    kill_campaign(process)
    newest = path / "checkpoints" / "gen-000001"
    assert is_committed(newest)
    assert not is_committed(path / "checkpoints" / "gen-000002")
    damage(newest / "weights.safetensors")
    damage(path / "games" / "iter-000000" / "shard-0001")
    (path / "games" / "iter-000000" / "shard-0002").write_bytes(b"")
    committed_shards(path, 1)[0].unlink()

    log.unlink()
    finish(launch("resume", str(path), log=log), log)
    text = log.read_text()
    assert text.count("DAMAGED: ") >= 3, text[-3000:]
    for thing in ("generation 1", "shard 1 of iteration 0", "shard 2 of iteration 0"):
        assert f"{thing} was rebuilt" in text
    folder = assert_whole(path)
    assert {note.event for note in read_notes(folder)} == {"quarantined", "rebuilt"}
    assert verify_campaign(folder).is_whole
    for generation in (1, 2):
        digests = {
            read_manifest(base / "checkpoints" / f"gen-{generation:06d}").meta["weights_digest"]
            for base in (path, expected)
        }
        assert len(digests) == 1


def test_damage_on_the_way_to_generation_0_is_told_and_changes_nothing_bug(tmp_path: Path) -> None:
    warm = [
        *SETTINGS, "--warm-start", str(make_import(tmp_path / "games", num_shards=4)), *settings(
            campaign__iterations=1, supervised__epochs=8, training__batch_size=64,
            self_play__games_per_iteration=8, self_play__games_per_shard=4,
        ),
    ]
    expected, path, log = tmp_path / "expected", tmp_path / "c", tmp_path / "log"
    finish(launch("start", "--dir", str(expected), *warm, log=log), log)

    fired = tmp_path / "fired"
    environment = faults_at(fired, **{"checkpoint.renamed@3": "hold"})
    process = launch("start", "--dir", str(path), *warm, log=log, environment=environment)
    wait_until((fired / "checkpoint.renamed").exists, process, log)
    kill_campaign(process)
    newest = step_checkpoints(path / "supervised")[-1]
    damage(newest / "weights.safetensors")
    log.unlink()
    finish(launch("resume", str(path), log=log), log)
    text = log.read_text()
    assert text.count("DAMAGED: ") == 1, text[-3000:]
    (note,) = read_notes(assert_whole(path))
    assert note.path == f"supervised/{newest.name}"
    digests = {
        read_manifest(base / "checkpoints" / f"gen-{generation:06d}").meta["weights_digest"]
        for base in (path, expected) for generation in (0, 1)
    }
    assert len(digests) == 2
