"""``chess-snn mates``: a count that is kept, and errors before any work."""

import json

import pytest
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


@pytest.mark.parametrize(
    ("option", "value"),
    [("--moves", 3), ("--moves", 0), ("--simulations", 0), ("--count", 0), ("--threads", -1)],
)
def test_numbers_out_of_range_are_named(chess_snn, tmp_path, option, value):
    make_weights(tmp_path / "net.safetensors")
    done = chess_snn("mates", "net.safetensors", option, value)
    assert done.returncode == 2
    assert f"Invalid value for '{option}'" in done.stderr


def test_a_device_that_does_not_exist_is_named_before_any_work(chess_snn, tmp_path):
    make_weights(tmp_path / "net.safetensors")
    done = chess_snn("mates", "net.safetensors", "--device", "cuda:99")
    assert done.returncode == 2
    assert "device cuda:99 is not here" in done.stderr


def test_a_missing_network_is_named(chess_snn):
    done = chess_snn("mates", "nowhere")
    assert done.returncode == 2
    assert "'nowhere' does not exist" in done.stderr
