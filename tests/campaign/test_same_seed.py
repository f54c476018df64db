"""The same seed gives the same games and the same weights, to the bit, in every version.

The digests in same_seed.json are those of the content: columns of game records, tensors of
networks. How they are stored may change. Sums of floats depend on the processor and on torch, so
they hold for the machines named there; on another one the campaign is compared with a second run.
To print the digests of this machine::

    PYTHONPATH=.:tests python tests/campaign/test_same_seed.py
"""

import hashlib
import json
import tempfile
from dataclasses import fields
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from small_campaigns import MICRO, MICRO_2048, play_first_games

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.stages import play_shard, train_generation
from chess_snn.campaign.store.plans import begin_iteration, num_shards
from chess_snn.data import read_shard
from chess_snn.nets import NetConfig, load_network, net_config

CAMPAIGNS = {"chess": MICRO, "2048": MICRO_2048}
STORED = json.loads(Path(__file__).with_name("same_seed.json").read_text())
"""Digests by kind of machine and game; a key is what :func:`machine` returns there."""


def machine() -> str:
    """Features of the machine that the rounding of floats depends on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    facts = {name.strip(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    torch_version = torch.__version__.partition("+")[0]
    processor = [facts.get(name, "?") for name in ("vendor_id", "cpu family", "model")]
    return f"{' '.join(processor)}, torch {torch_version}"


def digest(arrays: dict[str, np.ndarray]) -> str:
    """Digest of names, types, shapes and every bit."""
    sha256 = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        sha256.update(f"{name} {array.dtype} {array.shape}\n".encode())
        sha256.update(np.ascontiguousarray(array).tobytes())
    return sha256.hexdigest()[:16]


def digest_of_games(shard: Path) -> str:
    records, _ = read_shard(shard)
    return digest({column.name: getattr(records, column.name) for column in fields(records)})


def digest_of_network(checkpoint: Path) -> str:
    network = load_network(checkpoint / "weights.safetensors")
    return digest({name: tensor.numpy() for name, tensor in network.state_dict().items()})


def smaller_network(size: str) -> NetConfig:
    """The network that the stored digests were made with."""
    return net_config(size, value_channels=1, value_hidden=4)


@patch("chess_snn.campaign.configuration.settings.net_config", smaller_network)
@patch("chess_snn.self_play.starts.MISMATCH_PLIES", 10)
def play(path: Path, game: str) -> dict[str, str]:
    """Digests of all that two iterations play and train."""
    folder = CampaignFolder.create(path, load_config(settings=CAMPAIGNS[game]))
    play_first_games(folder)
    train_generation(folder.path, 0)
    begin_iteration(folder, 1, elapsed_s=10.0)
    for shard in range(num_shards(folder, 1)):
        play_shard(folder.path, 1, shard)
    train_generation(folder.path, 1)
    games = {f"games {i}/{s}": digest_of_games(folder.shard(i, s))
             for i in range(2) for s in range(num_shards(folder, i))}
    networks = {f"weights {g}": digest_of_network(folder.checkpoint(g)) for g in range(3)}
    return games | networks


@pytest.mark.parametrize("game", ["chess", pytest.param("2048", marks=pytest.mark.slow)])
def test_the_same_seed_gives_the_same_games_and_weights(tmp_path: Path, game: str) -> None:
    found = play(tmp_path / "a", game)
    assert len(set(found.values())) == len(found) == 7
    expected = STORED.get(machine(), {}).get(game) or play(tmp_path / "b", game)
    assert found == expected


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        digests = {game: play(Path(scratch, game), game) for game in CAMPAIGNS}
    print(json.dumps({machine(): digests}, indent=2))
