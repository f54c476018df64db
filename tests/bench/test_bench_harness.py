"""Works take turns; rates are items over time; reports keep figures, bars and verdicts."""

import io
import json
from types import SimpleNamespace

from benchmarks import harness
from benchmarks.harness import Pace, Work, rates_in_turn
from benchmarks.report import Report


def test_works_take_turns_after_one_call_of_each():
    calls = []
    works = {name: Work(lambda name=name: calls.append(name)) for name in "ab"}
    rates_in_turn(works, Pace(rounds=2, turn_s=0.0))
    assert calls == ["a", "b", "a", "b", "a", "b"]


def test_a_rate_counts_the_items_of_all_calls_and_the_wait_for_the_device(monkeypatch):
    now = 5.0

    def take(seconds):
        nonlocal now
        now += seconds

    monkeypatch.setattr(harness, "time", SimpleNamespace(perf_counter=lambda: now))
    work = Work(lambda: take(1 / 64), items=10)
    rates = rates_in_turn({"work": work}, Pace(rounds=1, turn_s=7 / 64), lambda: take(7 / 64))
    assert rates == {"work": 320.0}
    assert now == 5.0 + 8 / 64 + 14 / 64, "one call before, seven in the turn, each with a wait"


def test_a_report_is_printed_and_written_as_its_figures_come(tmp_path):
    table, path = io.StringIO(), tmp_path / "report.json"
    report = Report("demo", table, path)
    report.add("fast enough", 12_345.6, "positions/s", at_least=10)
    assert report.passes
    assert table.getvalue().split() == ["fast", "enough", "12,346", "positions/s", "≥", "10", "ok"]
    report.add("too late", 2.0, "s", at_most=1)
    report.add("no bar", 0.5, "share")
    report.note("a note")
    assert not report.passes
    body = json.loads(path.read_text())
    assert body == json.loads(report.to_json())
    assert [row["passes"] for row in body["measurements"]] == [True, False, None]
    assert body["notes"] == ["a note"]
