"""The soak itself: what it plans, what it notices, and a very short one."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from stored_shards import copy_shard

from chess_snn.data import read_shard, staged_folder, verify_folder, write_shard
from chess_snn.data.commit import commit_archive
from chess_snn.errors import CorruptDataError
from chess_snn.games.chess import CHESS_SPEC, move_of_action, to_board
from chess_snn.games.chess.actions import DECODED_ACTION, OFF_BOARD

pytest.importorskip("mlflow")
pytest.importorskip("prefect")

from soak.audit import Twin, audit_folder
from soak.campaigns import RECIPES, committed_checkpoints, committed_shards
from soak.checks import Check
from soak.damage import damage_file
from soak.disk import SmallDisk
from soak.injections import Injected
from soak.journal import Journal
from soak.mlflow_server import MlflowServer
from soak.outcomes import (
    FOUND_LATER,
    NAMED,
    NOTHING_LEFT,
    OVERTAKEN,
    STOPS_WITHIN_S,
    STOPS_WITHOUT_PREFECT_S,
    UNHEEDED,
    WENT_ON,
    Outcomes,
    traceback_errors,
)
from soak.processes import marked_processes
from soak.report import CampaignRecord, FaultRecord, SoakReport
from soak.round import Round, RoundFailedError, Site
from soak.schedule import DAMAGE, DECK, DECK_OF_RANKS, STOPS, Kind, planned_faults
from soak.views import MARKER, PREFECT_DATABASE, audit_views
from tasks.tracking import local_tracking_uri

pytestmark = pytest.mark.orchestration

REPOSITORY = Path(__file__).parents[2]


def first_deck(seed, campaign, in_ranks):
    size = sum(DECK.values()) + (sum(DECK_OF_RANKS.values()) if in_ranks else 0)
    return list(islice(planned_faults(seed, campaign, in_ranks), size))


def test_the_schedule_follows_from_the_seed():
    assert first_deck(1, 0, True) == first_deck(1, 0, True)
    assert first_deck(1, 0, True) != first_deck(2, 0, True)
    assert first_deck(1, 0, True) != first_deck(1, 1, True)


def test_every_kind_of_fault_comes_up():
    assert {planned.kind for planned in first_deck(3, 0, True)} == set(Kind)
    in_workers = {planned.kind for planned in first_deck(3, 0, False)}
    assert in_workers == set(Kind) - DECK_OF_RANKS.keys()
    assert all(p.kind in DAMAGE for p in first_deck(3, 0, True) if p.is_between_runs)


@pytest.mark.parametrize("where", np.linspace(0, 0.999, 12))
def test_damage_is_always_noticed(tmp_path, where):
    numbers = {"numbers": bytes(range(100))}
    commit_archive(tmp_path / "shard-0000", numbers, kind="shard", meta={})
    with staged_folder(tmp_path / "gen-000001") as stage:
        (stage.path / "numbers").write_bytes(numbers["numbers"])
        stage.commit(kind="checkpoint", meta={})
    for name, which in (("shard-0000", 0.0), ("gen-000001", 0.0), ("gen-000001", 0.99)):
        copy = copy_shard(tmp_path / name, tmp_path / f"copy-{which}-of-{name}")
        damage = damage_file(copy, which, where)
        assert damage.folder == copy
        with pytest.raises(CorruptDataError):
            verify_folder(copy)


def fault(kind: Kind, elapsed_s: float = 0.0) -> FaultRecord:
    return FaultRecord(0, kind, "somebody", "2026-01-01T00:00:00+00:00", elapsed_s)


def test_an_end_belongs_to_the_last_fault_that_explains_it():
    outcomes, worker, prefect = Outcomes(), fault(Kind.KILL_WORKER), fault(Kind.KILL_PREFECT, 2.0)
    outcomes.add(worker)
    outcomes.note_commit(1.5)
    outcomes.add(prefect)
    assert outcomes.note_end(2, "error: the Prefect server does not answer")
    outcomes.note_commit(30.0)
    assert (worker.followed, worker.recovered_s) == (WENT_ON, 1.5)
    assert (prefect.followed, prefect.recovered_s) == ("ended (code 2), resumed", 28.0)


def test_what_was_not_over_when_the_campaign_was_killed_is_told_apart():
    outcomes, frozen, killed = Outcomes(), fault(Kind.FREEZE_WORKER), fault(Kind.KILL_CAMPAIGN)
    outcomes.add(frozen)
    outcomes.add(killed)
    assert outcomes.note_end(-9, "")
    assert (frozen.followed, killed.followed) == (OVERTAKEN, "ended (signal 9), resumed")


def told_to_stop(
    *before: Kind, kind: Kind = Kind.TERMINATE_CAMPAIGN
) -> tuple[Outcomes, FaultRecord]:
    """A run that a stop signal met at second 10, after other faults."""
    outcomes, stop = Outcomes(), fault(kind, 10.0)
    for earlier in before:
        outcomes.add(fault(earlier, 5.0))
    outcomes.add(stop)
    return outcomes, stop


@pytest.mark.parametrize("kind", sorted(STOPS))
def test_a_commit_does_not_settle_a_stop_signal(kind):
    outcomes, stop = told_to_stop(kind=kind)
    outcomes.note_commit(12.0)
    assert (stop.followed, stop.recovered_s) == ("", None)
    assert outcomes.unheeded_stop(20.0, 130) is None
    assert outcomes.note_end(130, "")
    outcomes.note_commit(50.0)
    assert (stop.followed, stop.recovered_s) == ("ended (code 130), resumed", 40.0)


@pytest.mark.parametrize(("before", "within_s"), [
    ((), STOPS_WITHIN_S), ((Kind.KILL_MLFLOW,), STOPS_WITHIN_S),
    ((Kind.KILL_PREFECT,), STOPS_WITHOUT_PREFECT_S),
])
def test_a_run_that_is_alive_after_the_deadline_of_a_stop_signal_is_told(before, within_s):
    outcomes, stop = told_to_stop(*before)
    outcomes.note_commit(11.0)
    assert outcomes.unheeded_stop(10.0 + within_s - 1) is None
    assert outcomes.unheeded_stop(10.0 + within_s + 1) == (
        f"SIGTERM the campaign (fault 0): {within_s:.0f} s later the run is alive"
    )
    assert stop.followed == UNHEEDED


def test_a_prefect_server_that_was_killed_in_an_earlier_run_gives_no_more_time():
    outcomes = Outcomes()
    outcomes.add(fault(Kind.KILL_PREFECT))
    outcomes.add(fault(Kind.KILL_CAMPAIGN))
    assert outcomes.note_end(-9, "")
    outcomes.add(fault(Kind.INTERRUPT_CAMPAIGN, 10.0))
    assert outcomes.unheeded_stop(10.0 + STOPS_WITHIN_S + 1) is not None


@pytest.mark.parametrize(("code", "is_finished", "committed_s", "is_heeded"), [
    (0, True, 9.0, True), (-signal.SIGTERM, True, 9.0, True),
    (0, True, 11.0, False), (0, False, 9.0, False), (-signal.SIGTERM, False, 9.0, False),
    (130, False, 11.0, True), (-signal.SIGKILL, False, 11.0, True),
])
def test_a_stopped_run_ends_with_130_or_had_committed_everything(
    code, is_finished, committed_s, is_heeded
):
    outcomes, stop = told_to_stop()
    outcomes.note_commit(committed_s)
    assert (outcomes.unheeded_stop(15.0, code, is_finished) is None) == is_heeded
    assert (stop.followed == UNHEEDED) != is_heeded


def test_what_followed_stop_signals_that_did_not_end_the_run_alone():
    outcomes, first = told_to_stop()
    second = fault(Kind.INTERRUPT_CAMPAIGN, 11.0)
    outcomes.add(second)
    assert outcomes.note_end(130, "")
    assert first.followed == second.followed == "ended (code 130), resumed"
    outcomes, stop = told_to_stop()
    outcomes.add(fault(Kind.KILL_CAMPAIGN))
    assert outcomes.note_end(-9, "")
    assert stop.followed == OVERTAKEN
    outcomes, stop = told_to_stop()
    assert outcomes.note_end(0, "")
    assert stop.followed == NOTHING_LEFT


PRINTED_TRACEBACK = """\
worker 1 was killed by SIGKILL; another is started
Traceback (most recent call last):
  File "worker.py", line 1, in <module>
    run()
FileNotFoundError: [Errno 2] No such file or directory

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "spec.py", line 470, in _close
AssertionError: Status.running
stopped; everything committed is safe
"""


def test_tracebacks_are_told_by_their_errors():
    assert traceback_errors("error: a line\n  indented\n") == []
    assert traceback_errors(PRINTED_TRACEBACK * 2) == [
        "FileNotFoundError: [Errno 2] No such file or directory", "AssertionError: Status.running",
    ]
    assert traceback_errors("Traceback (most recent call last):\n  File") == ["cut off"]


class MadeCampaign:
    """In place of a :class:`soak.processes.RunningCampaign`: prints, lives and ends as told."""

    pid = 0

    def __init__(self, terminal: Path, prints: str, codes: list[int | None]) -> None:
        terminal.write_text(prints)
        self._codes = codes

    def exit_code(self) -> int | None:
        """None while there is more to come."""
        return self._codes.pop(0)

    def workers(self) -> list:
        """None."""
        return []


def made_round(tmp_path, monkeypatch, prints: str, codes: list[int | None]) -> Round:
    """One that runs a campaign which prints and ends so."""
    record = CampaignRecord(0, "workers", 0.0)
    monkeypatch.setattr("soak.round.RunningCampaign",
                        lambda _, terminal, __: MadeCampaign(terminal, prints, codes))
    monkeypatch.setattr("soak.round.POLL_S", 0.0)
    mlflow = MlflowServer(tmp_path / "mlflow")  # not started
    site = Site(tmp_path, Journal(tmp_path), SmallDisk(tmp_path), mlflow, tmp_path.name)
    (tmp_path / "campaign-000").mkdir()
    return Round(site, RECIPES[0], 1, record, iter(()), lambda: True)


@pytest.mark.parametrize("code", [0, 2, 130, -9])
def test_a_traceback_is_a_loss_whatever_the_exit_code(tmp_path, monkeypatch, code):
    made = made_round(tmp_path, monkeypatch, PRINTED_TRACEBACK, [None, code])
    ended, _ = made._run_once(["start"])
    with suppress(RoundFailedError):  # no fault explains the end
        made._settle(ended)
    (told,) = (c for c in made.record.checks if c.name == "no traceback is printed")
    assert made.record.has_lost
    assert "AssertionError: Status.running" in str(told)
    made._look_for_tracebacks(PRINTED_TRACEBACK + "a line of the next run", "run 2")
    assert sum(c.name == "no traceback is printed" for c in made.record.checks) == 1


def test_a_campaign_that_does_not_stop_is_given_up_and_lost(tmp_path, monkeypatch):
    made = made_round(tmp_path, monkeypatch, "", [None] * 3)
    made._note_fault(Kind.INTERRUPT_CAMPAIGN, Injected("process 7"))
    made.record.faults[0].elapsed_s -= STOPS_WITHIN_S + 1
    with pytest.raises(RoundFailedError, match=r"Ctrl-C the campaign .* 60 s later"):
        made._run_once(["start"])
    assert [check.name for check in made.record.checks] == ["a stop signal ends a run"]
    assert made.record.has_lost


def test_a_campaign_that_goes_on_to_its_end_is_given_up_and_lost(tmp_path, monkeypatch):
    made = made_round(tmp_path, monkeypatch, "", [None, 0])
    made._note_fault(Kind.TERMINATE_CAMPAIGN, Injected("process 7"))
    code, _ = made._run_once(["start"])
    with pytest.raises(RoundFailedError, match="the run ended with code 0, not 130"):
        made._settle(code)
    assert made.record.has_lost


@pytest.mark.parametrize(("code", "kind"), [
    *((2, kind) for kind in (None, *Kind)), (-9, Kind.KILL_WORKER), (130, Kind.KILL_CAMPAIGN),
    (1, Kind.KILL_PREFECT), (-11, Kind.KILL_WORKER),
])
def test_an_end_that_no_fault_explains_is_noticed(code, kind):
    outcomes = Outcomes()
    if kind is not None:
        outcomes.add(fault(kind))
    assert not outcomes.note_end(code, "error: anything")


@pytest.mark.parametrize(("kind", "times", "error"), [
    (Kind.KILL_PREFECT, 1, "the Prefect server at http://127.0.0.1:1 does not answer"),
    (Kind.FILL_DISK, 1, "cannot write a: No space\nleft on device; free space on that disk"),
    (Kind.FILL_DISK, 1, "cannot write a: File too large; raise the file-size limit"),
    (Kind.KILL_MLFLOW, 1, "the tracking store http://127.0.0.1:1 failed: no answer"),
    (Kind.KILL_WORKER, 4, "4 workers died one after another that had train(0) to do"),
    (Kind.KILL_RANK, 3, "rank 1 (process 7) was killed by SIGKILL"),
])
def test_an_error_is_explained_by_the_fault_it_tells_of_and_no_other(kind, times, error):
    def is_explained(kind, times):
        outcomes = Outcomes()
        for _ in range(times):
            outcomes.add(fault(kind))
        return outcomes.note_end(2, f"error: something before\nerror: {error}")

    assert is_explained(kind, times)
    assert not is_explained(kind, times - 1)
    assert not is_explained(Kind.KILL_CAMPAIGN, times)


def test_damage_of_an_earlier_run_explains_a_later_end(tmp_path):
    for printed, followed in (("{} must have", NAMED), ("something else", FOUND_LATER)):
        commit_archive(tmp_path / followed / "shard-0000", {}, kind="shard", meta={})
        damage = damage_file(tmp_path / followed / "shard-0000", 0.0, 0.1)
        outcomes, damaged = Outcomes(), fault(Kind.DAMAGE_SHARD)
        outcomes.add(damaged, damage)
        assert outcomes.note_end(0, "")
        if followed == NAMED:
            assert outcomes.note_end(2, "error: " + printed.format(damage.folder))
        outcomes.note_mending([damage.folder])
        assert damaged.followed == followed
        assert outcomes.damages == []


def test_a_soak_without_faults_or_audit_shows_nothing():
    report = SoakReport(1, 1.0, "machine", "disk", "0.1")
    report.campaigns.append(CampaignRecord(0, "workers", 0.0))
    assert not report.is_whole
    report.campaigns[0].faults.append(fault(Kind.KILL_WORKER))
    assert not report.is_whole
    assert "not audited" in report.verdict()


def soak(out: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.soak", "--out", str(out), *arguments], cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_a_minute_of_faults_loses_nothing_and_the_audit_would_notice(tmp_path):
    out = tmp_path / "soak"
    process = soak(out, "--minutes", "1", "--seed", "1")
    printed, _ = process.communicate()
    assert process.returncode == 0, printed
    report = json.loads((out / "soak.json").read_text())
    assert report["is_whole"]
    faults = [fault for campaign in report["campaigns"] for fault in campaign["faults"]]
    assert faults
    assert all(fault["followed"] for fault in faults)
    log = (out / "soak.log").read_text()
    assert all(f"{fault['kind']}: {fault['target']}" in log for fault in faults)
    assert not (out / "disk").is_mount()

    whole = out / "twin-workers" / "campaign"
    twin = Twin.of(whole)
    assert [check for check in audit_folder(whole, twin) if not check.holds] == []
    for name, harm in HARMS.items():
        copy = tmp_path / "copy"
        shutil.copytree(whole, copy)
        harm(copy)
        assert name in {check.name for check in audit_folder(copy, twin) if not check.holds}
        shutil.rmtree(copy)

    assert [check for check in views_of(whole) if not check.holds] == []
    for name, harm in HARMS_TO_VIEWS.items():
        copy = tmp_path / "copy"
        shutil.copytree(whole, copy)
        harm(copy)
        assert [check.name for check in views_of(copy) if not check.holds] == [name]
        shutil.rmtree(copy)


def views_of(directory: Path) -> list[Check]:
    """Of a campaign with servers of its own."""
    return audit_views(directory, local_tracking_uri(directory / "services"))


def flip_a_bit(directory: Path) -> None:
    damage_file(committed_shards(directory)[0], 0.5, 0.2)


def swap_two_shards(directory: Path) -> None:
    first, second = committed_shards(directory)[:2]
    first.rename(directory / "aside")
    second.rename(first)
    (directory / "aside").rename(second)


def add_a_shard(directory: Path) -> None:
    first = committed_shards(directory)[0]
    shutil.copy(first, first.with_name("shard-0099"))


def leave_a_temporary_file(directory: Path) -> None:
    (directory / "games" / ".tmp-shard-0000@here-1-00000000").mkdir()


def make_a_game_illegal(directory: Path) -> None:
    """Whole and sealed, but the first move of the first game is against the rules."""
    shard = committed_shards(directory)[0]
    records, manifest = read_shard(shard)
    board = to_board(records.states[0])
    actions = records.actions.copy()
    actions[0] = next(
        action for action in range(CHESS_SPEC.num_actions)
        if DECODED_ACTION[action] != OFF_BOARD and not board.is_legal(move_of_action(board, action))
    )
    shard.unlink()
    write_shard(shard, replace(records, actions=actions), manifest.meta)


HARMS = {
    "every iteration is finished": lambda d: (d / "receipts" / "iter-000002.json").unlink(),
    "every game once": add_a_shard,
    "digests": flip_a_bit,
    "no temporary file": leave_a_temporary_file,
    "receipts agree with manifests": swap_two_shards,
    "every game is legal": make_a_game_illegal,
    "the games of the undisturbed twin": swap_two_shards,
    "the networks of the undisturbed twin":
        lambda d: shutil.copytree(committed_checkpoints(d)[-1], d / "checkpoints" / "gen-000009"),
}
"""By the check that has to notice it."""


def change(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        assert connection.execute(statement).rowcount > 0


HARMS_TO_VIEWS = {
    "Prefect has no run left open":
        lambda d: change(d / PREFECT_DATABASE, "UPDATE flow_run SET state_type = 'RUNNING'"),
    "MLflow has everything once":
        lambda d: change(d / "services" / "mlflow.db",
                         f"DELETE FROM metrics WHERE key = '{MARKER}' AND step = 1"),
}
"""By the only check that has to notice it."""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ctrl_c_ends_all_of_it(tmp_path):
    out = tmp_path / "soak"
    process = soak(out, "--minutes", "1")
    deadline = time.monotonic() + 300
    while not (out / "twin-workers" / "terminal.log").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 130, printed
    assert "Traceback" not in printed
    assert not (out / "disk").is_mount()
    assert "not audited" in (out / "soak.log").read_text() or "no fault" in printed


def test_bad_input_is_refused_in_one_line(tmp_path):
    for arguments, named in (
        (("--minutes", "0"), "--minutes"), (("--seed", "-1"), "--seed"), ((), str(tmp_path)),
    ):
        process = soak(tmp_path, *arguments)
        printed, _ = process.communicate(timeout=120)
        assert process.returncode == 2
        assert named in printed
        assert "Traceback" not in printed


def test_a_process_is_found_by_its_mark_whoever_its_parent_is(tmp_path):
    mark = tmp_path.name
    orphan = subprocess.run(
        [sys.executable, "-c",
         "import subprocess, sys; print(subprocess.Popen(['sleep', '60'], "
         "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True).pid)"],
        env=os.environ | {"CHESS_SNN_SOAK": mark}, capture_output=True, text=True, check=True,
    )
    (found,) = marked_processes(mark)
    assert found.pid == int(orphan.stdout)
    found.kill()
