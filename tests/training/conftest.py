"""Played games to train on, and the smallest trainer."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.random_data import play_random_games, with_search_targets
from chess_snn.data import GameRecords, ReplayWindow, concatenate, write_shard
from chess_snn.games import ONGOING, get_game
from chess_snn.nets import build_network, net_config
from chess_snn.training import Trainer, TrainingSettings

GAME = get_game("chess")


@pytest.fixture(scope="package", autouse=True)
def _one_torch_thread():
    """Small tensors gain nothing from two threads, and lose much where the machine is shared."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def game():
    return GAME


def tiny_network(seed=0, **overrides):
    shape = {"blocks": 1, "channels": 8, "value_channels": 2, "value_hidden": 8} | overrides
    return build_network(GAME.spec, net_config("tiny", **shape), seed)


@pytest.fixture(scope="session", name="tiny_network")
def tiny_network_fixture():
    return tiny_network


@pytest.fixture(scope="session")
def new_trainer():
    """Makes a trainer of a fresh tiny network; arguments are settings."""

    def make(*, seed=7, network_seed=0, device="cpu", captured=True, **settings):
        defaults = {"batch_size": 32, "warmup_steps": 3, "learning_rate": 1e-2}
        return Trainer(
            GAME, tiny_network(network_seed), TrainingSettings(**(defaults | settings)), seed,
            device, captured,
        )

    return make


@pytest.fixture(scope="session")
def records():
    """Random games without search; some are decided, and the cut ones count as something."""
    played = play_random_games(GAME, num_games=96, max_plies=300)
    is_cut = played.terminations == ONGOING
    assert is_cut.any()
    assert not is_cut.all()
    cut_values = np.where(is_cut, np.linspace(-0.8, 0.8, len(is_cut)), 0)
    return replace(played, cut_values_white=cut_values.astype(np.float32))


@pytest.fixture(scope="session")
def searched_shard(records, tmp_path_factory):
    """The same games with targets and surprises as a search writes them."""
    folder = tmp_path_factory.mktemp("searched") / "iter-000000" / "shard-0000"
    write_shard(folder, with_search_targets(GAME, records), {"game": "chess"})
    return folder


@pytest.fixture(scope="session")
def searched_window(searched_shard):
    return searched_window_of(searched_shard)


def searched_window_of(shard):
    return ReplayWindow.load(GAME, [shard], capacity=100_000, holdout_every=20, discount=0.99)


@pytest.fixture(scope="session")
def shard(records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("games") / "iter-000000" / "shard-0000"
    write_shard(folder, records, {"game": "chess"})
    return folder


@pytest.fixture(scope="session")
def window(shard):
    window = ReplayWindow.load(GAME, [shard], capacity=100_000, holdout_every=5)
    assert len(window.rows("holdout")) > 100
    return window


def last_plies(records, game, num_plies):
    """The last positions of one game, as a game of their own."""
    stop = records.game_offsets[game + 1]
    rows = np.arange(max(records.game_offsets[game], stop - num_plies), stop)
    parts = {name: getattr(records, name)[rows]
             for name in ("states", "actions", "values_stm", "surprises")}
    assert (records.target_weights[rows] == 1).all()
    return GameRecords(
        **parts,
        target_offsets=np.arange(len(rows) + 1),
        target_actions=records.target_actions[rows],
        target_weights=records.target_weights[rows],
        game_offsets=np.array([0, len(rows)]),
        outcomes_white=records.outcomes_white[game : game + 1],
        terminations=records.terminations[game : game + 1],
        cut_values_white=records.cut_values_white[game : game + 1],
        start_kinds=records.start_kinds[game : game + 1],
    )


@pytest.fixture(scope="session")
def endgames(records, tmp_path_factory):
    """A window over the last 8 positions of each of a few games, won, drawn and lost."""
    ended = records.terminations != ONGOING
    chosen = [k for outcome in (-1, 0, 1)
              for k in np.flatnonzero(ended & (records.outcomes_white == outcome))[:3]]
    assert len(chosen) == 9
    folder = tmp_path_factory.mktemp("endgames") / "shard"
    joined = concatenate([last_plies(records, game, 8) for game in chosen])
    write_shard(folder, joined, {"game": "chess"})
    return ReplayWindow.load(GAME, [folder], capacity=1000, holdout_every=10**9)


def state_of(trainer):
    """Everything a trainer carries on with: weights, running statistics, moments, counters."""
    state = {f"network.{name}": tensor.clone()
             for name, tensor in trainer.network.state_dict().items()}
    for group, settings in enumerate(trainer.optimizer.param_groups):
        for index, parameter in enumerate(settings["params"]):
            for name, tensor in trainer.optimizer.state[parameter].items():
                state[f"optimizer.{group}.{index}.{name}"] = tensor.clone()
    return state


def assert_same_trainers(one, other):
    state, expected = state_of(one), state_of(other)
    assert state.keys() == expected.keys()
    for name, tensor in state.items():
        assert tensor.dtype == expected[name].dtype, name
        assert torch.equal(tensor, expected[name]), name
    assert one.rng.bit_generator.state == other.rng.bit_generator.state
    for field in ("seed", "steps_done", "step_in_iteration", "settings"):
        assert getattr(one, field) == getattr(other, field), field


@pytest.fixture(scope="session", name="state_of")
def state_of_fixture():
    return state_of


@pytest.fixture(scope="session", name="assert_same_trainers")
def assert_same_trainers_fixture():
    return assert_same_trainers
