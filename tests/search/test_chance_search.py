"""Trees with chance nodes: against the plain reference, and against a game that is solved."""

import dataclasses

import numpy as np
import pytest
from chance_inputs import HashReturns, SolvedReturns, random_boards
from reference_search import ReferenceSearch
from search_inputs import keys, run
from tiny_2048 import Tiny2048

from chess_snn.errors import ConfigError
from chess_snn.games import get_game
from chess_snn.games.starts import random_legal_actions
from chess_snn.search import GrowingTree, SearchSettings, make_search, tree_bytes
from chess_snn.search.trees import NO_NODE, allocate_trees, visits_and_sums

GAME = get_game("2048")
TINY = Tiny2048(2, 3, target=6)
SOLVED = Tiny2048(2, 2, target=3)
KINDS = {
    "gumbel": SearchSettings(kind="gumbel", discount=0.9, q_scale=0.1),
    "puct": SearchSettings(kind="puct", discount=0.9, noise_share=0.0),
}


def tree_search(game, kind, simulations, num_games, evaluator=None, **changes):
    return make_search(
        game, evaluator or HashReturns(), dataclasses.replace(KINDS[kind], **changes),
        simulations=simulations, num_games=num_games,
    )


def positions(game, count):
    """Games of random moves, at different plies, none of them ended."""
    if game is TINY:
        return TINY.start(random_boards(TINY, count))
    batch = game.allocate(count)
    for ply in range(3 * count):
        actions = random_legal_actions(batch, keys(count), np.full(count, ply, np.int32))
        still = np.arange(count) * 3 <= ply
        chance = keys(count) + np.uint64(ply)
        game.step(batch, np.where(still, -1, actions).astype(np.int16), chance)
    return batch.take(np.flatnonzero(batch.num_legal))


def node_edges(trees, g, node):
    first = int(trees.first_edge[g, node])
    return range(first, first + int(trees.num_edges[g, node]))


def visits_below(trees, g, node=0):
    """Visits of every edge below a node, in the order of the tree."""
    edges = node_edges(trees, g, node)
    children = [int(trees.child[g, edge]) for edge in edges]
    return [
        (0, []) if child == NO_NODE
        else (int(trees.visits[g, child]), visits_below(trees, g, child))
        for child in children
    ]


def reference_visits(node):
    return [
        (n, reference_visits(node.children[j]) if j in node.children else [])
        for j, n in enumerate(node.visits)
    ]


@pytest.mark.parametrize("game", [GAME, TINY], ids=["2048", "tiny"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "simulations", [1, 2, 4, 16, pytest.param(200, marks=pytest.mark.slow)]
)
def test_trees_are_the_references(game, kind, simulations):
    batch = positions(game, 10)
    temperature = 1.0 if kind == "gumbel" else 0.0
    search = tree_search(game, kind, simulations, len(batch))
    result = run(search, batch, temperature)
    reference = ReferenceSearch(game, HashReturns(), KINDS[kind], simulations)
    for row in range(len(batch)):
        alone = batch.take(np.array([row]))
        root, chosen = reference.search(alone, keys(len(batch))[row], 7, temperature)
        report = search.inspect(row)
        assert visits_below(search._trees, row) == reference_visits(root)
        assert result.actions[row] == alone.legal_actions[0, chosen]
        q = [root.q(j) if n else np.nan for j, n in enumerate(root.visits)]
        np.testing.assert_allclose(report.q_stm, q, rtol=1e-4)
        target = result.policy_targets[row, : len(root.prior)]
        if kind == "gumbel":
            np.testing.assert_allclose(target, reference.improved_policy(root), atol=1e-4)
            value = reference.improved_value(root)
        else:
            np.testing.assert_allclose(target, np.array(root.visits) / simulations, atol=1e-6)
            value = (root.value + sum(root.sums)) / (1 + simulations)
        assert result.values_stm[row] == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", [
    pytest.param(None, id="knows_nothing", marks=pytest.mark.slow), pytest.param(0.1, id="noisy"),
])
def test_a_long_search_solves_a_small_game(kind, noise):
    """It plays an action within 2 % of the best, and its values approach the exact ones."""
    boards = random_boards(SOLVED, 16)
    exact = np.array([SOLVED.value(board) for board in boards])
    errors = {}
    for simulations in (300, 3000):
        search = tree_search(
            SOLVED, kind, simulations, len(boards), SolvedReturns(SOLVED, noise), discount=1.0
        )
        result = run(search, SOLVED.start(boards), temperature=0.0)
        errors[simulations] = (np.abs(result.values_stm - exact) / exact).mean()
    played = [
        SOLVED.action_value(board, int(action))
        for board, action in zip(boards, result.actions, strict=True)
    ]
    assert (played >= 0.98 * exact).all()
    assert errors[3000] < 0.06
    if noise is None:
        assert errors[3000] < errors[300] / 2


@pytest.mark.parametrize("kind", KINDS)
def test_rows_do_not_influence_each_other_and_keys_decide(kind):
    batch = positions(GAME, 24)
    all_keys = keys(len(batch))
    search = tree_search(GAME, kind, 24, len(batch), noise_share=0.25)
    whole = run(search, batch, chosen_keys=all_keys)
    for rows in ([0], [3, 9, 20], [9, 9], list(range(len(batch)))):
        part = run(search, batch.take(np.array(rows)), chosen_keys=all_keys[rows])
        for name in ("actions", "values_stm", "policy_targets", "surprises"):
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[rows], name)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_ten_times_as_high_change_nothing_but_the_values(kind):
    """Values count in the scale of their tree."""

    class Larger(HashReturns):
        def evaluate(self, planes, legal_actions, num_legal):
            answer = super().evaluate(planes, legal_actions, num_legal)
            return dataclasses.replace(answer, value_stm=8 * answer.value_stm)

    class LargerGame(Tiny2048):
        def step(self, *arguments, **options):
            super().step(*arguments, **options)
            arguments[0].reward *= 8

    batch = positions(TINY, 12)
    small = run(tree_search(TINY, kind, 50, 12), batch)
    large = run(tree_search(LargerGame(2, 3, target=6), kind, 50, 12, Larger()), batch)
    np.testing.assert_array_equal(large.actions, small.actions)
    np.testing.assert_allclose(large.policy_targets, small.policy_targets, rtol=1e-4)
    np.testing.assert_allclose(large.values_stm, 8 * small.values_stm, rtol=1e-4)


def test_where_all_actions_are_alike_noise_of_the_values_decides_little():
    class AlmostAlike(HashReturns):
        def evaluate(self, planes, legal_actions, num_legal):
            answer = super().evaluate(planes, legal_actions, num_legal)
            logits = np.where(np.isinf(answer.legal_logits), -np.inf, 0).astype(np.float32)
            values = 20 + 1e-4 * answer.value_stm
            return dataclasses.replace(answer, legal_logits=logits, value_stm=values)

    search = tree_search(TINY, "gumbel", 4, 1, AlmostAlike(), discount=1.0)
    batch = TINY.start([(1, 0, 0, 0, 0, 2)])
    target = run(search, batch, temperature=0.0).policy_targets[0, : batch.num_legal[0]]
    assert len(target) > 1
    np.testing.assert_allclose(target, 1 / len(target), rtol=0.01)


def test_the_network_is_not_asked_for_the_policy_of_chance():
    batch, evaluator = positions(GAME, 10), HashReturns()
    run(tree_search(GAME, "gumbel", 30, len(batch), evaluator), batch)
    afterstates = [count for is_afterstate, count in evaluator.questions if is_afterstate]
    decisions = [count for is_afterstate, count in evaluator.questions if not is_afterstate]
    assert len(afterstates) > len(batch)
    assert len(decisions) > len(batch)
    assert set(afterstates) == {0}
    assert set(decisions) <= {1, 2, 3, 4}


def test_as_many_simulations_as_actions_visit_every_afterstate_once():
    batch, evaluator = positions(GAME, 16), HashReturns()
    batch = batch.take(np.flatnonzero(batch.num_legal == 3))
    search = tree_search(GAME, "gumbel", 3, len(batch), evaluator)
    run(search, batch)
    assert all((search.inspect(row).visits == 1).all() for row in range(len(batch)))
    assert sum(is_afterstate for is_afterstate, _ in evaluator.questions) == 3 * len(batch)


@pytest.mark.parametrize("kind", KINDS)
def test_the_sums_and_the_kinds_of_a_tree_are_consistent(kind):
    batch = positions(TINY, 12)
    search = tree_search(TINY, kind, 300, len(batch))
    run(search, batch)
    trees = search._trees
    for g in range(len(batch)):
        assert trees.edges_used[g] <= trees.action.shape[1]
        for node in range(1, trees.nodes_used[g]):
            parent = trees.parent[g, node]
            edges = node_edges(trees, g, node)
            visits_below, sums_below = visits_and_sums(trees, g, slice(edges.start, edges.stop))
            assert trees.is_chance[g, node] == (1 - trees.is_chance[g, parent])
            assert trees.is_chance[g, node] == trees.state[g, node, 1]
            visits, total = trees.visits[g, node], trees.value_sum[g, node]
            below = sums_below.sum() + trees.value[g, node]
            if trees.is_chance[g, node]:
                expected = visits * trees.reward[g, node] + search._discount * below
                assert visits == 1 + visits_below.sum()
            else:
                expected = below
            assert total == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_events_are_visited_by_their_probabilities(kind):
    """Each at least the whole part of its share, as the highest averages method promises."""
    batch = positions(GAME, 8)
    search = tree_search(GAME, kind, 400, len(batch))
    run(search, batch)
    trees, rare = search._trees, 0
    for g in range(len(batch)):
        for node in np.flatnonzero(trees.is_chance[g, : trees.nodes_used[g]]):
            run_ = slice(node_edges(trees, g, node).start, node_edges(trees, g, node).stop)
            visits, shares = visits_and_sums(trees, g, run_)[0], trees.prior[g, run_]
            assert shares.sum() == pytest.approx(1, abs=1e-5)
            assert (visits >= np.floor(visits.sum() * shares - 1e-3)).all()
            rare += visits[trees.action[g, run_] % 2 == 1].sum()
            listed, count = GAME.legal_actions(trees.state[g, node][None])
            assert set(trees.action[g, run_].tolist()) == set(listed[0, : count[0]].tolist())
    assert rare > 0


def test_short_searches_prefer_no_square_for_new_tiles():
    batch = positions(GAME, 300)
    search = tree_search(GAME, "gumbel", 12, len(batch))
    run(search, batch)
    trees, first_squares = search._trees, np.zeros(16)
    for g in range(len(batch)):
        for node in np.flatnonzero(trees.is_chance[g, : trees.nodes_used[g]]):
            for edge in node_edges(trees, g, node):
                first_squares[trees.action[g, edge] // 2] += trees.child[g, edge] != NO_NODE
    halves = first_squares.reshape(2, 8).sum(1)
    assert 0.8 < halves[0] / halves[1] < 1.25


def test_an_event_is_no_ply():
    batch = positions(TINY, 6)
    batch.ply += 11
    search = tree_search(TINY, "puct", 60, len(batch))
    run(search, batch, temperature=0.0)
    trees, wave = search._trees, search._wave
    for g in range(len(batch)):
        node, moves = int(wave.leaves[g]), 0
        if not wave.is_new[g]:
            continue
        while node > 0:
            moves += trees.is_chance[g, node]
            node = int(trees.parent[g, node])
        assert wave.leaf.ply[g] == 11 + moves


def test_the_principal_variation_lists_moves_only():
    batch = positions(GAME, 10)
    search = tree_search(GAME, "gumbel", 200, len(batch))
    result = run(search, batch)
    lines = [search.inspect(row).principal_variation for row in range(len(batch))]
    assert all(0 <= action < 4 for line in lines for action in line)
    assert [line[0] for line in lines] == result.actions.tolist()
    assert max(map(len, lines)) > 1


@pytest.mark.parametrize("simulations", [1, 7, 64])
def test_the_memory_of_trees_is_what_they_are_said_to_take(simulations):
    for game in (GAME, TINY, get_game("chess")):
        trees = allocate_trees(game.spec, simulations, 3)
        allocated = sum(array.nbytes for array in trees)
        assert 0 <= 3 * tree_bytes(game.spec, simulations) - allocated <= 3 * 8


def test_wins_are_not_looked_for_in_a_game_without_wins():
    batch = positions(TINY, 8)
    with_wins, without = (
        run(tree_search(TINY, "gumbel", 20, 8, finds_wins=finds_wins), batch)
        for finds_wins in (True, False)
    )
    np.testing.assert_array_equal(with_wins.policy_targets, without.policy_targets)


def test_a_growing_tree_refuses_a_game_with_chance():
    with pytest.raises(ConfigError):
        GrowingTree(GAME, HashReturns(), KINDS["puct"], memory_mib=2, most_leaves=4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_networks_own_value_can_be_reported(kind):
    batch = positions(GAME, 12)
    asked = HashReturns().evaluate(GAME.planes(batch.state), batch.legal_actions, batch.num_legal)
    searched = run(tree_search(GAME, kind, 16, len(batch)), batch)
    reported = run(tree_search(GAME, kind, 16, len(batch), root_value="network"), batch)
    np.testing.assert_array_equal(reported.values_stm, asked.value_stm)
    assert (searched.values_stm != asked.value_stm).any()
    np.testing.assert_array_equal(reported.actions, searched.actions)
    np.testing.assert_array_equal(reported.policy_targets, searched.policy_targets)


def test_a_match_of_one_player_looks_at_as_many_actions_as_self_play():
    batch = positions(GAME, 8)
    found = []
    for in_play in (True, False):
        search = make_search(
            GAME, HashReturns(), KINDS["gumbel"], simulations=4, num_games=len(batch),
            in_play=in_play,
        )
        run(search, batch, temperature=0.0)
        found.append([list(search.inspect(row).visits) for row in range(len(batch))])
    assert found[0] == found[1]
    assert all(min(visits) > 0 for visits in found[0]), "each of at most four actions"
