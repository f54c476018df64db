"""Every command explains itself; benchmarks print what programs can read."""

import json

import pytest

from chess_snn.bench import env

COMMANDS = {
    (): "chess-snn campaign start --preset smoke",
    ("campaign",): "Learn by self-play",
    ("campaign", "start"): "--set campaign.iterations=5",
    ("campaign", "resume"): "chess-snn campaign status",
    ("campaign", "status"): "from its folder alone",
    ("games", "learn"): "chess-snn games learn imports/lichess --out networks/tiny",
    ("match",): "chess-snn match campaigns/cpu-001:64 greedy",
    ("ladder",): "Players of known strength",
    ("ladder", "make"): "chess-snn ladder make --out ladders/mine",
    ("ladder", "show"): "chess-snn ladder show",
    ("ladder", "check"): "Exit code 1 where one is outside",
    ("ladder", "games"): "chess-snn ladder games --player minimax:2",
    ("analyse",): "chess-snn analyse startpos --simulations 800",
    ("play",): "chess-snn play --model campaigns/cpu-001",
    ("train",): "chess-snn train campaigns/gpu-001",
    ("uci",): "chess-snn uci --model campaigns/cpu-001",
    ("perft",): "chess-snn perft startpos 5",
    ("ui",): "until Ctrl-C",
    ("up",): "chess-snn up --prefect-port 4300",
    ("down",): "A campaign that is running is told to stop",
    ("deploy",): "tournament/local",
    ("doctor",): "Exit code 1 where something is broken",
    ("verify",): "chess-snn verify campaigns/cpu-001 --repair",
    ("gc",): "chess-snn gc campaigns/cpu-001 --keep games --yes",
    ("watch",): "chess-snn watch campaigns/cpu-001",
    ("results",): "chess-snn results campaigns/cpu-001 --last 10",
    ("models",): "which is better, who is champion",
    ("models", "list"): "chess-snn models list campaigns/cpu-001",
    ("models", "show"): "chess-snn models show campaigns/cpu-001@champion",
    ("models", "compare"): "chess-snn models compare campaigns/cpu-001@18 campaigns/cpu-001@4",
    ("models", "promote"): "chess-snn models promote campaigns/cpu-001@12 --why",
    ("models", "rollback"): "goes back one more",
    ("models", "export"): "chess-snn models export campaigns/cpu-001@champion --out strongest",
    ("bench",): "Measure one part",
    ("bench", "env"): "beside python-chess",
    ("bench", "folder"): "chess-snn bench folder --shards 5000 --json",
    ("bench", "import"): "From PGN to shards",
    ("bench", "net"): "beside its twin",
    ("bench", "selfplay"): "batch of one",
    ("bench", "store"): "shards",
    ("bench", "train"): "Training steps",
    ("bench", "workers"): "One worker beside two",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_help(chess_snn, command):
    done = chess_snn(*command, "--help")
    assert done.returncode == 0
    assert "Usage: chess-snn" in done.stdout
    assert COMMANDS[command] in " ".join(done.stdout.split())


def test_a_part_that_a_benchmark_does_not_have_is_refused(chess_snn):
    done = chess_snn("bench", "workers", "--part", "x")
    assert done.returncode == 2
    assert "--part must be one of campaigns, scheduling, got 'x'" in done.stderr


def test_a_game_without_a_benchmark_is_refused(chess_snn):
    done = chess_snn("bench", "env", "--game", "go")
    assert done.returncode == 2
    assert "--game must be one of chess, 2048, got 'go'" in done.stderr


def test_version(chess_snn):
    assert chess_snn("--version").stdout.startswith("chess-snn 0.")


@pytest.mark.parametrize("place", [".", "file/report.json"])
def test_a_report_that_cannot_be_written_is_refused_before_the_run_bug(
    chess_snn, tmp_path, monkeypatch, place
):
    (tmp_path / "file").touch()
    monkeypatch.setattr(env, "run", lambda quick: pytest.fail(f"it ran, quick: {quick}"))
    done = chess_snn("bench", "env", "--json-file", place)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: cannot write {place}: ")
    assert "--json-file" in line


@pytest.mark.slow
@pytest.mark.parametrize("name", ["env", "import", "net", "selfplay", "store", "train", "workers"])
def test_a_quick_benchmark_prints_its_report_as_json(chess_snn_process, tmp_path, name):
    done = chess_snn_process("bench", name, "--quick", "--json", "--json-file", "out/report.json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == report
    assert set(report) == {"name", "measurements", "notes", "started", "machine", "passes"}
    assert report["measurements"]
    for row in report["measurements"]:
        assert set(row) == {"name", "value", "unit", "at_least", "at_most", "passes"}
        assert row["value"] > 0
