"""Tree searches against a plain Python reference, and what must hold of any tree."""

import dataclasses

import chess
import numpy as np
import pytest
from reference_search import Node, ReferenceSearch
from search_inputs import HashEvaluator, UninformedEvaluator, chess_positions, keys, position, run

from chess_snn.errors import ConfigError
from chess_snn.games import get_game
from chess_snn.search import PolicySearch, SearchSettings, make_search
from chess_snn.search.descent import RULE_CHOOSES, descend
from chess_snn.search.gumbel import Candidates, conclude, halving_table
from chess_snn.search.puct import draw_gamma
from chess_snn.search.trees import NO_NODE, allocate_trees

GAME = get_game("chess")
QUIET_PUCT = SearchSettings(kind="puct", noise_share=0.0)
GUMBEL = SearchSettings(kind="gumbel")
BELOW = SearchSettings(kind="gumbel", below_root="puct")
KINDS = {"gumbel": GUMBEL, "puct": QUIET_PUCT, "puct below": BELOW}


def tree_search(settings, simulations, num_games, evaluator=None):
    return make_search(
        GAME, evaluator or HashEvaluator(), settings, simulations=simulations, num_games=num_games
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("simulations", [1, 2, 16, 50, 200])
def test_trees_are_the_references(kind, simulations):
    settings = KINDS[kind]
    batch = chess_positions(24 if simulations < 100 else 6, seed=simulations)
    temperature = 0.0 if kind == "puct" else 1.0
    search = tree_search(settings, simulations, len(batch))
    result = run(search, batch, temperature)
    reference = ReferenceSearch(GAME, HashEvaluator(), settings, simulations)
    for row in range(len(batch)):
        alone = batch.take(np.array([row]))
        root, chosen = reference.search(alone, keys(len(batch))[row], 7, temperature)
        report = search.inspect(row)
        assert list(report.visits) == root.visits
        assert result.actions[row] == alone.legal_actions[0, chosen]
        np.testing.assert_allclose(report.priors, root.prior, rtol=1e-5)
        q = [root.q(j) if n else np.nan for j, n in enumerate(root.visits)]
        np.testing.assert_allclose(report.q_stm, q, atol=1e-5)
        count = len(root.prior)
        target = result.policy_targets[row, :count]
        if kind != "puct":
            np.testing.assert_allclose(target, reference.improved_policy(root), atol=1e-5)
            assert result.values_stm[row] == pytest.approx(reference.improved_value(root), abs=1e-5)
        else:
            np.testing.assert_allclose(target, np.array(root.visits) / simulations, atol=1e-6)
            value = (root.value + sum(root.sums)) / (1 + simulations)
            assert result.values_stm[row] == pytest.approx(value, abs=1e-5)
        prior = np.array(root.network_prior)
        assert result.prior_entropies[row] == pytest.approx(-(prior * np.log(prior)).sum(), 1e-4)
        kept = target > 0
        divergence = (target[kept] * np.log(target[kept] / prior[kept])).sum()
        assert result.surprises[row] == pytest.approx(divergence, abs=1e-4)


def searched_root(value, edges):
    """One tree whose root has ``edges`` (prior, visits, mean value), and the same as a Node."""
    priors, visits, q = zip(*edges, strict=True)
    trees = allocate_trees(GAME.spec, 1 + len(edges), 1)
    run, children = slice(0, len(edges)), np.arange(1, 1 + len(edges))
    trees.value[0, 0], trees.first_edge[0, 0], trees.num_edges[0, 0] = value, 0, len(edges)
    trees.prior[0, run], trees.action[0, run] = priors, np.arange(len(edges))
    trees.child[0, run] = np.where(np.array(visits) > 0, children, NO_NODE)
    trees.visits[0, children], trees.value_sum[0, children] = visits, np.multiply(visits, q)
    trees.parent[0, children], trees.parent_edge[0, children] = 0, np.arange(len(edges))
    trees.num_edges[0, children] = 0
    trees.nodes_used[0], trees.edges_used[0] = 1 + np.count_nonzero(visits), len(edges)
    node = Node(None, value=value, prior=list(priors), visits=list(visits))
    node.sums = [n * mean for n, mean in zip(visits, q, strict=True)]
    return trees, node


def equal_candidates(trees, count):
    return Candidates(
        np.arange(count, dtype=np.int32)[None], np.zeros((1, count), np.float32),
        trees.visits[:, 1 : 1 + count].copy(),
    )


EXTREME_ROOTS = {
    "two_good_ones": (0.0, [(0.90, 16, -0.5), (0.06, 8, 0.60), (0.04, 8, 0.95)]),
    "only_reply_is_bad": (0.9, [(1.0, 1, -0.998)]),
    "all_visited_are_bad": (0.9, [(0.6, 1, -0.998), (0.4, 1, -0.9)]),
    "the_good_one_was_thought_impossible": (0.1, [(1.0, 3, -0.2), (1e-29, 1, 0.9)]),
    "one_unvisited": (-0.4, [(0.7, 5, -0.9), (0.2, 2, -0.8), (0.1, 0, 0.0)]),
    "none_visited": (0.3, [(0.7, 0, 0.0), (0.3, 0, 0.0)]),
}


@pytest.mark.parametrize("root", EXTREME_ROOTS)
@pytest.mark.parametrize("change", [{}, {"q_scale": 100.0}], ids=str)
def test_the_improved_policy_is_a_softmax_however_far_values_lie_apart(root, change):
    settings = dataclasses.replace(GUMBEL, **change)
    trees, node = searched_root(*EXTREME_ROOTS[root])
    reference = ReferenceSearch(GAME, HashEvaluator(), settings, 1)
    search = tree_search(settings, 1, 1)
    count = len(node.prior)
    action, value = np.empty(1, np.int16), np.empty(1, np.float32)
    target = np.empty((1, GAME.spec.max_legal), np.float32)
    conclude(trees, search._rule, equal_candidates(trees, count), action, value, target)
    np.testing.assert_allclose(target[0, :count], reference.improved_policy(node), atol=1e-4)
    assert value[0] == pytest.approx(reference.improved_value(node), abs=1e-4)

    batch, leaf = GAME.allocate(1), GAME.allocate(1)
    row, leaves, is_new = np.zeros(1, np.int32), np.empty(1, np.int32), np.empty(1, np.uint8)
    descend(
        trees, search._rule, row, np.full(1, RULE_CHOOSES, np.int32), batch.history, batch.ply,
        GAME.spec.history_word, leaf.state, leaf.history, np.full(1, -1, np.int32), leaf.ply,
        leaf.termination, action, leaves, is_new,
    )
    assert trees.parent_edge[0, leaves[0]] == reference._most_behind(node)


@pytest.mark.parametrize("kind", KINDS)
def test_visits_add_up_and_targets_sum_to_one(kind):
    batch = chess_positions(40)
    search = tree_search(KINDS[kind], 33, len(batch))
    result = run(search, batch)
    np.testing.assert_allclose(result.policy_targets.sum(1), 1, rtol=1e-5)
    for row in range(len(batch)):
        report = search.inspect(row)
        assert report.visits.sum() == 33
        assert len(report.actions) == batch.num_legal[row]
        assert (result.policy_targets[row, batch.num_legal[row] :] == 0).all()
        assert result.actions[row] in report.actions
        assert report.principal_variation[0] == result.actions[row]
    assert (np.abs(result.values_stm) <= 1).all()


@pytest.mark.parametrize("settings", [GUMBEL, SearchSettings(kind="puct")], ids=["gumbel", "puct"])
def test_the_rows_of_a_batch_do_not_influence_each_other(settings):
    batch = chess_positions(30)
    all_keys = keys(len(batch))
    search = tree_search(settings, 24, len(batch))
    whole = run(search, batch, chosen_keys=all_keys)
    for rows in ([0], [3, 9, 27], [9, 9], list(range(12, 24))):
        part = run(search, batch.take(np.array(rows)), chosen_keys=all_keys[rows])
        for name in ("actions", "values_stm", "policy_targets", "surprises"):
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[rows], name)


def test_the_batch_is_left_alone():
    batch = chess_positions(20)
    before = batch.take(np.arange(len(batch)))
    run(tree_search(GUMBEL, 20, len(batch)), batch)
    for field in dataclasses.fields(batch):
        np.testing.assert_array_equal(getattr(batch, field.name), getattr(before, field.name))


@pytest.mark.parametrize(("kind", "calls"), [("puct", 17), ("gumbel", 2)])
def test_the_network_is_asked_once_for_each_new_position_that_has_not_ended(kind, calls):
    batch = chess_positions(40)
    batch = batch.take(np.flatnonzero(batch.num_legal >= 16))
    evaluator = HashEvaluator()
    run(tree_search(KINDS[kind], 16, len(batch), evaluator), batch)
    assert len(evaluator.calls) == calls
    assert 16 * len(batch) < evaluator.positions <= 17 * len(batch)


MATES_IN_ONE = (
    "6k1/5ppp/8/8/8/8/8/R3K3 w Q - 0 1",
    "r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4",
    "rnbqkbnr/pppp1ppp/8/4p3/6P1/5P2/PPPPP2P/RNBQKBNR b KQkq - 0 2",
)


def test_repetition_is_seen_along_the_tree_and_in_the_games_history():
    fen = "7k/8/8/8/8/1r6/8/K6N w - - 0 1"
    batch = position(fen, "h1g3 b3c3 g3h1 c3b3 h1g3 b3c3 g3h1")
    every_action = dataclasses.replace(GUMBEL, considered_actions=64)
    search = tree_search(every_action, 64, 1)
    run(search, batch, temperature=0.0)
    report = search.inspect(0)
    # c3b3 brings the first position about for the third time: a draw, however often it is tried.
    back = list(report.actions).index(GAME.parse_action(batch.state[0], "c3b3"))
    assert report.visits[back] > 0
    assert report.q_stm[back] == 0.0
    fresh = position(GAME.format_state(batch.state[0]))
    run(search, fresh, temperature=0.0)
    assert search.inspect(0).q_stm[back] != 0.0


def test_a_longer_mate_is_worth_less():
    fen = "7k/8/5K2/8/8/8/8/6Q1 w - - 0 1"
    batch = position(fen)
    settings = dataclasses.replace(GUMBEL, discount=0.9, considered_actions=64)
    search = tree_search(settings, 400, 1, UninformedEvaluator())
    run(search, batch, temperature=0.0)
    report = search.inspect(0)
    mate = list(report.actions).index(GAME.parse_action(batch.state[0], "g1g7"))
    assert report.q_stm[mate] == pytest.approx(1.0)
    others = np.delete(report.q_stm, mate)
    assert np.nanmax(others) <= 0.9**2 + 1e-6


@pytest.mark.parametrize("simulations", [1, 16])
def test_a_stopped_search_is_a_search_of_fewer_simulations(simulations):
    batch = chess_positions(6)
    whole, long = (tree_search(QUIET_PUCT, count, len(batch)) for count in (simulations, 40))
    answers = iter([False] * (simulations - 1) + [True])
    stopped = long.run(
        batch, keys(6), np.full(6, 7, np.int32), np.zeros(6, np.float32), lambda: next(answers)
    )
    wanted = run(whole, batch, temperature=0.0)
    np.testing.assert_array_equal(stopped.actions, wanted.actions)
    np.testing.assert_array_equal(stopped.policy_targets, wanted.policy_targets)
    np.testing.assert_array_equal(stopped.values_stm, wanted.values_stm)


def test_a_root_with_few_actions_keeps_nobody_waiting():
    """A round of one action is one simulation: 32 calls of the network for one position."""
    batch = position("7k/8/8/8/8/8/1q6/K7 w - - 0 1")
    assert batch.num_legal[0] == 1
    evaluator = HashEvaluator()
    search = tree_search(GUMBEL, 32, 1, evaluator)
    run(search, batch)
    assert search.inspect(0).visits.sum() == 11, "as many rounds as with 8 to 16 actions"
    assert len(evaluator.calls) == 1 + 11


@pytest.mark.parametrize(("considered", "simulations"), [
    (2, 4), (3, 9), (8, 64), (16, 16), (16, 48), (17, 289), (28, 800), (100, 800),
])
def test_only_roots_with_few_actions_have_fewer_simulations(considered, simulations):
    whole = halving_table(considered, simulations, waves_are_rounds=False)
    table = halving_table(considered, simulations, waves_are_rounds=True)
    assert (whole >= 0).all(), "in a game of points a wave is one simulation for all"
    half = considered // 2
    np.testing.assert_array_equal(table[half:], whole[half:])
    assert table.max() == whole[half:].max()
    cut = table < 0
    np.testing.assert_array_equal(table[~cut], whole[~cut])
    assert (np.diff(cut.astype(int), axis=1) >= 0).all(), "the last ones"


@pytest.mark.parametrize("rounds", [1, 4])
def test_a_stopped_gumbel_search_plays_one_of_its_most_visited_actions(rounds):
    batch = chess_positions(6)
    search = tree_search(GUMBEL, 40, len(batch))
    run(search, batch)  # whose nodes stay in memory
    answers = iter([False] * (rounds - 1) + [True])
    result = search.run(
        batch, keys(6), np.full(6, 7, np.int32), np.zeros(6, np.float32), lambda: next(answers)
    )
    np.testing.assert_allclose(result.policy_targets.sum(1), 1, atol=1e-5)
    for row in range(len(batch)):
        report = search.inspect(row)
        table = halving_table(GUMBEL.considered_actions, 40, waves_are_rounds=True)
        plan = table[min(batch.num_legal[row], 16)]
        plan = plan[plan >= 0]
        assert report.visits.sum() == np.count_nonzero(plan < np.unique(plan)[rounds])
        best = report.actions[report.visits == report.visits.max()]
        assert result.actions[row] in best


def test_noise_depends_on_key_and_ply_and_vanishes_at_temperature_0():
    batch = chess_positions(1).take(np.zeros(64, np.int64))
    for settings in (GUMBEL, SearchSettings(kind="puct")):
        search = tree_search(settings, 8, 64)
        warm = run(search, batch)
        assert len(set(warm.actions.tolist())) > 3
        assert (run(search, batch, ply=8).actions != warm.actions).any()
        cold = run(search, batch, temperature=0.0)
        assert len(set(cold.actions.tolist())) == 1
        np.testing.assert_array_equal(cold.policy_targets, cold.policy_targets[:1].repeat(64, 0))


def test_noise_does_not_count_in_entropy_and_surprise():
    batch = chess_positions(20)
    noisy = tree_search(SearchSettings(kind="puct"), 8, len(batch))
    quiet = tree_search(QUIET_PUCT, 8, len(batch))
    warm, cold = run(noisy, batch), run(quiet, batch)
    assert (warm.policy_targets != cold.policy_targets).any()
    np.testing.assert_array_equal(warm.prior_entropies, cold.prior_entropies)


def test_noise_is_drawn_from_gamma_variables():
    alpha = 0.3
    draws = np.array([draw_gamma(np.uint64(key), alpha) for key in keys(20_000)])
    assert draws.mean() == pytest.approx(alpha, abs=4 * np.sqrt(alpha / len(draws)))
    assert draws.var() == pytest.approx(alpha, rel=0.1)


def test_gumbel_with_one_simulation_plays_actions_as_often_as_the_network_says():
    """The action with the largest logit plus Gumbel noise is a draw from the policy."""
    batch = position("k7/p7/8/8/3K4/8/8/8 w - - 0 1").take(np.zeros(4000, np.int64))
    search = tree_search(GUMBEL, 1, 4000)
    result = run(search, batch)
    report = search.inspect(0)
    expected = report.priors * 4000
    counts = np.array([(result.actions == action).sum() for action in report.actions])
    chi_squared = ((counts - expected) ** 2 / expected).sum()
    assert chi_squared < 29.9  # 99.99 % at 7 degrees of freedom


def test_no_simulations_is_the_policy():
    search = make_search(GAME, HashEvaluator(), GUMBEL, simulations=0, num_games=4)
    assert isinstance(search, PolicySearch)
    policy = SearchSettings(kind="policy")
    search = make_search(GAME, HashEvaluator(), policy, simulations=50, num_games=4)
    assert isinstance(search, PolicySearch)


def test_what_does_not_fit_is_an_error_before_any_work():
    with pytest.raises(ConfigError, match=r"search\.memory_mib = 64"):
        tree_search(dataclasses.replace(GUMBEL, memory_mib=64), 800, 256)
    with pytest.raises(ConfigError, match="simulations"):
        make_search(GAME, HashEvaluator(), GUMBEL, simulations=-1, num_games=1)
    with pytest.raises(ConfigError, match="simulations"):
        make_search(GAME, HashEvaluator(), GUMBEL, simulations=10**6, num_games=1)
    with pytest.raises(ValueError, match=r"4 .* 5 "):
        run(tree_search(GUMBEL, 2, 4), chess_positions(200).take(np.arange(5)))


class CountingEvaluator(UninformedEvaluator):
    """Knows nothing, but how many positions it was asked about."""

    def __init__(self):
        self.positions = 0

    def evaluate(self, planes, legal_actions, num_legal):
        self.positions += len(planes)
        return super().evaluate(planes, legal_actions, num_legal)


@pytest.mark.parametrize(
    ("simulations", "looked_at"), [(1, 1), (4, 2), (16, 4), (40, 6), (64, 8), (196, 14)]
)
def test_a_match_looks_deeper_into_fewer_actions_than_self_play(simulations, looked_at):
    batch = position(chess.STARTING_FEN)
    searches = [
        make_search(
            GAME, HashEvaluator(), GUMBEL, simulations=simulations, num_games=1, in_play=in_play
        )
        for in_play in (True, False)
    ]
    for search in searches:
        run(search, batch, temperature=0.0)
    in_match, in_self_play = (np.count_nonzero(s.inspect(0).visits) for s in searches)
    assert in_match == looked_at
    legal = 20
    assert in_self_play == min(simulations, max(16, simulations // 8), legal)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fen", MATES_IN_ONE)
def test_a_win_at_once_is_taken_by_the_shortest_search(kind, fen):
    settings = dataclasses.replace(KINDS[kind], considered_actions=2)
    batch = position(fen)
    result = run(tree_search(settings, 2, 1), batch, temperature=1.0)
    board = chess.Board(fen)
    board.push_uci(GAME.format_action(batch.state[0], int(result.actions[0])))
    assert board.is_checkmate()
    assert result.values_stm[0] > 0.6
    column = list(batch.legal_actions[0]).index(result.actions[0])
    assert result.policy_targets[0, column] > 0.99
    # The network's first opinion of it is not forgotten: this was a surprise.
    assert result.surprises[0] > 1.0


def mates_whatever_comes(board):
    """Whether each reply, of which there is one at least, allows mate at once."""
    def allows_mate(reply):
        board.push(reply)
        mates = False
        for move in list(board.legal_moves):
            board.push(move)
            mates |= board.is_checkmate()
            board.pop()
        board.pop()
        return mates

    replies = list(board.legal_moves)
    return bool(replies) and all(map(allows_mate, replies))


@pytest.mark.parametrize("kind", KINDS)
def test_mate_in_two_needs_a_visit_of_each_reply_and_no_more(kind):
    fen = "7k/8/8/8/8/1R6/R7/6K1 w - - 0 1"
    batch = position(fen)
    asked = {}
    for finds_wins in (False, True):
        # Every action must be considered for a mate to be found for certain.
        settings = dataclasses.replace(
            KINDS[kind], finds_wins=finds_wins, considered_actions=64
        )
        evaluator = CountingEvaluator()
        search = tree_search(settings, 100, 1, evaluator)
        result = run(search, batch, temperature=0.0)
        asked[finds_wins] = evaluator.positions
        if finds_wins:
            board = chess.Board(fen)
            board.push_uci(GAME.format_action(batch.state[0], int(result.actions[0])))
            assert mates_whatever_comes(board)
            report = search.inspect(0)
            best = list(report.actions).index(result.actions[0])
            assert report.q_stm[best] > 0.8
    assert asked[True] < asked[False]


@pytest.mark.parametrize("kind", KINDS)
def test_without_wins_at_once_nothing_changes(kind):
    """Opening positions, where no leaf has a mate: the same trees to the bit."""
    results = []
    for finds_wins in (True, False):
        settings = dataclasses.replace(KINDS[kind], finds_wins=finds_wins)
        batch = GAME.allocate(8)
        results.append(run(tree_search(settings, 24, 8), batch))
    for field in dataclasses.fields(results[0]):
        one, other = (getattr(result, field.name) for result in results)
        np.testing.assert_array_equal(one, other, err_msg=field.name)
