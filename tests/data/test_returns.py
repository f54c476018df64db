"""Returns of recorded games, by hand and against the rules; the window that serves them."""

from dataclasses import fields, replace

import numpy as np
import pytest
from made_games import plain_records

from benchmarks.random_data import play_random_games, with_search_targets
from chess_snn.data import ReplayWindow, read_shard_of, restart_states, state_rows, write_shard
from chess_snn.data.audit import audit_shards, game_faults
from chess_snn.data.samples import check_td_lambda, returns_of, rewards_of
from chess_snn.errors import ConfigError, CorruptDataError
from chess_snn.games import ONGOING, get_game

GAME = get_game("2048")
CHESS = get_game("chess")
NO_MOVES = GAME.spec.terminations.index("no_moves")
ROOTS = (3.0, 5.0, 7.0)
BOARDS = tuple(
    f"{tile} {tile} . ./. . . ./. . . ./2 . . ." for tile in (512, 1024, 2048)
)
"""A move to the left, action 0, is worth the two tiles: 1, 2 and 4 units of 1024 points."""


@pytest.fixture(scope="module")
def records():
    played = with_search_targets(GAME, play_random_games(GAME, 24, 150))
    assert set(played.terminations) == {ONGOING, NO_MOVES}
    values = np.linspace(0, 30, played.num_positions).astype(np.float32)
    return replace(played, values_stm=values)


@pytest.fixture(scope="module")
def shard(records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("games") / "iter-000000" / "shard-0000"
    write_shard(folder, records, {"game": "2048"})
    return folder


def three_plies(termination, roots=ROOTS):
    """One game of moves to the left; what a position leads to does not matter here."""
    states = np.stack([GAME.parse_state(board) for board in BOARDS])
    return plain_records([3], states=states, values_stm=roots, terminations=[termination])


@pytest.mark.parametrize(
    ("termination", "td_lambda", "returns", "after"),
    [
        # With discount 0.5: G_t = (1 - lambda) root_t + lambda (r_t + G_{t+1} / 2).
        (NO_MOVES, 1.0, (3.0, 4.0, 4.0), (4.0, 4.0, 0.0)),
        (NO_MOVES, 0.0, ROOTS, (5.0, 7.0, 0.0)),
        (NO_MOVES, 0.5, (3.21875, 4.875, 5.5), (4.875, 5.5, 0.0)),
        # Truncated: the last root value 7 = 4 + 6 / 2 stands for the rest.
        (ONGOING, 1.0, (3.75, 5.5, 7.0), (5.5, 7.0, 6.0)),
        (ONGOING, 0.0, ROOTS, (5.0, 7.0, 6.0)),
        (ONGOING, 0.5, (3.3125, 5.25, 7.0), (5.25, 7.0, 6.0)),
    ],
)
def test_three_plies_by_hand(termination, td_lambda, returns, after):
    found = returns_of(GAME, three_plies(termination), 0.5, td_lambda)
    np.testing.assert_allclose(found.returns, returns)
    np.testing.assert_allclose(found.after, after)


def test_what_is_left_is_never_negative():
    """A root value below the reward that its own action brought."""
    found = returns_of(GAME, three_plies(ONGOING, roots=(3, 5, 1)), 0.5, 1.0)
    assert (found.after[2], found.returns[2]) == (0, 4)


def test_rewards_are_those_of_the_game():
    rng = np.random.default_rng(3)
    batch = GAME.allocate(50)
    states, actions, rewards = [], [], []
    for _ in range(40):
        choice = rng.integers(np.maximum(batch.num_legal, 1))
        states.append(batch.state.copy())
        actions.append(batch.legal_actions[np.arange(50), choice].copy())
        GAME.step(batch, actions[-1], rng.integers(1 << 63, size=50, dtype=np.uint64))
        rewards.append(batch.reward.copy())
    assert (batch.termination == ONGOING).all()
    records = replace(
        play_random_games(GAME, 1, 1), states=np.concatenate(states),
        actions=np.concatenate(actions),
    )
    expected = np.concatenate(rewards)
    assert expected.sum() > 0
    np.testing.assert_array_equal(rewards_of(GAME, records.states, records.actions), expected)


def test_without_lambda_and_discount_a_return_is_the_score(records, shard):
    window = ReplayWindow.load(GAME, [shard], 100_000, holdout_every=4)
    samples = window.gather(np.arange(records.num_positions))
    rewards = rewards_of(GAME, records.states, records.actions)
    for game, (start, stop) in enumerate(
        zip(records.game_offsets, records.game_offsets[1:], strict=False)
    ):
        total = rewards[start:stop].sum()
        if records.terminations[game] == ONGOING:
            stored = window.records.values_stm[stop - 1]
            total += max(0, stored - rewards[stop - 1])
        assert samples.results_stm[start] == pytest.approx(total, rel=1e-5)
    np.testing.assert_array_equal(samples.outcomes_stm, samples.results_stm)
    np.testing.assert_array_equal(samples.actions, records.actions)


def test_games_that_no_longer_fit_change_no_returns(records, tmp_path):
    shards = []
    for number in range(3):
        records = play_random_games(GAME, 6 + number, 60)
        shards.append(tmp_path / "iter-000000" / f"shard-000{number}")
        write_shard(shards[-1], records, {"game": "2048"})
    options = {"holdout_every": 4, "discount": 0.9, "td_lambda": 0.7}
    whole = ReplayWindow.load(GAME, shards, 10_000, **options)
    newest = ReplayWindow.load(GAME, shards, 700, **options)
    rows = np.arange(newest.records.num_positions)
    num_dropped = whole.records.num_positions - len(rows)
    assert num_dropped > 0
    ours, expected = newest.gather(rows), whole.gather(rows + num_dropped)
    for field in fields(expected):
        np.testing.assert_array_equal(getattr(ours, field.name), getattr(expected, field.name))
    other = ReplayWindow.load(GAME, shards, 700, **(options | {"td_lambda": 0.6}))
    assert other.digest() != newest.digest()


def test_the_result_of_a_game_has_no_lambda(tmp_path):
    check_td_lambda(CHESS.spec, 1.0)
    for td_lambda in (0.9, -0.1, 1.1):
        with pytest.raises(ConfigError, match=r"training\.td_lambda"):
            ReplayWindow.load(CHESS, [], 100, td_lambda=td_lambda)


def test_chess_has_no_returns():
    assert returns_of(CHESS, play_random_games(CHESS, 2, 10), 1.0, 1.0) is None


def test_a_value_of_another_game_is_refused(records, tmp_path):
    high = replace(records, values_stm=records.values_stm + np.float32(1010))
    low = replace(records, values_stm=records.values_stm - np.float32(0.5))
    for name, bad in {"high": high, "low": low}.items():
        write_shard(tmp_path / name, bad, {"game": "2048"})
        with pytest.raises(CorruptDataError, match="values_stm"):
            read_shard_of(GAME.spec, tmp_path / name)
        assert "values_stm" in audit_shards(GAME, [tmp_path / name])[0].fault


def test_restarts_are_from_positions_below_the_limit(records, shard):
    states = restart_states(GAME.spec, [shard], 20 / 1024, limit=100_000, seed=1)
    all_of_them = restart_states(GAME.spec, [shard], 1.0, limit=100_000, seed=1)
    assert 0 < len(states) < len(all_of_them)
    batch = GAME.allocate(len(all_of_them))
    GAME.reset(batch, np.arange(len(batch)), state_rows(GAME.spec, all_of_them))
    assert (batch.termination == ONGOING).all()


def test_played_games_pass_the_audit(shard):
    (audit,) = audit_shards(GAME, [shard])
    assert (audit.verdict, audit.fault) == ("whole", "")


def test_what_chance_cannot_do_is_found_in_its_game_alone(records):
    states = records.states.copy()
    row = int(records.game_offsets[5]) + 9
    states[row, 0] ^= np.uint64(1)
    faults = game_faults(GAME, replace(records, states=states))
    assert set(faults) == {5}
    assert "ply 9" in faults[5]


def test_an_end_that_the_rules_do_not_know_is_found(records):
    ongoing = int(np.flatnonzero(records.terminations == ONGOING)[0])
    terminations = records.terminations.copy()
    terminations[ongoing] = NO_MOVES
    assert set(game_faults(GAME, replace(records, terminations=terminations))) == {ongoing}
