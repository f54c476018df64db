"""Played games against python-chess and against themselves."""

import itertools
import threading
import time
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import chess
import numpy as np
import pytest
from material_search import PAWNS_FOR_CERTAINTY, MaterialSearch

from chess_snn.data import concatenate
from chess_snn.data.records import START_KINDS
from chess_snn.errors import ConfigError
from chess_snn.games import ONGOING, get_game
from chess_snn.nets import build_network, make_evaluator, net_config
from chess_snn.search import PolicySearch
from chess_snn.self_play import SelfPlaySettings, play_games

GAME = get_game("chess")
NUM_GAMES = 32
SEED = 7
CLAIMED_AT_ONCE = {"fifty_moves", "threefold_repetition"}
"""Draws that python-chess leaves to a player's claim, and the library does not."""

ORDINARY_ONLY = {"practice_share_first": 0.0, "restart_share_first": 0.0}


def truncated(max_plies, **changes):
    """Settings with that ply limit at the start of the campaign."""
    return SelfPlaySettings(max_plies_first=max_plies, **{"concurrent_games": 9} | changes)


ANY_WAY = truncated(300, temperature_first=2.0, **ORDINARY_ONLY)
GREEDY = truncated(300, temperature_first=0.0, temperature_last=0.0, **ORDINARY_ONLY)
FROM_START = truncated(20, random_start_plies=0, **ORDINARY_ONLY)
PRACTICE = truncated(80, practice_share_first=1.0, restart_share_first=0.0)
SHORT = truncated(40, concurrent_games=8)
OF_ALL_KINDS = truncated(30, practice_share_first=0.3, restart_share_first=0.4)
EARLIER = [
    "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3",
    "4k3/8/8/8/8/8/4P3/4K2R w K - 100 90",  # over by its clock
    "8/5k2/8/8/3R4/8/2K5/8 b - - 20 70",
]
PIECE_VALUES = {
    chess.PAWN: 1, chess.KNIGHT: 3, chess.BISHOP: 3, chess.ROOK: 5, chess.QUEEN: 9, chess.KING: 0,
}


@pytest.fixture(scope="module")
def evaluator():
    config = net_config("tiny", blocks=1, channels=8, value_channels=2, value_hidden=8)
    network = build_network(GAME.spec, config, seed=0)
    with make_evaluator(network, precision="fp32") as evaluator:
        yield evaluator


@pytest.fixture(scope="module")
def search(evaluator):
    return PolicySearch(GAME, evaluator)


@pytest.fixture(scope="module")
def played(search):
    """Records and statistics of NUM_GAMES games, by settings; each set is played once."""
    done = {}

    def play(settings):
        if settings not in done:
            done[settings] = play_games(GAME, [search], settings, num_games=NUM_GAMES, seed=SEED)
        return done[settings]

    return play


@pytest.fixture(scope="module")
def together():
    """Records and statistics of 30 games of all kinds, played by one group in one call."""
    return play_of_all_kinds()


def play_of_all_kinds(groups=1, settings=None, **changes):
    return play_games(
        GAME, [MaterialSearch(GAME)] * groups, settings or OF_ALL_KINDS,
        **{"num_games": 30, "seed": SEED, "restarts": earlier_rows()} | changes,
    )


def concurrent(settings, count):
    return replace(settings, concurrent_games=count)


def earlier_rows():
    return np.stack([GAME.parse_state(fen)[: GAME.spec.record_words] for fen in EARLIER])


def positions_of(records, game):
    return range(*records.game_offsets[game : game + 2])


def one_game(records, game):
    """Every column of one game, to compare with another."""
    rows = slice(*records.game_offsets[game : game + 2])
    entries = slice(records.target_offsets[rows.start], records.target_offsets[rows.stop])
    return [
        records.states[rows], records.actions[rows], records.values_stm[rows],
        records.surprises[rows], records.target_actions[entries], records.target_weights[entries],
        records.outcomes_white[game], records.terminations[game],
        records.cut_values_white[game], records.start_kinds[game],
    ]


def assert_same_games(actual, expected, num_games=None):
    assert num_games or actual.num_games == expected.num_games
    for game in range(num_games or expected.num_games):
        for one, other in zip(one_game(actual, game), one_game(expected, game), strict=True):
            np.testing.assert_array_equal(one, other)


def ending(board):
    """Name of the termination and winner, from python-chess alone."""
    outcome = board.outcome()
    if outcome is not None:
        return outcome.termination.name.lower(), outcome.winner
    if board.halfmove_clock >= 100:
        return "fifty_moves", None
    if board.halfmove_clock >= 8 and board.is_repetition(3):
        return "threefold_repetition", None
    return "ongoing", None


@pytest.mark.parametrize("settings", [
    pytest.param(ANY_WAY, id="any"), pytest.param(PRACTICE, id="practice"),
    pytest.param(GREEDY, id="greedy", marks=pytest.mark.slow),
    pytest.param(FROM_START, id="start", marks=pytest.mark.slow),
])
def test_games_replay_in_python_chess(played, settings):
    records, _ = played(settings)
    assert records.num_games == NUM_GAMES
    for game in range(0, NUM_GAMES, 2):
        rows = positions_of(records, game)
        board = chess.Board(GAME.format_state(records.states[rows[0]]))
        for row in rows:
            assert ending(board) == ("ongoing", None)
            assert GAME.format_state(records.states[row]) == board.fen()
            move = chess.Move.from_uci(
                GAME.format_action(records.states[row], records.actions[row])
            )
            assert move in board.legal_moves
            board.push(move)
        name, winner = ending(board)
        assert GAME.spec.terminations[records.terminations[game]] == name
        assert records.outcomes_white[game] == {True: 1, False: -1, None: 0}[winner]
        if name == "ongoing":
            assert len(rows) == settings.max_plies_first
        assert len(rows) <= settings.max_plies_first


def test_the_games_above_end_in_many_ways(played):
    ends, outcomes = Counter(), Counter()
    for settings in (ANY_WAY, GREEDY, FROM_START, PRACTICE):
        records, statistics = played(settings)
        ends.update(statistics.terminations)
        outcomes.update(records.outcomes_white.tolist())
    assert {"checkmate", "stalemate", "insufficient_material", "ply_cap"} <= ends.keys()
    assert ends.keys() & CLAIMED_AT_ONCE
    assert outcomes.keys() == {-1, 0, 1}


def test_values_and_targets_are_what_the_network_said(played, evaluator):
    records, statistics = played(ANY_WAY)
    legal_actions, num_legal = GAME.legal_actions(records.states)
    evaluation = evaluator.evaluate(GAME.planes(records.states), legal_actions, num_legal)
    np.testing.assert_array_equal(records.values_stm, evaluation.value_stm)
    np.testing.assert_array_equal(records.target_offsets, np.arange(records.num_positions + 1))
    np.testing.assert_array_equal(records.target_actions, records.actions)
    assert (records.target_weights == 1).all()

    logits = evaluation.legal_logits.astype(np.float64)
    policy = np.exp(logits - logits.max(axis=1, keepdims=True))
    policy /= policy.sum(axis=1, keepdims=True)
    entropy = -(policy * np.log(policy, where=policy > 0, out=np.zeros_like(policy))).sum()
    assert statistics.entropy_sum == pytest.approx(entropy, rel=1e-5)
    assert statistics.uniform_entropy_sum == pytest.approx(np.log(num_legal).sum())


def test_statistics_are_those_of_the_records(played):
    records, statistics = played(ANY_WAY)
    plies = np.diff(records.game_offsets)
    names = ["ply_cap" if code == 0 else GAME.spec.terminations[code]
             for code in records.terminations]
    assert statistics.games == NUM_GAMES
    assert statistics.positions == plies.sum() == len(records.states)
    assert (statistics.plies_min, statistics.plies_max) == (plies.min(), plies.max())
    assert statistics.white_wins == (records.outcomes_white == 1).sum()
    assert statistics.black_wins == (records.outcomes_white == -1).sum()
    assert statistics.terminations == Counter(names)
    assert 0 < statistics.network_seconds < statistics.seconds


@pytest.mark.parametrize(("groups", "count"), [(1, 1), (1, 64), (2, 9), (12, 5)])
def test_games_of_all_kinds_do_not_depend_on_groups(together, groups, count):
    """They end at different plies, so that rows are refilled and dropped in another order."""
    expected, alone = together
    assert set(expected.start_kinds) == {0, 1, 2}
    assert len(set(np.diff(expected.game_offsets))) > 5
    records, statistics = play_of_all_kinds(groups, concurrent(OF_ALL_KINDS, count))
    assert_same_games(records, expected)
    assert statistics.terminations == alone.terminations
    assert statistics.entropy_sum == pytest.approx(alone.entropy_sum)
    few, _ = play_of_all_kinds(groups, num_games=11)
    assert_same_games(few, expected, num_games=11)


def test_games_do_not_depend_on_the_call_that_plays_them(together):
    parts = [
        play_of_all_kinds(num_games=end - first, first_game=first)[0]
        for first, end in pairwise((0, 1, 12, 30))
    ]
    assert_same_games(concatenate(parts), together[0])


def test_games_that_begin_where_the_policy_led_do_not_depend_on_groups(search):
    settings = truncated(30, mismatch_share_first=1.0, mismatch_policy_share=0.5, **ORDINARY_ONLY)
    together, _ = play_games(GAME, [search], settings, num_games=12, seed=7)
    apart, _ = play_games(GAME, [search] * 2, concurrent(settings, 4), num_games=12, seed=7)
    assert_same_games(apart, together)
    by_rule, _ = play_games(
        GAME, [search], replace(settings, mismatch_policy_share=0.0), num_games=12, seed=7
    )
    first, other = together.game_offsets[:-1], by_rule.game_offsets[:-1]
    led = (together.states[first] != by_rule.states[other]).any(axis=1)
    assert 0 < led.sum() < 12


def test_games_begin_where_their_kind_says():
    records, statistics = play_of_all_kinds(
        settings=replace(OF_ALL_KINDS, random_start_plies=0), num_games=60
    )
    firsts = [GAME.format_state(state) for state in records.states[records.game_offsets[:-1]]]
    kinds = [START_KINDS[kind] for kind in records.start_kinds]
    for fen, kind in zip(firsts, kinds, strict=True):
        assert (fen == chess.STARTING_FEN) == (kind == "ordinary")
        assert (fen in EARLIER) == (kind == "restart")
    assert {EARLIER[0], EARLIER[2]} <= set(firsts)
    assert EARLIER[1] not in firsts
    ordinary = np.array(kinds) == "ordinary"
    practice = np.array(kinds) == "practice"
    assert statistics.ordinary_games == ordinary.sum()
    assert statistics.ordinary_draws == (records.outcomes_white[ordinary] == 0).sum()
    assert statistics.ordinary_positions == np.diff(records.game_offsets)[ordinary].sum()
    assert statistics.practice_games == practice.sum()
    assert statistics.practice_wins == (records.outcomes_white[practice] != 0).sum()


def last_board(records, game):
    """The position in which a game stopped, by python-chess."""
    row = records.game_offsets[game + 1] - 1
    board = chess.Board(GAME.format_state(records.states[row]))
    board.push_uci(GAME.format_action(records.states[row], records.actions[row]))
    return board


@pytest.mark.parametrize(("progress", "share"), [(0.0, 1.0), (0.75, 0.4), (1.0, 0.2)])
def test_cut_games_count_as_material_and_last_root_value(progress, share):
    records, _ = play_of_all_kinds(
        2, replace(OF_ALL_KINDS, max_plies_last=30), num_games=60, progress=progress
    )
    num_cut = 0
    for game in range(records.num_games):
        value = records.cut_values_white[game]
        if records.terminations[game] != ONGOING:
            assert value == 0
            continue
        board, row = last_board(records, game), records.game_offsets[game + 1] - 1
        material = sum(
            PIECE_VALUES[piece.piece_type] * (1 if piece.color else -1)
            for piece in board.piece_map().values()
        )
        # Black is to move in the end where white's was the last search.
        root = records.values_stm[row] * (1 if board.turn == chess.BLACK else -1)
        mixed = share * np.tanh(material / 6) + (1 - share) * root
        assert value == pytest.approx(0.8 * mixed, abs=1e-6)
        num_cut += value != 0
    assert num_cut > 20


@pytest.mark.parametrize(("progress", "cap"), [(0.0, 10), (0.5, 15), (1.0, 20)])
def test_the_ply_cap_is_that_of_the_moment(progress, cap):
    settings = SelfPlaySettings(max_plies_first=10, max_plies_last=20, **ORDINARY_ONLY)
    records, statistics = play_games(
        GAME, [MaterialSearch(GAME)], settings, num_games=5, seed=1, progress=progress
    )
    assert statistics.plies_max == cap
    assert statistics.truncated_rate == (np.diff(records.game_offsets) == cap).mean()


def test_surprises_and_values_are_the_searchs(together):
    records, statistics = together
    material = GAME.heuristic_stm(records.states) / PAWNS_FOR_CERTAINTY
    np.testing.assert_allclose(records.values_stm, np.clip(material, -1, 1))
    _, num_legal = GAME.legal_actions(records.states)
    # Half the target lies on one of num_legal actions, the rest on all of them.
    other, drawn = 0.5 / num_legal, 0.5 / num_legal + 0.5
    surprises = drawn * np.log(drawn * num_legal) + (num_legal - 1) * other * np.log(0.5)
    np.testing.assert_allclose(records.surprises, surprises, rtol=1e-4, atol=1e-6)
    assert statistics.surprise_sum == pytest.approx(surprises.sum(), rel=1e-4)
    assert statistics.mean_abs_value == pytest.approx(np.abs(records.values_stm).mean(), rel=1e-4)


def test_a_group_that_fails_stops_the_others(search):
    told, is_under_way = [], threading.Event()

    class Broken(SizeOfEachCall):
        def run(self, batch, keys, plies, temperatures):
            assert is_under_way.wait(60)
            raise RuntimeError("out of memory")

    class Slow(SizeOfEachCall):
        """Would take half a second for its games: the other fails long before."""

        def run(self, batch, keys, plies, temperatures):
            time.sleep(0.5 / SHORT.max_plies_first)
            return super().run(batch, keys, plies, temperatures)

    def on_progress(*done):
        told.append(done)
        is_under_way.set()

    good = Slow(search)
    with pytest.raises(RuntimeError, match="out of memory"):
        play_games(
            GAME, [good, Broken(search)], SHORT, num_games=8, seed=5, on_progress=on_progress
        )
    assert 1 <= len(good.sizes) < SHORT.max_plies_first
    assert told[-1][0] < 4  # its share of the games


def test_games_of_a_session_and_of_two_seeds_all_differ(search):
    sessions = [play_games(GAME, [search], SHORT, num_games=12, seed=seed)[0] for seed in (5, 6)]
    games = [tuple(records.actions[positions_of(records, game)])
             for records in sessions for game in range(12)]
    for one, other in itertools.combinations(games, 2):
        assert one[:10] != other[:10]


class SizeOfEachCall:
    """A search that notes how many games came with each call."""

    def __init__(self, search):
        self._search, self.sizes = search, []

    @property
    def evaluator(self):
        return self._search.evaluator

    def run(self, batch, keys, plies, temperatures):
        assert (batch.num_legal > 0).all()
        assert len(batch) == len(keys) == len(plies) == len(temperatures)
        self.sizes.append(len(batch))
        return self._search.run(batch, keys, plies, temperatures)


def test_rows_are_refilled_and_then_dropped(search):
    watched = SizeOfEachCall(search)
    records, _ = play_games(GAME, [watched], ANY_WAY, num_games=14, seed=SEED)

    # The row a game gets is the first one free; who ends first, by index, is followed by the next.
    waiting = list(np.diff(records.game_offsets))
    left, sizes = [waiting.pop(0) for _ in range(9)], []
    while left:
        sizes.append(len(left))
        left = [plies - 1 for plies in left]
        survivors = [plies for plies in left if plies]
        while waiting and len(survivors) < 9:
            survivors.append(waiting.pop(0))
        left = survivors
    assert watched.sizes == sizes
    assert sizes[0] == 9
    assert sizes[-1] < 9


def test_progress_is_told_after_every_ply(search):
    watched, told = SizeOfEachCall(search), []
    settings = concurrent(SHORT, 4)
    records, _ = play_games(
        GAME, [watched], settings, num_games=10, seed=1, on_progress=lambda *done: told.append(done)
    )
    finished, positions = zip(*told, strict=True)
    np.testing.assert_array_equal(positions, np.cumsum(watched.sizes))
    assert list(finished) == sorted(finished)
    assert told[-1] == (10, records.num_positions)


def test_a_game_that_ends_at_the_cap_has_ended(played, search):
    records, _ = played(ANY_WAY)
    lengths = np.diff(records.game_offsets)
    decided = np.flatnonzero(records.outcomes_white)
    game = decided[lengths[decided].argmin()]
    for cap, code, outcome in [
        (lengths[game], records.terminations[game], records.outcomes_white[game]),
        (lengths[game] - 1, 0, 0),
    ]:
        settings = replace(ANY_WAY, max_plies_first=int(cap))
        truncated, _ = play_games(
            GAME, [search], settings, num_games=1, first_game=int(game), seed=SEED
        )
        assert truncated.num_positions == cap
        assert (truncated.terminations[0], truncated.outcomes_white[0]) == (code, outcome)


def test_games_start_after_any_number_of_random_plies(search):
    settings = truncated(1, random_start_plies=3, concurrent_games=256, **ORDINARY_ONLY)
    records, _ = play_games(GAME, [search], settings, num_games=400, seed=2)
    assert records.num_positions == 400
    boards = [chess.Board(GAME.format_state(state)) for state in records.states]
    plies = Counter(board.ply() for board in boards)
    assert plies.keys() == {0, 1, 2, 3}
    assert min(plies.values()) > 60  # 100 expected
    assert len({board.board_fen() for board in boards if board.ply() == 1}) > 15


@pytest.mark.parametrize("num_games", [0, -3])
def test_no_games_are_refused(search, num_games):
    with pytest.raises(ConfigError, match="num_games"):
        play_games(GAME, [search], SHORT, num_games=num_games, seed=0)


@pytest.mark.parametrize("progress", [-0.01, 1.01, float("nan")])
def test_a_moment_outside_the_campaign_is_refused(search, progress):
    with pytest.raises(ConfigError, match="progress"):
        play_games(GAME, [search], SHORT, num_games=3, seed=0, progress=progress)
