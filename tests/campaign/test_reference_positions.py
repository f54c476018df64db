"""The positions that every network of chess is measured on."""

import pytest

from chess_snn.campaign.stages.training import measure_reference, reference_shard
from chess_snn.data import check_shard
from chess_snn.errors import CorruptDataError
from chess_snn.games import get_game
from chess_snn.known import SHIPPED_FOLDER
from chess_snn.nets import NetConfig, build_network, load_network
from chess_snn.training import WEIGHTS, Trainer, TrainingSettings

CHESS = get_game("chess")


def measured(network, game=CHESS):
    return measure_reference(Trainer(game, network, TrainingSettings(), seed=1))


def test_stronger_networks_have_better_figures():
    untrained = build_network(CHESS.spec, NetConfig(1, 8), seed=1)
    networks = [untrained, *(
        load_network(SHIPPED_FOLDER / name / WEIGHTS) for name in ("chess-self-play", "chess-small")
    )]
    figures = [measured(network) for network in networks]
    accuracies = [row["reference_policy_accuracy"] for row in figures]
    losses = [row["reference_value_loss"] for row in figures]
    assert accuracies == sorted(accuracies)
    assert losses == sorted(losses, reverse=True)
    assert accuracies[0] < 0.2
    assert accuracies[2] > 0.35


def test_a_game_without_such_positions_has_no_figures():
    game = get_game("2048")
    assert measured(build_network(game.spec, NetConfig(1, 8), seed=1), game) == {}


def test_damage_is_reported(tmp_path, monkeypatch):
    shard = reference_shard(CHESS)
    check_shard(shard)
    broken = tmp_path / shard.name
    broken.write_bytes(shard.read_bytes()[:-100])
    monkeypatch.setattr("chess_snn.campaign.stages.training._REFERENCE_FOLDER", tmp_path)
    with pytest.raises(CorruptDataError, match=shard.name):
        measured(build_network(CHESS.spec, NetConfig(1, 8), seed=1))
