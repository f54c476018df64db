"""The soak itself: what it plans, what it notices, and a very short one."""

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from stored_shards import copy_shard

from chess_snn.data import read_shard, staged_folder, verify_folder, write_shard
from chess_snn.data.commit import commit_archive
from chess_snn.errors import CorruptDataError
from chess_snn.games.chess import move_of_action, to_board

pytest.importorskip("mlflow")
pytest.importorskip("prefect")

from soak import audit
from soak.campaign import is_explained
from soak.faults import DECK, DECK_OF_RANKS, Kind, damage_file, planned_faults
from tasks.tracking import local_tracking_uri

pytestmark = pytest.mark.orchestration

REPOSITORY = Path(__file__).parents[2]


def test_the_schedule_follows_from_the_seed_and_has_every_kind_of_fault():
    def kinds(seed, in_ranks=True):
        size = sum(DECK.values()) + in_ranks * sum(DECK_OF_RANKS.values())
        return [planned.kind for planned in islice(planned_faults(seed, 0, in_ranks), size)]

    assert kinds(1) == kinds(1) != kinds(2)
    assert set(kinds(3)) == set(Kind)
    assert set(kinds(3, in_ranks=False)) == set(Kind) - DECK_OF_RANKS.keys()


@pytest.mark.parametrize("seed", range(4))
def test_damage_is_always_noticed(tmp_path, seed):
    numbers = bytes(range(100))
    commit_archive(tmp_path / "shard-0000", {"numbers": numbers}, kind="shard", meta={})
    with staged_folder(tmp_path / "gen-000001") as stage:
        (stage.path / "numbers").write_bytes(numbers)
        stage.commit(kind="checkpoint", meta={})
    for name in ("shard-0000", "gen-000001"):
        copy = copy_shard(tmp_path / name, tmp_path / "damaged" / name)
        damage_file(copy, random.Random(seed))
        with pytest.raises(CorruptDataError):
            verify_folder(copy)


@pytest.mark.parametrize(("code", "kind"), [
    *((2, kind) for kind in Kind), (-9, Kind.KILL_WORKER), (130, Kind.KILL_CAMPAIGN),
    (1, Kind.KILL_PREFECT), (-11, Kind.KILL_WORKER),
])
def test_an_end_that_no_fault_explains_is_noticed(code, kind):
    assert not is_explained(code, "error: anything", {kind: 9})


@pytest.mark.parametrize(("kind", "times", "error"), [
    (Kind.KILL_PREFECT, 1, "the Prefect server at http://127.0.0.1:1 does not answer"),
    (Kind.FILL_DISK, 1, "cannot write a: No space\nleft on device; free space on that disk"),
    (Kind.KILL_MLFLOW, 1, "the tracking store http://127.0.0.1:1 failed: no answer"),
    (Kind.KILL_WORKER, 4, "4 workers died one after another that had train(0) to do"),
    (Kind.KILL_RANK, 3, "rank 1 (process 7) was killed by SIGKILL"),
])
def test_an_error_is_explained_by_the_fault_it_names_and_no_other(kind, times, error):
    printed = f"error: something before\nerror: {error}"
    assert is_explained(2, printed, {kind: times})
    assert not is_explained(2, printed, {kind: times - 1})
    assert not is_explained(2, printed, {Kind.KILL_CAMPAIGN: times})


def test_an_end_is_explained_by_the_signal_and_an_error_by_the_damage_it_names():
    assert is_explained(-9, "", {Kind.KILL_CAMPAIGN: 1})
    assert is_explained(130, "", {Kind.TERMINATE_CAMPAIGN: 1})
    path = Path("/c/games/shard-0000")
    assert is_explained(2, f"error: {path} is corrupt", {}, {path})
    assert not is_explained(2, "error: something else", {}, {path})


def soak(out: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.soak", "--out", str(out), *arguments], cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_a_minute_of_faults_loses_nothing_and_the_audit_would_notice(tmp_path):
    process = soak(tmp_path / "soak", "--minutes", "1", "--seed", "1")
    printed, _ = process.communicate()
    assert process.returncode == 0, printed
    report = json.loads((tmp_path / "soak" / "soak.json").read_text())
    faults = [fault for campaign in report["campaigns"] for fault in campaign["faults"]]
    assert faults
    assert not (tmp_path / "soak" / "disk").is_mount()

    reference = tmp_path / "soak" / "reference-workers" / "campaign"
    assert failed_checks(reference, reference) == []
    for number, (first_words, harm) in enumerate(HARMS):
        copy = shutil.copytree(reference, tmp_path / f"copy-{number}")
        harm(copy)
        assert any(name.startswith(first_words) for name in failed_checks(copy, reference))


def failed_checks(directory: Path, reference: Path) -> list[str]:
    """Of a campaign with servers of its own."""
    uri = local_tracking_uri(directory / "services")
    found = audit.audit(directory, reference, uri, directory.parent / "verify.log")
    return [check.name for check in found if check.fault]


def shards(directory: Path) -> list[Path]:
    return sorted((directory / "games").glob("iter-*/shard-*"))


def swap_two_shards(directory: Path) -> None:
    first, second = shards(directory)[:2]
    first.rename(directory / "aside")
    second.rename(first)
    (directory / "aside").rename(second)


def make_a_game_illegal(directory: Path) -> None:
    """Whole and with correct digests, but the first move of the first game is illegal."""
    shard = shards(directory)[0]
    records, manifest = read_shard(shard)
    actions = records.actions.copy()
    board = to_board(records.states[0])
    actions[0] = next(a for a in actions if not board.is_legal(move_of_action(board, int(a))))
    shard.unlink()
    write_shard(shard, replace(records, actions=actions), manifest.meta)


def change(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        assert connection.execute(statement).rowcount > 0


HARMS = (
    ("the games", lambda d: (d / "receipts" / "iter-000002.json").unlink()),
    ("the games", lambda d: shutil.copy(shards(d)[0], shards(d)[0].with_name("shard-0099"))),
    ("the games", lambda d: (d / "games" / ".tmp-shard-0000@here-1-00000000").mkdir()),
    ("the games", swap_two_shards),
    ("chess-snn verify", lambda d: damage_file(shards(d)[0], random.Random(1))),
    ("every game is legal", make_a_game_illegal),
    ("Prefect", lambda d: change(
        d / audit.PREFECT_DATABASE, "UPDATE flow_run SET state_type = 'RUNNING'")),
    ("MLflow", lambda d: change(
        d / "services" / "mlflow.db",
        f"DELETE FROM metrics WHERE key = '{audit.MARKER}' AND step = 1")),
)
"""Each with the first words of a check that has to notice it."""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ctrl_c_ends_all_of_it(tmp_path):
    process = soak(tmp_path / "soak", "--minutes", "1")
    deadline = time.monotonic() + 300
    while not (tmp_path / "soak" / "reference-workers" / "terminal.log").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 130, printed
    assert "Traceback" not in printed
    assert not (tmp_path / "soak" / "disk").is_mount()
