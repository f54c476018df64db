"""A tree that grows in waves and follows its game: held against the search of fixed size."""

import chess
import numpy as np
import pytest
from search_inputs import HashEvaluator, UninformedEvaluator, chess_positions, position

from chess_snn.errors import ConfigError
from chess_snn.games import get_game
from chess_snn.games.chess import move_of_action
from chess_snn.search import GrowingTree, SearchSettings, make_search
from chess_snn.search.trees import visits_and_sums

GAME = get_game("chess")
SETTINGS = SearchSettings(kind="puct", noise_share=0.0)
ROUNDS = SearchSettings(kind="gumbel")
BELOW = SearchSettings(kind="gumbel", below_root="puct")
ALL = pytest.mark.parametrize(
    "settings", [SETTINGS, ROUNDS, BELOW], ids=["puct", "rounds", "puct below"]
)
MATE_IN_TWO = "7k/8/5K2/8/8/8/8/6R1 w - - 0 1"
LOST_IN_TWO = "7k/8/6K1/8/8/8/8/R7 b - - 0 1"


def growing(batch, evaluator=None, settings=SETTINGS, memory_mib=2, most_leaves=8, **options):
    tree = GrowingTree(
        GAME, evaluator or HashEvaluator(), settings, memory_mib=memory_mib,
        most_leaves=most_leaves,
    )
    tree.plant(batch, **options)
    return tree


def grow_to(tree, simulations, leaves):
    while tree.visits < simulations:
        assert tree.grow(min(leaves, simulations - tree.visits)) > 0
    assert tree.visits == simulations


def contents(tree, node=0, path=(), found=None):
    """(visits, sum of values, prior) of every edge, by the actions that lead there."""
    found = {} if found is None else found
    trees = tree._trees
    first = trees.first_edge[0, node]
    for edge in range(first, first + trees.num_edges[0, node]):
        below = (*path, int(trees.action[0, edge]))
        visits, sums = visits_and_sums(trees, 0, slice(edge, edge + 1))
        found[below] = (int(visits[0]), float(sums[0]), float(trees.prior[0, edge]))
        if (child := trees.child[0, edge]) >= 0:
            assert trees.parent[0, child] == node
            assert trees.parent_edge[0, child] == edge
            contents(tree, child, below, found)
    return found


def check_sums(tree):
    """Every value in the tree follows from those below it, so no virtual loss is left."""
    trees = tree._trees
    seen_edges = 0
    for node in range(trees.nodes_used[0]):
        count = trees.num_edges[0, node]
        assert trees.first_edge[0, node] == seen_edges or count == 0
        seen_edges += count
        run = slice(trees.first_edge[0, node], trees.first_edge[0, node] + count)
        if node == 0:
            continue
        visits, total = trees.visits[0, node], trees.value_sum[0, node]
        if count == 0:
            assert total == pytest.approx(visits * trees.reward[0, node])
            continue
        visits_below, sums_below = visits_and_sums(trees, 0, run)
        repeats = visits - visits_below.sum()
        assert repeats == 1
        below = trees.value[0, node] + sums_below.sum()
        assert total == pytest.approx(-SETTINGS.discount * below, abs=1e-3)
    assert seen_edges == trees.edges_used[0]


@pytest.mark.parametrize("simulations", [1, 60, 300])
def test_one_leaf_a_wave_is_the_puct_search_to_the_bit(simulations):
    search = make_search(GAME, HashEvaluator(), SETTINGS, simulations=simulations, num_games=1)
    for row in range(3):
        batch = chess_positions(30).take(np.array([9 * row]))
        search.run(batch, np.zeros(1, np.uint64), np.zeros(1, np.int32), np.zeros(1, np.float32))
        report = search.inspect(0)
        tree = growing(batch)
        grow_to(tree, simulations, leaves=1)
        lines = tree.lines(300)
        assert len(lines) == len(report.actions)
        for line in lines:
            column = list(report.actions).index(line.actions[0])
            assert line.visits == report.visits[column]
            assert line.prior == report.priors[column]
            if line.visits:
                assert np.float32(line.value_stm) == report.q_stm[column]
        if lines[0].win_plies == 0:
            assert lines[0].visits == report.visits.max()


@ALL
@pytest.mark.parametrize("leaves", [3, 8])
def test_waves_leave_no_virtual_loss_behind(leaves, settings):
    for row in range(4):
        tree = growing(chess_positions(30).take(np.array([7 * row])), settings=settings)
        grow_to(tree, 400, leaves)
        check_sums(tree)


def test_a_wave_asks_once_about_several_leaves():
    evaluator = HashEvaluator()
    tree = growing(position(), evaluator)
    grow_to(tree, 400, 8)
    assert len(evaluator.calls) < 400 / 6
    assert max(evaluator.calls) == 8


@ALL
def test_a_wave_with_one_way_to_go_ends_where_it_meets_itself(settings):
    tree = growing(position("8/8/8/8/8/5k2/7p/7K w - - 0 1"), settings=settings, most_leaves=8)
    assert tree.grow(8) in (1, 2)
    grow_to(tree, 30, 8)
    check_sums(tree)


@ALL
def test_the_subtree_of_a_played_action_is_kept_as_it_was(settings):
    for row in range(2):
        batch = chess_positions(40).take(np.array([5 * row]))
        tree = growing(batch, settings=settings)
        grow_to(tree, 500, 8)
        for _ in range(3):
            before = contents(tree)
            action = tree.lines(1)[0].actions[0]
            visits = before[action,][0]
            if not tree.advance(action):
                assert visits <= 1 or not any(len(path) > 1 for path in before if path[0] == action)
                break
            after = contents(tree)
            below = {path[1:]: v for path, v in before.items() if path[0] == action and path[1:]}
            assert after == below
            assert tree.visits == visits - 1
            check_sums(tree)
            grow_to(tree, tree.visits + 100, 8)
            check_sums(tree)


def test_a_tree_that_followed_the_game_knows_its_repetitions():
    fen = "7k/8/8/8/8/1r6/8/K6N w - - 0 1"
    batch = position(fen)
    tree = growing(batch, UninformedEvaluator())
    for move in ["h1g3", "b3c3", "g3h1", "c3b3", "h1g3", "b3c3", "g3h1"]:
        action = GAME.parse_action(batch.state[0], move)
        while child_of(tree, action) is None:
            tree.grow(8)
        assert tree.advance(action)
        GAME.step(batch, np.array([action], np.int16))
    np.testing.assert_array_equal(tree._root.history, batch.history)
    drawn = GAME.parse_action(batch.state[0], "c3b3")  # the position for the third time
    while child_of(tree, drawn) is None:
        tree.grow(8)
    assert tree._trees.num_edges[0, child_of(tree, drawn)] == 0


def child_of(tree, action):
    trees = tree._trees
    edge = int(np.flatnonzero(trees.action[0, : trees.num_edges[0, 0]] == action)[0])
    child = int(trees.child[0, edge])
    return None if child < 0 else child


def test_what_was_never_tried_cannot_be_kept():
    tree = growing(position())
    action = GAME.parse_action(position().state[0], "e2e4")
    assert not tree.advance(action)
    assert not tree.is_planted
    tree.plant(position())
    assert not tree.advance(-1)
    with pytest.raises(ValueError, match="planted"):
        tree.grow(1)


def solved(tree, node=0):
    """Plies to the end as proved by the tree, recursively: + the side to move wins, - loses."""
    trees = tree._trees
    count = trees.num_edges[0, node]
    if count == 0:
        return -1 if trees.reward[0, node] > 0 else None  # counts from 1, so that mate has a sign
    first = trees.first_edge[0, node]
    children = [int(trees.child[0, edge]) for edge in range(first, first + count)]
    results = [None if child < 0 else solved(tree, child) for child in children]
    if wins := [1 - result for result in results if result is not None and result < 0]:
        return min(wins)
    if all(result is not None and result > 0 for result in results):
        return -max(1 + result for result in results)
    return None


@ALL
@pytest.mark.parametrize(("fen", "plies"), [
    ("6k1/5ppp/8/8/8/8/8/R3K3 w Q - 0 1", 1),
    (MATE_IN_TWO, 3),
    (LOST_IN_TWO, -2),
])
def test_forced_mates_are_proved_with_their_length(fen, plies, settings):
    tree = growing(position(fen), UninformedEvaluator(), settings, memory_mib=8)
    grow_to(tree, 4000, 8)
    best = tree.lines(1)[0]
    assert best.win_plies == plies
    assert len(best.actions) == abs(plies)
    board = chess.Board(fen)
    for action in best.actions:
        board.push(move_of_action(board, action))
    assert board.is_checkmate()


def test_proofs_are_those_of_a_plain_recursion():
    fens = [MATE_IN_TWO, LOST_IN_TWO, "3k4/3P4/3K4/8/8/8/8/7R w - - 0 1",
            "r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4"]
    for fen in fens:
        tree = growing(position(fen), memory_mib=4)
        for _ in range(5):
            grow_to(tree, tree.visits + 300, 8)
            tree.lines(1)
            for node in range(tree._trees.nodes_used[0]):
                assert tree._proofs[node] == (solved(tree, node) or 0)


def test_lines_are_ranked_and_bounded():
    tree = growing(position())
    grow_to(tree, 200, 4)
    lines = tree.lines(5)
    assert len(lines) == 5
    assert [line.visits for line in lines] == sorted((line.visits for line in lines), reverse=True)
    assert max(len(line.actions) for line in lines) <= tree.height


@ALL
def test_only_the_given_actions_are_tried(settings):
    start = position()
    chosen = np.array([GAME.parse_action(start.state[0], move) for move in ("a2a3", "h2h4")])
    tree = growing(start, settings=settings, actions=chosen.astype(np.int16))
    grow_to(tree, 50, 4)
    assert {line.actions[0] for line in tree.lines(10)} == set(chosen)
    assert start.num_legal[0] == 20


def test_a_full_tree_stands_still():
    tree = growing(position(), memory_mib=1)
    while tree.grow(8):
        pass
    assert tree.is_full
    visits = tree.visits
    assert visits > 500
    assert tree.grow(8) == 0
    assert tree.visits == visits
    check_sums(tree)
    assert tree.advance(tree.lines(1)[0].actions[0])
    assert not tree.is_full
    assert tree.grow(8) > 0


@pytest.mark.slow
def test_no_more_simulations_change_what_is_settled():
    settings = SearchSettings(kind="puct", exploration=0.1)
    batch, total, num_early = chess_positions(12, seed=5), 120, 0
    for row in range(0, len(batch), 3):
        tree, settled_with = growing(batch.take(np.array([row])), settings=settings), set()
        while tree.visits < total:
            grow_to(tree, tree.visits + 1, leaves=1)
            if tree.is_settled(total - tree.visits):
                settled_with.add(tree.lines(1)[0].actions[0])
                num_early += tree.visits < 0.9 * total
        assert settled_with <= {tree.lines(1)[0].actions[0]}
        first, second, *_ = (line.visits for line in tree.lines())
        if first > second:
            assert tree.is_settled(first - second - 1)
        assert not tree.is_settled(first - second)
    assert num_early > 0


def test_a_lead_of_a_move_that_loses_settles_nothing():
    batch = position("8/8/7Q/8/8/8/5q1K/5k2 w - - 0 1")
    loses = GAME.parse_action(batch.state[0], "h2h1")

    class Fond(UninformedEvaluator):
        def evaluate(self, planes, legal_actions, num_legal):
            answer = super().evaluate(planes, legal_actions, num_legal)
            answer.legal_logits[legal_actions == loses] = 5.0
            return answer

    tree = growing(batch, Fond(), SearchSettings(kind="puct", exploration=100.0))
    grow_to(tree, 60, leaves=1)
    best, other = tree.lines()
    assert other.visits > best.visits + 20
    assert other.actions[0] == loses
    assert not tree.is_settled(1)


def test_a_tree_that_halves_is_never_settled():
    tree = growing(position(), settings=ROUNDS)
    grow_to(tree, 50, leaves=8)
    assert not tree.is_settled(0)


@pytest.mark.parametrize(("memory_mib", "most"), [(1, 400), (2, 801)])
def test_a_tree_is_not_full_from_the_start(memory_mib, most):
    """With as many leaves a wave as the memory allows; with more it is refused."""
    tree = growing(position(), memory_mib=memory_mib, most_leaves=most)
    assert not tree.is_full
    assert tree.grow(1) == 1
    refusal = f"{memory_mib} MiB .*{memory_mib + 1} MiB"
    with pytest.raises(ConfigError, match=refusal):
        growing(position(), memory_mib=memory_mib, most_leaves=most + 1)


@pytest.mark.parametrize("leaves", [1, 8])
def test_rounds_halve_the_actions_that_take_part(leaves):
    tree = growing(chess_positions(30).take(np.array([14])), settings=ROUNDS)
    grow_to(tree, 16, leaves)
    assert root_visits(tree)[:5] == [6, 6, 2, 2, 0]
    grow_to(tree, 32, leaves)
    assert sum(root_visits(tree)[:8]) == 32


def test_the_second_round_begins_with_what_the_first_found_best():
    """All values are equal, so it takes the same actions again."""
    tree = growing(chess_positions(30).take(np.array([14])), UninformedEvaluator(), ROUNDS)
    grow_to(tree, 32, 1)
    assert root_visits(tree)[:5] == [12, 12, 4, 4, 0]


def test_of_the_actions_visited_most_the_best_value_is_played():
    rivals = 0
    for row in range(8):
        tree = growing(chess_positions(30).take(np.array([3 * row])), settings=ROUNDS)
        grow_to(tree, 300, 4)
        lines = tree.lines()
        most = max(line.visits for line in lines)
        often = [line for line in lines if 2 * line.visits >= most and line.win_plies == 0]
        if lines[0].win_plies == 0:
            assert lines[0].value_stm == max(line.value_stm for line in often)
            rivals += len(often) - 1
    assert rivals


def root_visits(tree):
    visits, _ = visits_and_sums(tree._trees, 0, slice(int(tree._trees.num_edges[0, 0])))
    return sorted(visits.tolist(), reverse=True)


def test_settings_out_of_range():
    for settings in ({"memory_mib": 0}, {"most_leaves": 0}):
        with pytest.raises(ConfigError):
            growing(position(), **settings)
