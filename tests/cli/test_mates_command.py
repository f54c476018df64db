"""``chess-snn mates``: a count that is kept, and errors before any work."""

import json

from small_campaigns import make_weights


def test_an_untrained_network_finds_mates_in_one(chess_snn, tmp_path):
    make_weights(tmp_path / "net.safetensors")
    done = chess_snn(
        "mates", "net.safetensors", "--moves", 1, "--simulations", 200, "--count", 10,
        "--json-file", "found.json",
    )
    assert done.returncode == 0, done.stderr
    assert "10 of 10 mates in 1 at 200 simulations" in done.stdout
    body = json.loads((tmp_path / "found.json").read_text())
    assert (body["solved"], body["count"], body["moves"]) == (10, 10, 1)
