"""Every command explains itself."""

import pytest

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
    ("ladder", "check"): "exit code 1 where one is not",
    ("ladder", "games"): "chess-snn ladder games --player minimax:2",
    ("analyse",): "chess-snn analyse startpos --simulations 800",
    ("play",): "chess-snn play --model campaigns/cpu-001",
    ("train",): "chess-snn train campaigns/gpu-001",
    ("uci",): "chess-snn uci --model campaigns/cpu-001",
    ("perft",): "chess-snn perft startpos 5",
    ("ui",): "until Ctrl-C",
    ("up",): "chess-snn up --prefect-port 4300",
    ("down",): "A running campaign is stopped",
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
}


@pytest.mark.parametrize("command", COMMANDS)
def test_help(chess_snn, command):
    done = chess_snn(*command, "--help")
    assert done.returncode == 0
    assert "Usage: chess-snn" in done.stdout
    assert COMMANDS[command] in " ".join(done.stdout.split())


def test_version(chess_snn):
    assert chess_snn("--version").stdout.startswith("chess-snn 0.")
