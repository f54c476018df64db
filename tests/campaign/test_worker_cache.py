"""Stages in caches that hold what they need and nothing else: the same games and weights."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from small_campaigns import MICRO, begin, commit_shards, make_campaign

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.artifacts.artifact import Artifact
from chess_snn.campaign.artifacts.table import CHECKPOINT, CONVERSION_REPORT, MATCH_PART, SHARD
from chess_snn.campaign.stages import play_shard, prepare_first_generation, train_generation
from chess_snn.campaign.store.folder import CONFIG_FILE
from chess_snn.campaign.store.notes import write_note
from chess_snn.campaign.store.plans import begin_iteration
from chess_snn.campaign.strength.match_schedule import generation_matches
from chess_snn.campaign.strength.matches import finish_match
from chess_snn.campaign.strength.matches import play_match_part as play_part
from chess_snn.campaign.strength.reports import play_conversion
from chess_snn.campaign.worker_cache import (
    InputFile,
    Job,
    commit_outputs,
    job_folder,
    job_of,
    read_input,
    read_outputs,
    trim,
)
from chess_snn.data import MANIFEST_NAME, read_manifest, verify_folder
from chess_snn.errors import DamagedFolderError

pytestmark = pytest.mark.slow


@dataclass
class Road:
    """Brings files of a campaign to a worker, and notes which."""

    folder: CampaignFolder
    cache: Path
    brought: list[str] = field(default_factory=list)

    def fetch(self, file: InputFile) -> bytes:
        self.brought.append(file.path)
        return read_input(self.folder, file)

    def run(self, job: Job, stage: Callable[..., object]) -> object:
        with job_folder(self.cache, self.folder.path, job.files, self.fetch) as here:
            result = stage(here, *job.values)
            outputs = read_outputs(here, job.files)
        commit_outputs(self.folder, outputs)
        return result

    def load(self, job: Job) -> None:
        self.run(job, lambda *_: None)


@dataclass
class Both:
    """The same campaign, by stages in its own folder and by stages on workers."""

    plain: CampaignFolder
    folder: CampaignFolder
    workers: list[Road]
    facts: list[tuple[object, object]]

    @property
    def brought(self) -> list[str]:
        return [path for worker in self.workers for path in worker.brought]


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> Both:
    base = tmp_path_factory.mktemp("cache")
    config = load_config(settings=[
        *MICRO, "self_play.restart_share_last=0.5",
    ])
    plain = CampaignFolder.create(base / "plain", config)
    folder = CampaignFolder.create(base / "campaign", config)
    workers = [Road(folder, base / name) for name in ("one", "two")]
    facts: list[tuple[object, object]] = []

    def do(
        worker: int, artifact: Artifact, arguments: tuple[object, ...], stage: Callable[..., object]
    ) -> None:
        job = job_of(folder, artifact, *arguments)
        facts.append((stage(plain.path), workers[worker].run(job, stage)))

    for campaign in (plain, folder):
        prepare_first_generation(campaign)
    for iteration in range(2):
        for campaign in (plain, folder):
            begin_iteration(campaign, iteration, 10.0 * iteration)
        for shard in range(2):
            do(shard, SHARD, (iteration, shard),
               lambda path, *values, i=iteration, s=shard: play_shard(path, i, s, *values))
        do(iteration % 2, CHECKPOINT, (iteration + 1,),
           lambda path, *values, i=iteration: train_generation(path, i, *values))
        for match in generation_matches(folder, iteration + 1):
            do(0, MATCH_PART, (match, 0), lambda path, m=match: play_part(path, m, 0))
            facts.append(tuple(finish_match(c.path, match) for c in (plain, folder)))
        do(1, CONVERSION_REPORT, (iteration + 1,),
           lambda path, *values, i=iteration: play_conversion(path, i + 1, *values))
    return Both(plain, folder, workers, facts)


def test_games_and_weights_are_those_of_a_campaign_in_one_folder(both):
    for iteration in range(2):
        for shard in range(2):
            ours, theirs = (c.shard(iteration, shard) for c in (both.folder, both.plain))
            assert verify_folder(ours).files == verify_folder(theirs).files
    for generation in range(3):
        digests = {
            read_manifest(c.checkpoint(generation)).meta["weights_digest"]
            for c in (both.folder, both.plain)
        }
        assert len(digests) == 1
        verify_folder(both.folder.checkpoint(generation))
    assert len(both.facts) == 2 * (2 + 1 + 2 * 2 + 1)


def test_facts_are_those_of_a_campaign_in_one_folder(both):
    for plain, on_worker in both.facts:
        if isinstance(plain, dict) or plain is None:
            assert on_worker == plain


def test_weights_come_to_a_worker_once_a_generation_and_the_optimiser_only_where_it_trains(both):
    def times(name: str) -> int:
        return both.brought.count(f"checkpoints/{name}")

    # Both play and one of them evaluates; nobody asks twice.
    assert [times(f"gen-00000{g}/weights.safetensors") for g in (0, 1, 2)] == [2, 2, 2]
    assert [times(f"gen-00000{g}/optimizer.safetensors") for g in (0, 1, 2)] == [1, 1, 0]
    assert [times(f"gen-00000{g}/MANIFEST.json") for g in (0, 1, 2)] == [2, 2, 2]


def test_a_shard_comes_to_a_worker_once_although_two_stages_read_it(both):
    # The second iteration plays with the first one's games on both workers, and trains on one.
    for shard in range(2):
        assert both.brought.count(f"games/iter-000000/shard-000{shard}") == 2


def test_a_worker_has_the_configuration_and_committed_files_and_nothing_else(both):
    tops = {path.partition("/")[0] for path in both.brought}
    assert tops == {CONFIG_FILE, "games", "checkpoints"}


def test_after_a_job_its_folder_is_gone(both):
    for worker in both.workers:
        assert [path.name for path in worker.cache.iterdir() if path.is_dir()] == []


def test_a_cache_keeps_what_was_used_last(both, tmp_path):
    road = Road(both.folder, tmp_path / "cache")
    jobs = [job_of(both.folder, CONVERSION_REPORT, generation) for generation in (1, 2)]
    for job in jobs:
        road.load(job)
    last = {file.content.sha256 for file in jobs[1].files}
    limit = sum(path.stat().st_size for path in road.cache.iterdir() if path.name in last)
    trim(road.cache, limit)
    assert {path.name for path in road.cache.iterdir()} == last
    trim(road.cache, 0, in_use=last)
    assert {path.name for path in road.cache.iterdir()} == last
    trim(road.cache, 0)
    assert list(road.cache.iterdir()) == []


def test_a_shard_that_was_dropped_meanwhile_is_in_no_window_bug(tmp_path):
    """Beside others, and alone of its iteration."""
    folder = make_campaign(tmp_path / "c")
    for iteration in range(2):
        begin(folder, iteration)
        commit_shards(folder, iteration)
    road, windows = Road(folder, tmp_path / "cache"), []

    def note_window(here: Path, values: object) -> None:
        shards = {path.relative_to(here).as_posix() for path in here.glob("games/*/*")}
        assert shards == set(values.window)
        windows.append(values.window)

    def train() -> None:
        road.run(job_of(folder, CHECKPOINT, 1), note_window)

    train()
    write_note(folder, folder.shard(0, 0), "dropped", "it cannot be played again")
    folder.shard(0, 0).unlink()
    train()
    assert windows[1] == windows[0][1:]


def test_a_file_that_rots_on_the_way_or_on_the_workers_disk_is_fetched_again(both, tmp_path):
    road, job = Road(both.folder, tmp_path / "cache"), job_of(both.folder, CONVERSION_REPORT, 1)
    road.load(job)
    (weights,) = [file for file in job.files if file.path.endswith("weights.safetensors")]
    (road.cache / weights.content.sha256).write_bytes(b"rotten")
    with pytest.raises(DamagedFolderError) as caught:
        road.run(job, lambda here: play_conversion(here, 1, 2))
    assert caught.value.folder == both.folder.checkpoint(1)
    before = len(road.brought)
    road.load(job)
    assert set(road.brought[before:]) == {
        f"checkpoints/gen-000001/{name}" for name in (MANIFEST_NAME, "weights.safetensors")
    }


def test_what_is_gone_is_damage_and_names_its_folder_bug(both, tmp_path):
    """So that it is rebuilt, as other bytes are."""
    shutil.copytree(both.folder.path, tmp_path / "campaign")
    folder = CampaignFolder.open(tmp_path / "campaign")
    job = job_of(folder, CONVERSION_REPORT, 1)
    (folder.checkpoint(1) / "weights.safetensors").unlink()
    with pytest.raises(DamagedFolderError) as caught:
        Road(folder, tmp_path / "cache").load(job)
    assert caught.value.folder == folder.checkpoint(1)


def test_a_job_that_was_given_up_leaves_nothing(both, tmp_path):
    road, job = Road(both.folder, tmp_path / "cache"), job_of(both.folder, SHARD, 1, 0)

    def late(file: InputFile) -> bytes:
        if file.path != CONFIG_FILE:
            raise TimeoutError
        return read_input(both.folder, file)

    with (
        pytest.raises(TimeoutError),
        job_folder(road.cache, both.folder.path, job.files, late),
    ):
        pass
    assert len(list(road.cache.iterdir())) == 1
    road.load(job)
