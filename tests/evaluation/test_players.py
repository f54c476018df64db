import chess
import numpy as np
import pytest

from chess_snn.errors import ConfigError
from chess_snn.evaluation.named_players import check_player, is_player_name, make_player
from chess_snn.evaluation.players import SearchPlayer
from chess_snn.games import get_game
from chess_snn.nets.evaluator import Evaluation
from chess_snn.search.base import PolicySearch

CHECKMATED = "7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"


class FirstActionEvaluator:
    """Prefers the first listed action by a margin that temperature 1 does not overcome."""

    network_seconds = 0.0

    def evaluate(self, planes, legal_actions, num_legal):
        assert num_legal.all(), "ended rows must not reach the network"
        logits = np.where(np.arange(legal_actions.shape[1]) < num_legal[:, None], 0.0, -np.inf)
        logits[:, 0] = 50.0
        value, wdl = np.zeros(len(planes), np.float32), np.full((len(planes), 3), 1 / 3, np.float32)
        return Evaluation(logits.astype(np.float32), value, wdl)


@pytest.fixture(params=["random", "greedy", "minimax:2", "random~50", "minimax:2~50", "search"])
def player(request, chess_game):
    if request.param == "search":
        return SearchPlayer(PolicySearch(chess_game, FirstActionEvaluator()), "search", 20.0)
    return make_player(chess_game, request.param)


@pytest.fixture
def positions(batch_of, random_fens):
    fens = random_fens(8, seed=5)
    return batch_of([*fens[:3], CHECKMATED, *fens[3:]])


def streams(num_games):
    keys = np.random.default_rng(3).integers(0, 2**64, num_games, dtype=np.uint64)
    return keys, np.arange(num_games, dtype=np.int32)


def test_choices_are_legal_and_ended_games_get_none(player, positions):
    actions = player.choose(positions, *streams(len(positions)))
    assert actions.dtype == np.int16
    for row, action in enumerate(actions):
        legal = positions.legal_actions[row, : positions.num_legal[row]]
        assert action in legal if len(legal) else action == -1


def test_choosing_alone_equals_choosing_in_a_batch(player, positions):
    keys, plies = streams(len(positions))
    together = player.choose(positions, keys, plies)
    for row in range(len(positions)):
        alone = player.choose(positions.take(np.array([row])), keys[[row]], plies[[row]])
        assert alone[0] == together[row]


def test_choosing_leaves_the_batch_alone(player, positions):
    before = positions.take(np.arange(len(positions)))
    player.choose(positions, *streams(len(positions)))
    for name in ("state", "history", "legal_actions", "num_legal", "termination", "reward"):
        np.testing.assert_array_equal(getattr(positions, name), getattr(before, name))


def test_search_player_plays_at_its_temperature(chess_game, batch_of):
    batch = batch_of([chess.STARTING_FEN]).take(np.zeros(200, np.int64))
    keys, _ = streams(200)
    search = PolicySearch(chess_game, FirstActionEvaluator())
    distinct = {
        temperature: len(
            np.unique(
                SearchPlayer(search, "s", temperature).choose(batch, keys, np.zeros(200, np.int32))
            )
        )
        for temperature in (0.0, 1.0, 50.0)
    }
    assert distinct[0.0] == distinct[1.0] == 1
    assert distinct[50.0] > 10


@pytest.mark.parametrize("temperature", [-0.1, float("nan"), float("inf")])
def test_search_player_refuses_temperature(chess_game, temperature):
    search = PolicySearch(chess_game, FirstActionEvaluator())
    with pytest.raises(ConfigError, match="temperature"):
        SearchPlayer(search, "s", temperature)


def test_expectimax_by_name_plays_what_the_game_plans():
    game = get_game("2048")
    player = make_player(game, "expectimax:2")
    assert player.name == "expectimax:2"
    assert is_player_name("expectimax:2~25")
    batch = game.allocate(8)
    keys = np.arange(8, dtype=np.uint64)
    game.reset(batch, np.arange(8), game.initial_states(keys))
    actions = player.choose(batch, keys, batch.ply)
    np.testing.assert_array_equal(actions, game.planned_actions(batch.state, 2))
    assert batch.lists(actions).all()


@pytest.mark.parametrize(("game", "texts"), [
    ("chess", ("nobody", "", "random:1", "minimax:", ":2", "expectimax:2")),
    ("chess", ("minimax:0", "minimax:7", "minimax:-1", "minimax:2.0", "minimax:²", "minimax:2:2")),
    ("2048", ("expectimax:0", "expectimax:5", "expectimax:two")),
])
@pytest.mark.parametrize("refuse", [make_player, check_player])
def test_names_of_no_player_are_refused(refuse, game, texts):
    for text in texts:
        with pytest.raises(ConfigError):
            refuse(get_game(game), text)


def test_chess_plans_nothing(chess_game):
    with pytest.raises(ConfigError):
        chess_game.planned_actions(chess_game.initial_states(np.zeros(1, np.uint64)), 2)
