"""Trees that a match keeps from move to move: held against the tree that grows, and begun anew."""

import dataclasses

import numpy as np
import pytest
from search_inputs import HashEvaluator, UninformedEvaluator, chess_positions, position

from chess_snn.errors import ConfigError
from chess_snn.evaluation.matches import play_match
from chess_snn.evaluation.openings import random_openings
from chess_snn.evaluation.players import SearchPlayer
from chess_snn.games import get_game
from chess_snn.search import GrowingTree, SearchSettings, make_search

GAME = get_game("chess")
SETTINGS = SearchSettings(kind="puct", noise_share=0.0)
SIMULATIONS = 100


def match_search(settings=SETTINGS, simulations=SIMULATIONS, num_games=1, game=GAME):
    return make_search(
        game, HashEvaluator(), settings, simulations=simulations, num_games=num_games,
        in_play=True, keeps_trees=True,
    )


def run(search, batch, keys, ply):
    count = len(batch)
    return search.run(
        batch, keys, np.full(count, ply, np.int32), np.zeros(count, np.float32)
    )


def keys_of(count):
    return np.random.default_rng(5).integers(2**64, size=count, dtype=np.uint64)


def answered(batch, actions, rng):
    """``batch`` after ``actions`` and a random reply to each; and the replies."""
    batch = batch.take(np.arange(len(batch)))
    GAME.step(batch, actions)
    slots = rng.integers(np.maximum(batch.num_legal, 1))
    replies = batch.legal_actions[np.arange(len(batch)), slots]
    replies = np.where(batch.num_legal > 0, replies, -1).astype(np.int16)
    GAME.step(batch, replies)
    return batch, replies


def same(report, other):
    np.testing.assert_array_equal(report.visits, other.visits)
    np.testing.assert_array_equal(report.priors, other.priors)
    np.testing.assert_array_equal(report.q_stm, other.q_stm)


def test_a_kept_tree_is_the_growing_tree_that_followed_the_game():
    rng, num_kept, positions = np.random.default_rng(1), 0, chess_positions(40)
    for row in range(8):
        batch = positions.take(np.array([4 * row]))
        tree = GrowingTree(GAME, HashEvaluator(), SETTINGS, memory_mib=4, most_leaves=1)
        tree.plant(batch)
        search = match_search()
        for ply in range(0, 12, 2):
            for _ in range(SIMULATIONS):
                assert tree.grow(1) == 1
            result = run(search, batch, keys_of(1), ply)
            report = search.inspect(0)
            assert len(report.actions) == batch.num_legal[0]
            lines = {line.actions[0]: line for line in tree.lines()}
            if len(lines) < len(report.actions):  # where a win was found, nothing else was kept
                assert tree.lines(1)[0].win_plies == 1
                break
            for action, visits, prior, q in zip(
                report.actions, report.visits, report.priors, report.q_stm, strict=True
            ):
                line = lines[int(action)]
                assert (line.visits, line.prior) == (visits, prior)
                assert visits == 0 or np.float32(line.value_stm) == q
            action = int(result.actions[0])
            batch, replies = answered(batch, result.actions, rng)
            if not batch.num_legal[0]:
                break
            if tree.advance(action) and tree.advance(int(replies[0])):
                num_kept += tree.visits > 0
            else:
                tree.plant(batch)
    assert num_kept > 3


@pytest.mark.slow
def test_what_is_kept_depends_on_no_other_game():
    rng, count = np.random.default_rng(2), 20
    batch, keys = chess_positions(count), keys_of(count)[: len(chess_positions(count))]
    search = match_search(num_games=len(batch))
    alone = [match_search() for _ in keys]
    games = np.arange(len(batch))
    more = 0
    for ply in range(0, 16, 2):
        result = run(search, batch, keys[games], ply)
        for row, game in enumerate(games):
            each = run(alone[game], batch.take(np.array([row])), keys[[game]], ply)
            assert each.actions[0] == result.actions[row]
            assert each.values_stm[0] == result.values_stm[row]
            same(search.inspect(row), alone[game].inspect(0))
            more += search.inspect(row).visits.sum() > SIMULATIONS
        batch, _ = answered(batch, result.actions, rng)
        goes_on = np.flatnonzero((batch.num_legal > 0) & (rng.random(len(batch)) < 0.9))
        batch, games = batch.take(goes_on), games[goes_on]
    assert len(games) < count
    assert more > 10


@pytest.mark.parametrize("change", ["ply", "key", "position", "order"])
def test_another_game_begins_anew(change):
    rng, batch = np.random.default_rng(3), chess_positions(30).take(np.arange(12))
    keys, ply = keys_of(12), 2
    search = match_search(num_games=12)
    result = run(search, batch, keys, 0)
    batch, _ = answered(batch, result.actions, rng)
    if change == "ply":
        ply = 3
    elif change == "key":
        keys = keys + np.uint64(1)
    elif change == "position":
        batch, _ = answered(batch, batch.legal_actions[:, 0].copy(), rng)
    else:
        batch, keys = batch.take(np.arange(12)[::-1]), keys[::-1].copy()
    open_rows = np.flatnonzero(batch.num_legal)
    batch, keys = batch.take(open_rows), keys[open_rows]
    run(search, batch, keys, ply)
    fresh = match_search(num_games=12)
    run(fresh, batch, keys, ply)
    for row in range(len(batch)):
        same(search.inspect(row), fresh.inspect(row))


def test_a_win_at_once_is_chosen_among_all_actions():
    fen = "7k/8/5K2/8/8/8/8/6R1 w - - 0 1"
    search = match_search()
    run(search, position(fen), keys_of(1), 0)
    batch = position(fen, "f6f7 h8h7")  # in the tree, the mate that follows is all there is
    result = run(search, batch, keys_of(1), 2)
    assert GAME.format_action(batch.state[0], int(result.actions[0])) == "g1h1"
    assert len(search.inspect(0).actions) == batch.num_legal[0] > 1
    column = list(batch.legal_actions[0]).index(result.actions[0])
    assert result.policy_targets[0, column] > 0.9


class CertainEvaluator(UninformedEvaluator):
    """Sure of the last legal action, so that a tree is one line, of pawn moves at first."""

    def evaluate(self, planes, legal_actions, num_legal):
        answer = super().evaluate(planes, legal_actions, num_legal)
        answer.legal_logits[np.arange(len(planes)), num_legal - 1] += 100.0
        return answer


def test_a_tree_with_no_room_for_another_search_begins_anew():
    batch = position()
    search = make_search(
        GAME, CertainEvaluator(), SETTINGS, simulations=4, num_games=1, in_play=True,
        keeps_trees=True,
    )
    visits = []
    for ply in range(0, 12, 2):
        run(search, batch, keys_of(1), ply)
        visits.append(search.inspect(0).visits.sum())
        for _ in range(2):
            GAME.step(batch, batch.legal_actions[:, batch.num_legal[0] - 1].copy())
    # Two of the line's nodes are behind the game after each turn, and 13 fit.
    assert visits == [4, 6, 8, 10, 12, 4]


class Watching(SearchPlayer):
    """Notes how many visits the roots of its trees have."""

    def __init__(self, search, name):
        super().__init__(search, name)
        self.search, self.visits = search, []

    def choose(self, batch, keys, plies):
        actions = super().choose(batch, keys, plies)
        rows = range(np.count_nonzero(batch.num_legal))
        self.visits += [int(self.search.inspect(row).visits.sum()) for row in rows]
        return actions


def test_a_match_keeps_its_trees():
    player, opponent = (
        Watching(match_search(simulations=30, num_games=16), name) for name in ("one", "other")
    )
    play_match(GAME, player, opponent, random_openings(GAME, 8, 6, seed=1), seed=1, max_plies=60)
    assert min(player.visits) == 30
    assert np.mean(np.array(player.visits) > 30) > 0.2


@pytest.mark.parametrize("search", [
    match_search(dataclasses.replace(SETTINGS, keeps_trees=False)),
    match_search(SearchSettings(kind="gumbel")),
    match_search(game=get_game("2048")),
    make_search(GAME, HashEvaluator(), SETTINGS, simulations=SIMULATIONS, num_games=1),
], ids=["not wanted", "gumbel", "2048", "self-play"])
def test_other_searches_keep_none(search):
    game = get_game("2048") if search._game.spec.name == "2048" else GAME
    batch = game.allocate(1)
    game.reset(batch, np.zeros(1, np.int64), game.initial_states(np.zeros(1, np.uint64)))
    for ply in (0, 2):
        run(search, batch, keys_of(1), ply)
        assert search.inspect(0).visits.sum() == SIMULATIONS
    assert search._trees.state.shape[1] == SIMULATIONS + 1


def test_trees_too_large_to_keep_are_refused():
    fits = dataclasses.replace(SETTINGS, memory_mib=200, keeps_trees=False)
    match_search(fits, simulations=10_000, num_games=4)
    with pytest.raises(ConfigError, match="memory_mib"):
        match_search(
            dataclasses.replace(fits, keeps_trees=True), simulations=10_000, num_games=4
        )
