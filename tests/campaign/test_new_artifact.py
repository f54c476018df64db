"""A kind of artifact that one row of the table adds: everything that looks after files knows it."""

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_campaigns import begin, make_campaign
from written_docs import artifact_table

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.artifacts import table
from chess_snn.campaign.artifacts.artifact import Artifact, Contents, Whole
from chess_snn.campaign.integrity.gc import dispose, find_disposable, sorts, sweep_leftovers
from chess_snn.campaign.integrity.rebuild import Rebuilder, repair_campaign
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.store.notes import read_notes, read_removals
from chess_snn.campaign.store.plans import read_plan
from chess_snn.data import is_committed, read_folder, staged_folder

GONE = 2**22 + 11
"""No process has this number."""


def make_digest(directory: Path, iteration: int) -> None:
    folder = CampaignFolder.open(directory)
    target = folder.path / DIGEST.at(iteration)
    if not is_committed(target):
        with staged_folder(target) as stage:
            plan = read_plan(folder, iteration)
            (stage.path / "digest.txt").write_text(f"from {plan.progress_first}\n")
            stage.commit("digest", {})


def check_digest(_: CampaignFolder, path: Path) -> Whole:
    manifest, files = read_folder(path)
    return Whole(files["digest.txt"], manifest.num_bytes)


def expected_digests(_: CampaignFolder, contents: Contents) -> Iterator[tuple[str, object]]:
    for (iteration,) in contents["plan"]:
        yield DIGEST.at(iteration), None


def old_digests(folder: CampaignFolder) -> Iterator[tuple[Path, str]]:
    for stored in table.all_stored(folder, DIGEST)[:-1]:
        yield stored.path(folder), "not the newest"


DIGEST = Artifact(
    "digest", "digests/iter-{iteration:06d}", check_digest,
    "the digest of iteration {iteration}", is_folder=True, expected=expected_digests,
    make=make_digest,
    after_repair="made again from the plan", sort="digests", disposable=old_digests,
    kept="the newest",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CampaignFolder:
    """Two iterations have begun, and their digests are committed."""
    monkeypatch.setattr(table, "ARTIFACTS", (*table.ARTIFACTS, DIGEST))
    made = make_campaign(tmp_path / "campaign")
    for iteration in (0, 1):
        begin(made, iteration)
        make_digest(made.path, iteration)
    return made


def damage(folder: CampaignFolder, iteration: int) -> Path:
    path = folder.path / DIGEST.at(iteration)
    (path / "digest.txt").write_text("other bytes")
    return path


def found(folder: CampaignFolder) -> list[tuple[str, str, str]]:
    return [(f.kind, f.path, f.state) for f in verify_campaign(folder).found]


def test_it_is_verified(folder: CampaignFolder) -> None:
    findings = verify_campaign(folder)
    assert findings.found == []
    assert findings.checked["digest"] == findings.to_json()["checked"]["digest"] == 2
    damage(folder, 0)
    shutil.rmtree(folder.path / DIGEST.at(1))
    assert found(folder) == [
        ("digest", "digests/iter-000000", "damaged"), ("digest", "digests/iter-000001", "lost"),
    ]


def test_it_is_rebuilt_from_its_inputs(folder: CampaignFolder) -> None:
    path, told = folder.path / DIGEST.at(0), list[str]()
    before = read_folder(path)[1]
    damage(folder, 0)
    Rebuilder(folder, told.append).run(lambda: read_folder(path))
    assert read_folder(path)[1] == before
    assert "iteration 0" in told[-1]
    assert [note.event for note in read_notes(folder)] == ["quarantined", "rebuilt"]
    assert verify_campaign(folder).is_whole


def test_it_is_quarantined_by_repair_and_gone_from_quarantine_by_gc(folder: CampaignFolder) -> None:
    path = damage(folder, 1)
    (repair,) = repair_campaign(folder, verify_campaign(folder))
    assert repair.is_repaired
    assert DIGEST.after_repair in repair.text
    assert not path.exists()
    assert found(folder) == [("digest", "digests/iter-000001", "quarantined")]
    dispose(folder, [entry for entry in find_disposable(folder) if entry.sort == "quarantine"])
    assert [entry.suffix for entry in folder.quarantine.iterdir()] == [".json"]


def test_it_is_collected_and_what_was_left_half_written_is_swept(folder: CampaignFolder) -> None:
    temporary = folder.path / f"digests/.tmp-iter-000002@{socket.gethostname()}-{GONE}-00000000"
    temporary.mkdir()
    assert sweep_leftovers(folder) == 1
    assert "digests" in sorts()
    (entry,) = find_disposable(folder)
    assert (entry.sort, folder.name_of(entry.path)) == ("digests", DIGEST.at(0))
    assert find_disposable(folder, keep=["digests"]) == []
    dispose(folder, [entry])
    assert set(read_removals(folder)) == {DIGEST.at(0)}
    assert found(folder) == [("digest", DIGEST.at(0), "removed")]


def test_it_is_in_the_table_of_the_documentation(folder: CampaignFolder) -> None:
    assert "| digest | `digests/iter-{iteration}` |" in artifact_table()


def test_the_documentation_has_the_table() -> None:
    document = Path(__file__).parents[2] / "docs" / "reliability.md"
    assert artifact_table() in document.read_text(encoding="utf-8"), (
        "run: python tests/written_docs.py"
    )


@pytest.mark.parametrize(("name", "artifact", "key"), [
    ("games/iter-000012/shard-0003", table.SHARD, (12, 3)),
    ("games/from-from-iter-000012/shard-0003", table.INHERITED_SHARD, ("from-iter-000012", 3)),
    ("checkpoints/gen-1000000", table.CHECKPOINT, (1_000_000,)),
    ("matches/gen-000012/random.json", table.MATCH, ("gen-000012", "random")),
    ("matches/gen-000012/conversion.json", table.CONVERSION_REPORT, (12,)),
    ("matches/final-1/greedy-64.part-0001.json", table.MATCH_PART, ("final-1", "greedy-64", 1)),
    ("comparisons/gen-000003@0/comparison.json", table.COMPARISON, ("gen-000003@0", "comparison")),
    ("quarantine/plans.iter-000001.json.0000.json", table.NOTE, ("plans.iter-000001.json.0000",)),
])
def test_a_path_has_one_artifact_and_an_artifact_its_path(
    name: str, artifact: Artifact, key: tuple[int | str, ...]
) -> None:
    stored = table.named(name)
    assert stored == table.Stored(artifact, key)
    assert stored is not None
    assert stored.name == name


@pytest.mark.parametrize("name", [
    "games/iter-12/shard-0003", "games/../shard-0003", "games/iter-000012/shard-0003/zarr.json",
    "checkpoints/.tmp-gen-000001@here-1-00000000", "services/mlflow.db", "campaign.toml", "",
])
def test_other_paths_have_none(name: str) -> None:
    assert table.named(name) is None


def test_kinds_without_a_check_are_not_counted() -> None:
    unchecked = {artifact.name for artifact in table.ARTIFACTS if artifact.check is None}
    assert unchecked.isdisjoint(table.kinds())
