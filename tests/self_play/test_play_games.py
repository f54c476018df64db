"""Played games against python-chess and against themselves."""

import itertools
from collections import Counter
from dataclasses import fields

import chess
import numpy as np
import pytest

from chess_snn.data import GameRecords, read_shard, write_shard
from chess_snn.errors import ConfigError
from chess_snn.games import get_game
from chess_snn.nets import build_network, make_evaluator, net_config
from chess_snn.search import PolicySearch
from chess_snn.self_play import SelfPlaySettings, play_games

GAME = get_game("chess")
NUM_GAMES = 24
CLAIMED_AT_ONCE = {"fifty_moves", "threefold_repetition"}
"""Draws that python-chess leaves to a player's claim, and the library does not."""

ANY_WAY = SelfPlaySettings(concurrent_games=9, max_plies=300, temperature_first=2.0)
GREEDY = SelfPlaySettings(
    concurrent_games=9, max_plies=300, temperature_first=0.0, temperature_last=0.0
)
FROM_START = SelfPlaySettings(concurrent_games=9, max_plies=20, random_start_plies=0)
SHORT = SelfPlaySettings(concurrent_games=8, max_plies=40)


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
            done[settings] = play_games(GAME, [search], settings, num_games=NUM_GAMES, seed=3)
        return done[settings]

    return play


def concurrent(settings, count):
    return SelfPlaySettings(
        concurrent_games=count, max_plies=settings.max_plies,
        random_start_plies=settings.random_start_plies,
    )


def positions_of(records, game):
    return range(*records.game_offsets[game : game + 2])


def one_game(records, game):
    """Every column of one game, to compare with another."""
    rows = slice(*records.game_offsets[game : game + 2])
    entries = slice(records.target_offsets[rows.start], records.target_offsets[rows.stop])
    return [
        records.states[rows], records.actions[rows], records.values_stm[rows],
        records.target_actions[entries], records.target_weights[entries],
        records.outcomes_white[game], records.terminations[game],
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


@pytest.mark.parametrize("settings", [ANY_WAY, GREEDY, FROM_START], ids=["any", "greedy", "start"])
def test_games_replay_in_python_chess(played, settings):
    records, _ = played(settings)
    assert records.num_games == NUM_GAMES
    for game in range(NUM_GAMES):
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
            assert len(rows) == settings.max_plies
        assert len(rows) <= settings.max_plies


def test_the_games_above_end_in_many_ways(played):
    ends, outcomes = Counter(), Counter()
    for settings in (ANY_WAY, GREEDY, FROM_START):
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


@pytest.mark.parametrize("count", [1, 3, 7, 64])
def test_games_do_not_depend_on_how_many_are_played_at_once(search, count):
    together, _ = play_games(GAME, [search], concurrent(SHORT, 8), num_games=8, seed=5)
    records, _ = play_games(GAME, [search], concurrent(SHORT, count), num_games=8, seed=5)
    assert_same_games(records, together)


@pytest.mark.parametrize("groups", [2, 3, 9])
def test_games_do_not_depend_on_their_groups(search, groups):
    together, alone = play_games(GAME, [search], concurrent(SHORT, 8), num_games=8, seed=5)
    records, statistics = play_games(
        GAME, [search] * groups, concurrent(SHORT, 8), num_games=8, seed=5
    )
    assert_same_games(records, together)
    assert statistics.terminations == alone.terminations
    assert statistics.entropy_sum == pytest.approx(alone.entropy_sum)


def test_a_group_that_fails_stops_the_others(search):
    class Broken(SizeOfEachCall):
        def run(self, batch, keys, plies, temperatures):
            raise RuntimeError("out of memory")

    told = []
    with pytest.raises(RuntimeError, match="out of memory"):
        play_games(
            GAME, [search, Broken(search)], SHORT, num_games=8, seed=5,
            on_progress=lambda *done: told.append(done),
        )
    assert not told or told[-1][0] < 8


def test_long_games_do_not_depend_on_how_many_are_played_at_once(played, search):
    """Games that end at different plies, so that rows are refilled and dropped in another order."""
    expected, _ = played(ANY_WAY)
    settings = SelfPlaySettings(concurrent_games=24, max_plies=300, temperature_first=2.0)
    records, _ = play_games(GAME, [search], settings, num_games=NUM_GAMES, seed=3)
    assert_same_games(records, expected)


def test_same_seed_plays_the_first_games_of_a_longer_session(search):
    few, _ = play_games(GAME, [search], SHORT, num_games=5, seed=5)
    many, _ = play_games(GAME, [search], SHORT, num_games=11, seed=5)
    assert_same_games(many, few, num_games=5)


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
    settings = SelfPlaySettings(concurrent_games=9, max_plies=300, temperature_first=2.0)
    records, _ = play_games(GAME, [watched], settings, num_games=NUM_GAMES, seed=3)

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
        settings = SelfPlaySettings(max_plies=int(cap), temperature_first=2.0)
        capped, _ = play_games(GAME, [search], settings, num_games=NUM_GAMES, seed=3)
        assert len(positions_of(capped, game)) == cap
        assert (capped.terminations[game], capped.outcomes_white[game]) == (code, outcome)


def test_games_start_after_any_number_of_random_plies(search):
    settings = SelfPlaySettings(random_start_plies=3, max_plies=1)
    records, _ = play_games(GAME, [search], settings, num_games=400, seed=2)
    assert records.num_positions == 400
    boards = [chess.Board(GAME.format_state(state)) for state in records.states]
    plies = Counter(board.ply() for board in boards)
    assert plies.keys() == {0, 1, 2, 3}
    assert min(plies.values()) > 60  # 100 expected
    assert len({board.board_fen() for board in boards if board.ply() == 1}) > 15


def test_without_random_plies_games_start_at_the_start(played):
    records, _ = played(FROM_START)
    for row in records.game_offsets[:-1]:
        assert GAME.format_state(records.states[row]) == chess.STARTING_FEN


def test_records_make_a_shard(played, tmp_path):
    records, _ = played(ANY_WAY)
    write_shard(tmp_path / "shard", records, {"game": "chess"})
    stored, _ = read_shard(tmp_path / "shard")
    for field in fields(GameRecords):
        if field.name != "values_stm":  # kept as float16
            np.testing.assert_array_equal(getattr(stored, field.name), getattr(records, field.name))


@pytest.mark.parametrize("num_games", [0, -3])
def test_no_games_are_refused(search, num_games):
    with pytest.raises(ConfigError, match=f"num_games must be >= 1, got {num_games}"):
        play_games(GAME, [search], SHORT, num_games=num_games, seed=0)
