"""Stages in caches that hold what they need and nothing else: the same games and weights."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from small_campaigns import MICRO, begin, commit_shards, make_campaign

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.artifacts.artifact import Input
from chess_snn.campaign.artifacts.table import CHECKPOINT, CONVERSION_REPORT, MATCH_PART, SHARD
from chess_snn.campaign.stages import play_shard, prepare_first_generation, train_generation
from chess_snn.campaign.stages.window import iteration_shards
from chess_snn.campaign.store.folder import CONFIG_FILE
from chess_snn.campaign.store.notes import write_note
from chess_snn.campaign.store.plans import begin_iteration
from chess_snn.campaign.strength.matches import finish_match, generation_matches
from chess_snn.campaign.strength.matches import play_match_part as play_part
from chess_snn.campaign.strength.reports import play_conversion
from chess_snn.campaign.worker_cache import (
    Job,
    WantedFile,
    WorkerCache,
    input_folder,
    job_of,
    read_shown,
    take_in,
)
from chess_snn.data import MANIFEST_NAME, read_manifest, verify_folder, with_digest
from chess_snn.errors import CampaignError, CorruptDataError, DamagedFolderError

pytestmark = pytest.mark.slow

MIB = 1 << 20


@dataclass
class Road:
    """Brings files of a campaign, and notes which."""

    folder: CampaignFolder
    brought: list[str] = field(default_factory=list)

    def fetch(self, files: Sequence[WantedFile]) -> Iterator[bytes]:
        for file in files:
            self.brought.append(file.path)
            yield read_shown(self.folder, file.path, 0, file.content.num_bytes)

    def run(self, cache: WorkerCache, wanted: Job, stage: Callable[[Path], object]) -> object:
        files = {name: (self.folder.path / name).read_bytes() for name in wanted.files}
        cache.load(wanted.folders, files, self.fetch)
        result = stage(cache.path)
        take_in(self.folder, cache.collect(wanted.outputs))
        cache.discard(wanted.outputs)
        return result


@dataclass
class Both:
    """The same campaign, by stages in its own folder and by stages in caches."""

    plain: CampaignFolder
    folder: CampaignFolder
    road: Road
    workers: list[WorkerCache]
    facts: list[tuple[object, object]]


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> Both:
    base = tmp_path_factory.mktemp("cache")
    config = load_config(settings=[
        *MICRO, "self_play.resignation=true", "self_play.restart_share_last=0.5",
    ])
    plain = CampaignFolder.create(base / "plain", config)
    folder = CampaignFolder.create(base / "campaign", config)
    road = Road(folder)
    workers = [WorkerCache(base / name / "work", 100 * MIB) for name in ("one", "two")]
    facts: list[tuple[object, object]] = []

    def do(worker: int, wanted: Job, stage: Callable[[Path], object]) -> None:
        facts.append((stage(plain.path), road.run(workers[worker], wanted, stage)))

    for campaign in (plain, folder):
        prepare_first_generation(campaign)
    for iteration in range(2):
        for campaign in (plain, folder):
            begin_iteration(campaign, iteration, 10.0 * iteration)
        for shard in range(2):
            do(shard, job_of(folder, SHARD, iteration, shard),
               lambda path, i=iteration, s=shard: play_shard(path, i, s))
        do(iteration % 2, job_of(folder, CHECKPOINT, iteration + 1),
           lambda path, i=iteration: train_generation(path, i))
        for match in generation_matches(folder, iteration + 1):
            do(0, job_of(folder, MATCH_PART, match, 0),
               lambda path, m=match: play_part(path, m, 0))
            facts.append(tuple(finish_match(c.path, match) for c in (plain, folder)))
        do(1, job_of(folder, CONVERSION_REPORT, iteration + 1),
           lambda path, i=iteration: play_conversion(path, i + 1))
    return Both(plain, folder, road, workers, facts)


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


def test_weights_come_to_a_worker_once_a_generation_and_the_optimiser_only_where_it_trains(both):
    def times(name: str) -> int:
        return both.road.brought.count(f"checkpoints/{name}")

    # Both play and one of them evaluates; nobody asks twice.
    assert [times(f"gen-00000{g}/weights.safetensors") for g in (0, 1, 2)] == [2, 2, 2]
    assert [times(f"gen-00000{g}/optimizer.safetensors") for g in (0, 1, 2)] == [1, 1, 0]
    assert [times(f"gen-00000{g}/MANIFEST.json") for g in (0, 1, 2)] == [2, 2, 2]


def test_a_shard_comes_to_a_worker_once_although_two_stages_read_it(both):
    # The second iteration plays with the first one's games on both workers, and trains on one.
    for shard in range(2):
        path = f"games/iter-000000/shard-000{shard}"
        assert both.road.brought.count(path) == 2


def test_what_stages_left_is_not_kept_in_the_cache(both):
    for worker in both.workers:
        assert not (worker.path / "matches").exists() or not list(
            (worker.path / "matches").rglob("*.json")
        )
        assert not list((worker.path / "games" / "iter-000001").glob("shard-*"))


def test_a_cache_keeps_no_more_than_it_may(both, tmp_path):
    weights = read_manifest(both.folder.checkpoint(0)).files["weights.safetensors"].num_bytes
    cache, road = WorkerCache(tmp_path / "work", int(1.5 * weights)), Road(both.folder)
    wanted = [
        job_of(both.folder, CONVERSION_REPORT, generation).folders for generation in (1, 2, 1)
    ]
    for folders in wanted:
        cache.load(folders, {}, road.fetch)
        (only,) = cache.path.glob("checkpoints/gen-*")
        assert only == cache.path / folders[0].path
    assert len(road.brought) == 3 * 2


def test_what_is_needed_is_kept_beyond_the_bound(both, tmp_path):
    cache, road = WorkerCache(tmp_path / "work", 0), Road(both.folder)
    wanted = job_of(both.folder, CHECKPOINT, 2)
    cache.load(wanted.folders, {}, road.fetch)
    for folder in wanted.folders:
        verify_folder(cache.path / folder.path)


def test_another_folder_at_the_same_place_is_fetched_anew(both, tmp_path):
    cache, road = WorkerCache(tmp_path / "work", 100 * MIB), Road(both.folder)
    (folder,) = job_of(both.folder, CONVERSION_REPORT, 1).folders
    cache.load([folder], {}, road.fetch)
    (other,) = job_of(both.folder, CONVERSION_REPORT, 2).folders
    moved = {file: f"{other.path}/{file}" for file in ("MANIFEST.json", "weights.safetensors")}

    def fetch_other(files: Sequence[WantedFile]) -> Iterator[bytes]:
        for file in files:
            yield (both.folder.path / moved[Path(file.path).name]).read_bytes()

    cache.load([replace(other, path=folder.path)], {}, fetch_other)
    weights = cache.path / folder.path / "weights.safetensors"
    assert weights.read_bytes() == (both.folder.path / moved[weights.name]).read_bytes()


def test_a_shard_that_was_dropped_meanwhile_is_in_no_window_here_bug(tmp_path):
    """Beside others, and alone of its iteration."""
    folder = make_campaign(tmp_path / "c")
    for iteration in range(2):
        begin(folder, iteration)
        commit_shards(folder, iteration)
    cache, road = WorkerCache(tmp_path / "work", 100 * MIB), Road(folder)

    def bring() -> None:
        shards = [shard for i in range(2) for shard in iteration_shards(folder, i)]
        notes = {
            path.relative_to(folder.path).as_posix(): path.read_bytes()
            for path in [
                folder.path / CONFIG_FILE, *map(folder.plan, range(2)),
                *folder.quarantine.glob("*.json"),
            ]
        }
        cache.load([input_folder(folder, Input(shard)) for shard in shards], notes, road.fetch)

    bring()
    for shard in (folder.shard(0, 0), folder.shard(0, 1), folder.shard(1, 0)):
        write_note(folder, shard, "dropped", "it cannot be played again")
        shard.unlink()
    bring()
    here = CampaignFolder.open(cache.path)
    assert iteration_shards(here, 0) == []
    assert iteration_shards(here, 1) == [here.shard(1, 1)]


def test_damage_on_the_way_is_found(both, tmp_path):
    cache, road = WorkerCache(tmp_path / "work", 100 * MIB), Road(both.folder)
    folders = job_of(both.folder, CONVERSION_REPORT, 1).folders

    def damaged(files: Sequence[WantedFile]) -> Iterator[bytes]:
        for content in road.fetch(files):
            yield content[:-1] + bytes([content[-1] ^ 1])

    with pytest.raises(CorruptDataError, match="is not what its manifest lists"):
        cache.load(folders, {}, damaged)
    cache.load(folders, {}, road.fetch)


@pytest.mark.parametrize("path", [
    "campaign.toml", "services/prefect.db", "checkpoints/../campaign.toml", "/etc/passwd",
])
def test_workers_may_read_games_and_checkpoints_alone(both, path):
    with pytest.raises(CampaignError, match="may read"):
        read_shown(both.folder, path, 0, 100)


def test_what_is_gone_is_damage_and_names_its_folder_bug(both, tmp_path):
    """So that it is mended, as other bytes are."""
    shutil.copytree(both.folder.path, tmp_path / "campaign")
    folder = CampaignFolder.open(tmp_path / "campaign")
    wanted = job_of(folder, CONVERSION_REPORT, 1).folders
    (folder.checkpoint(1) / "weights.safetensors").unlink()
    cache = WorkerCache(tmp_path / "work", 100 * MIB)
    with pytest.raises(DamagedFolderError) as caught:
        cache.load(wanted, {}, Road(folder).fetch)
    assert caught.value.folder == cache.path / "checkpoints" / "gen-000001"


def test_what_came_in_part_is_brought_anew_bug(both, tmp_path):
    """It may have been made again meanwhile, under another manifest."""
    shutil.copytree(both.folder.path, tmp_path / "campaign")
    folder = CampaignFolder.open(tmp_path / "campaign")
    cache = WorkerCache(tmp_path / "work", 100 * MIB)

    def late(files: Sequence[WantedFile]) -> Iterator[bytes]:
        for content, file in zip(Road(folder).fetch(files), files, strict=True):
            if not file.path.endswith(MANIFEST_NAME):
                raise TimeoutError
            yield content

    with pytest.raises(TimeoutError):
        cache.load(job_of(folder, CONVERSION_REPORT, 1).folders, {}, late)
    manifest = folder.checkpoint(1) / MANIFEST_NAME
    body = json.loads(manifest.read_text())
    del body["digest"]
    manifest.write_text(json.dumps(with_digest(body | {"created": "2026-01-01T00:00:00+00:00"})))
    cache.load(job_of(folder, CONVERSION_REPORT, 1).folders, {}, Road(folder).fetch)
    copy = cache.path / "checkpoints" / "gen-000001"
    assert (copy / MANIFEST_NAME).read_bytes() == manifest.read_bytes()


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    folder = CampaignFolder.create(tmp_path / "c", load_config(settings=MICRO))
    (tmp_path / "secret").write_text("x")
    (folder.path / "games").mkdir()
    (folder.path / "games" / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(CampaignError, match="may read"):
        read_shown(folder, "games/link", 0, 100)
