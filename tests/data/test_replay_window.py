import dataclasses
import itertools
import math
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_games import plain_records
from made_records import make_records
from stored_shards import copy_shard

from chess_snn.data import (
    ReplayWindow,
    concatenate,
    read_shard,
    restart_states,
    write_shard,
)
from chess_snn.data.samples import SURPRISE_CAP
from chess_snn.errors import ConfigError, CorruptDataError, UsageError
from chess_snn.games import ONGOING, get_game

GAME = get_game("chess")
LENGTHS = [[3, 9, 4], [12, 1], [5, 5, 5, 5], [7], [2, 20, 2, 6], [1, 1, 8]]
TOTAL = sum(map(sum, LENGTHS))


def write(parent, index, lengths, seed=0):
    """A shard whose positions name themselves in word 0: shard, then row."""
    records = make_records(np.random.default_rng([seed, index]), lengths, max_entries=6)
    records.states[:, 0] = (index << 32) + np.arange(records.num_positions)
    folder = parent / f"iter-{index:06d}" / "shard-0000"
    write_shard(folder, records, {"game": "chess"})
    return folder


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    parent = tmp_path_factory.mktemp("games")
    return [write(parent, index, lengths) for index, lengths in enumerate(LENGTHS)]


@pytest.fixture(scope="module")
def all_records(shards):
    return [read_shard(folder)[0] for folder in shards]


def assert_sample_matches(samples, b, all_records, discount=1.0):
    """Recompute every column of sample ``b`` from the records its state names."""
    index, row = divmod(int(samples.states[b, 0]), 1 << 32)
    records = all_records[index]
    game = next(k for k in range(records.num_games) if records.game_offsets[k + 1] > row)
    black_moves = int(records.states[row, 4]) & 1
    is_cut = records.terminations[game] == ONGOING and records.outcomes_white[game] == 0
    column = records.cut_values_white if is_cut else records.outcomes_white
    result = float(column[game]) * (-1 if black_moves else 1)
    plies_left = records.game_offsets[game + 1] - row
    lo, hi = records.target_offsets[row : row + 2]

    np.testing.assert_array_equal(samples.states[b], records.states[row])
    assert samples.values_stm[b] == records.values_stm[row]
    assert samples.results_stm[b] == result
    assert samples.outcomes_stm[b] == pytest.approx(result * discount**plies_left, rel=1e-6)
    assert samples.plies_left[b] == plies_left
    assert samples.terminations[b] == records.terminations[game]
    np.testing.assert_array_equal(
        samples.target_actions[b, : hi - lo], records.target_actions[lo:hi]
    )
    np.testing.assert_array_equal(
        samples.target_weights[b, : hi - lo], records.target_weights[lo:hi]
    )
    assert (samples.target_actions[b, hi - lo :] == -1).all()
    assert (samples.target_weights[b, hi - lo :] == 0).all()


@pytest.mark.parametrize(("discount", "surprise_share"), [(1.0, 0.7), (0.9, 0.0)])
def test_samples_are_what_the_records_say(shards, all_records, discount, surprise_share):
    window = ReplayWindow.load(GAME, shards, 1000, holdout_every=4, discount=discount)
    samples = window.sample(500, np.random.default_rng(1), surprise_share=surprise_share)
    assert len(samples) == 500
    for b in range(500):
        assert_sample_matches(samples, b, all_records, discount)
    assert samples.target_actions.shape[1] == max((samples.target_actions >= 0).sum(axis=1))


def test_the_outcome_is_in_the_view_of_the_side_to_move(tmp_path):
    """Fool's mate: black wins on ply 3, so black's positions are won and white's are lost."""
    batch = GAME.allocate(1)
    states, actions = [], []
    for move in ("f2f3", "e7e5", "g2g4", "d8h4"):
        states.append(batch.state[0, : GAME.spec.record_words].copy())
        actions.append(GAME.parse_action(batch.state[0], move))
        GAME.step(batch, np.array(actions[-1:], np.int16))
    assert GAME.spec.terminations[batch.termination[0]] == "checkmate"
    mate = plain_records(
        [4], states=np.array(states), actions=actions, target_actions=actions,
        outcomes_white=[-1], terminations=batch.termination.copy(),
    )
    write_shard(tmp_path / "shard", concatenate([mate] * 8), {"game": "chess"})
    window = ReplayWindow.load(GAME, [tmp_path / "shard"], 100, discount=0.5)
    (samples,) = window.iterate(100, subset="training")
    num_games = len(samples) // 4
    assert list(samples.results_stm) == [-1, 1, -1, 1] * num_games
    assert list(samples.outcomes_stm) == [-1 / 16, 1 / 8, -1 / 4, 1 / 2] * num_games
    assert list(samples.plies_left) == [4, 3, 2, 1] * num_games
    np.testing.assert_array_equal(samples.target_actions[:4, 0], mate.actions)


def newest_games(all_records, capacity):
    """The definition: first positions of the longest run of newest whole games that fits."""
    games, room = [], capacity
    for index in reversed(range(len(all_records))):
        offsets = all_records[index].game_offsets
        for k in reversed(range(all_records[index].num_games)):
            room -= offsets[k + 1] - offsets[k]
            if room < 0:
                return games[::-1]
            games.append((index << 32) + int(offsets[k]))
    return games[::-1]


def first_positions(window):
    return [int(window.records.states[row, 0]) for row in window.records.game_offsets[:-1]]


@given(capacity=st.integers(8, TOTAL + 10))
@settings(max_examples=30)
def test_the_newest_whole_games_that_fit_are_kept(shards, all_records, capacity):
    window = ReplayWindow.load(GAME, shards, capacity, holdout_every=1000)
    assert window.records.num_positions <= capacity
    assert first_positions(window) == newest_games(all_records, capacity)


def test_what_is_learnt_from_a_position_does_not_depend_on_the_games_dropped_before_it(shards):
    whole = ReplayWindow.load(GAME, shards, TOTAL)
    cut = ReplayWindow.load(GAME, shards, TOTAL - 1)
    first = LENGTHS[0][0]
    assert cut.records.num_positions == TOTAL - first, "a part of the oldest shard is left"
    rows = np.arange(TOTAL - first, dtype=np.int32)
    found, expected = cut.gather(rows), whole.gather(rows + np.int32(first))
    for name in (field.name for field in dataclasses.fields(found)):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)


def test_a_game_that_is_held_out_is_held_out_in_other_campaigns_too(shards, tmp_path):
    inherited = tmp_path / f"from-{shards[2].parent.name}" / shards[2].name
    copy_shard(shards[2], inherited)
    for every in (2, 3, 4):
        own, taken = (
            ReplayWindow.load(GAME, [shard], TOTAL, every).rows("holdout")
            for shard in (shards[2], inherited)
        )
        np.testing.assert_array_equal(taken, own)


def test_shards_that_cannot_fit_are_not_read(shards, tmp_path):
    absent = tmp_path / "iter-000000" / "shard-0000"
    window = ReplayWindow.load(GAME, [absent, *shards[-2:]], capacity=20)
    assert window.shard_names == ("iter-000004/shard-0000", "iter-000005/shard-0000")
    assert window.records.num_positions == (2 + 6) + (1 + 1 + 8)


def test_samples_depend_on_the_generator_alone(shards):
    window = ReplayWindow.load(GAME, shards, 1000)
    first, again = (window.sample(64, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first.states, again.states)
    assert (window.sample(64, np.random.default_rng(4)).states != first.states).any()


def test_every_training_position_is_drawn_equally_often(shards):
    window = ReplayWindow.load(GAME, shards, 1000, holdout_every=4)
    expected = 400
    n = len(window.rows("training"))
    samples = window.sample(expected * n, np.random.default_rng(2))
    drawn, counts = np.unique(samples.states[:, 0], return_counts=True)
    np.testing.assert_array_equal(
        drawn, np.sort(window.records.states[window.rows("training"), 0])
    )
    assert np.abs(counts - expected).max() < 5 * math.sqrt(expected)


def surprising_window(tmp_path, surprises, holdout_every=10**9):
    """A window over one game for each of ``surprises``, each of one position."""
    records = make_records(np.random.default_rng(1), [1] * len(surprises))
    records.states[:, 0] = np.arange(len(surprises))
    records.surprises[:] = surprises
    write_shard(tmp_path / "shard", records, {"game": "chess"})
    return ReplayWindow.load(GAME, [tmp_path / "shard"], 10_000, holdout_every)


def chi_square(window, expected_share, **arguments):
    """Chi-square of 40,000 draws, over positions that may be drawn; and its degrees of freedom."""
    samples = window.sample(40_000, np.random.default_rng(2), **arguments)
    counts = np.bincount(samples.states[:, 0].astype(int), minlength=len(expected_share))
    assert (counts[expected_share == 0] == 0).all()
    possible = expected_share > 0
    expected = 40_000 * expected_share[possible]
    return ((counts[possible] - expected) ** 2 / expected).sum(), possible.sum() - 1


@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
def test_surprising_positions_are_drawn_by_their_capped_surprise(tmp_path, share):
    surprises = np.float32([0, 0.25, 0.5, 1, 2, 4, 8, 0, 0.25])  # exact in float16; mean 16 / 9
    window = surprising_window(tmp_path, surprises)
    weights = np.minimum(surprises / surprises.mean(), SURPRISE_CAP)
    expected = share * weights / weights.sum() + (1 - share) / len(surprises)
    statistic, freedom = chi_square(window, expected, surprise_share=share)
    assert statistic < freedom + 5 * math.sqrt(2 * freedom)


def test_without_surprises_the_draw_is_uniform(tmp_path):
    window = surprising_window(tmp_path, np.zeros(20, np.float32))
    statistic, freedom = chi_square(window, np.full(20, 1 / 20), surprise_share=1.0)
    assert statistic < freedom + 5 * math.sqrt(2 * freedom)


def test_held_out_surprises_do_not_count(tmp_path):
    surprises = np.random.default_rng(3).choice([0.5, 1.0, 8.0], size=60).astype(np.float32)
    window = surprising_window(tmp_path, surprises, holdout_every=3)
    training = window.rows("training")
    assert 10 < len(training) < 60
    expected = np.zeros(60)
    expected[training] = np.minimum(surprises[training] / surprises[training].mean(), 2.0)
    expected /= expected.sum()
    statistic, freedom = chi_square(window, expected, surprise_share=1.0)
    assert statistic < freedom + 5 * math.sqrt(2 * freedom)


@pytest.mark.parametrize("share", [1.5, -0.1])
def test_shares_out_of_range_are_refused(shards, share):
    window = ReplayWindow.load(GAME, shards, 1000)
    with pytest.raises(ConfigError, match=r"window\.surprise_share"):
        window.sample(8, np.random.default_rng(0), surprise_share=share)


def test_held_out_games_are_whole_disjoint_and_never_sampled(shards):
    window = ReplayWindow.load(GAME, shards, 1000, holdout_every=3)
    training, holdout = window.rows("training"), window.rows("holdout")
    assert len(holdout) > 0
    together = np.sort(np.concatenate([training, holdout]))
    np.testing.assert_array_equal(together, np.arange(window.records.num_positions))
    for lo, hi in itertools.pairwise(window.records.game_offsets):
        assert len(set(np.isin(np.arange(lo, hi), holdout))) == 1
    sampled = window.sample(20_000, np.random.default_rng(1)).states[:, 0]
    assert not np.isin(window.records.states[holdout, 0], sampled).any()


def test_a_game_stays_held_out_whatever_else_is_in_the_window(shards):
    def held_out(folders, capacity):
        window = ReplayWindow.load(GAME, folders, capacity, holdout_every=3)
        return set(window.records.states[window.rows("holdout"), 0].tolist()), set(
            window.records.states[:, 0].tolist()
        )

    everything, _ = held_out(shards, 1000)
    for folders, capacity in ((shards[2:5], 1000), (shards[::-1], 1000), (shards, 40)):
        some, present = held_out(folders, capacity)
        assert some == everything & present


def test_about_one_game_in_so_many_is_held_out(tmp_path):
    folder = write(tmp_path, 0, [1] * 4000)
    window = ReplayWindow.load(GAME, [folder], 10_000, holdout_every=16)
    expected, sigma = 250, math.sqrt(4000 * 15) / 16
    assert abs(len(window.rows("holdout")) - expected) < 5 * sigma


@pytest.mark.parametrize("subset", ["training", "holdout"])
def test_iterating_gives_each_position_once_in_order(shards, all_records, subset):
    window = ReplayWindow.load(GAME, shards, 1000, holdout_every=3)
    batches = list(window.iterate(7, subset=subset))
    assert [len(batch) for batch in batches[:-1]] == [7] * (len(batches) - 1)
    visited = np.concatenate([batch.states[:, 0] for batch in batches])
    np.testing.assert_array_equal(visited, window.records.states[window.rows(subset), 0])
    for batch in batches:
        for b in range(len(batch)):
            assert_sample_matches(batch, b, all_records)


def test_samples_come_from_memory(shards, tmp_path):
    copies = [copy_shard(s, tmp_path / s.parent.name / s.name) for s in shards]
    window = ReplayWindow.load(GAME, copies, 1000)
    shutil.rmtree(tmp_path)
    assert len(window.sample(16, np.random.default_rng(0))) == 16


@pytest.mark.parametrize("column", ["actions", "target_actions", "terminations"])
def test_codes_the_game_does_not_have_are_refused(tmp_path, column):
    records = make_records(np.random.default_rng(1), [4])
    getattr(records, column)[-1] = {"terminations": 6}.get(column, 4672)
    write_shard(tmp_path / "shard", records, {"game": "chess"})
    with pytest.raises(CorruptDataError, match=f"shard: {column}"):
        ReplayWindow.load(GAME, [tmp_path / "shard"], 100)


@pytest.mark.parametrize(("game", "words"), [("go", 5), ("chess", 6)])
def test_a_shard_of_another_game_is_refused(tmp_path, game, words):
    records = make_records(np.random.default_rng(1), [4], words=words)
    write_shard(tmp_path / "shard", records, {"game": game})
    with pytest.raises(UsageError, match=f"{game} .*{words}"):
        ReplayWindow.load(GAME, [tmp_path / "shard"], 100)


def test_a_window_smaller_than_the_newest_game_is_refused(shards):
    with pytest.raises(UsageError, match=r"7 .*training\.window"):
        ReplayWindow.load(GAME, shards, capacity=7, setting="training.window_positions")


def test_a_window_without_a_training_game_is_refused(tmp_path, shards):
    window = ReplayWindow.load(GAME, shards, 1000, holdout_every=2)
    holdout_games = window.records.states[window.rows("holdout"), 0] >> np.uint64(32)
    training_games = window.records.states[window.rows("training"), 0] >> np.uint64(32)
    alone = sorted(set(holdout_games.tolist()) - set(training_games.tolist()))
    assert alone, "no shard is held out as a whole: choose other lengths"
    with pytest.raises(UsageError, match="2"):
        ReplayWindow.load(GAME, [shards[alone[0]]], 1000, holdout_every=2)


def test_a_shard_given_twice_or_none_is_refused(shards):
    for folders, named in (([shards[0], shards[0]], "shard-0000"), ([], "at least one")):
        with pytest.raises(UsageError, match=named):
            ReplayWindow.load(GAME, folders, 1000)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"capacity": 0}, r"window\.capacity"),
     ({"capacity": 9, "holdout_every": 1}, r"window\.holdout_every"),
     ({"capacity": 9, "discount": 0.0}, r"window\.discount"),
     ({"capacity": 9, "discount": 1.01}, r"window\.discount")],
)
def test_settings_out_of_range_are_refused(shards, wrong, message):
    with pytest.raises(ConfigError, match=message):
        ReplayWindow.load(GAME, shards, **wrong)


def test_an_unknown_subset_is_refused(shards):
    window = ReplayWindow.load(GAME, shards, 1000)
    with pytest.raises(ConfigError, match=r"window\.subset"):
        window.rows("test")


def test_a_digest_tells_windows_apart_and_nothing_else(shards):
    whole = ReplayWindow.load(GAME, shards, 10_000)
    digests = [ReplayWindow.load(GAME, shards[:n], 10_000).digest() for n in range(1, len(shards))]
    assert len({*digests, whole.digest()}) == len(shards) > 1
    assert whole.digest() == ReplayWindow.load(GAME, shards, 10_000).digest()
    assert ReplayWindow.load(GAME, shards, 10_000, holdout_every=2).digest() != whole.digest()
    assert ReplayWindow.load(GAME, shards, 10_000, discount=0.9).digest() != whole.digest()


RESTART_LENGTHS = ([40, 12, 13, 3], [30, 80])


@pytest.fixture(scope="module")
def restart_shards(tmp_path_factory):
    parent = tmp_path_factory.mktemp("games")
    return [write(parent, index, lengths) for index, lengths in enumerate(RESTART_LENGTHS)]


def contested(restart_shards, value_limit):
    """The definition, one position at a time."""
    names = []
    for folder in restart_shards:
        records, _ = read_shard(folder)
        for start, stop in zip(records.game_offsets, records.game_offsets[1:], strict=False):
            names += [
                int(records.states[row, 0]) for row in range(start + 8, stop - 4)
                if -value_limit <= records.values_stm[row] <= value_limit
            ]
    return names


@pytest.mark.parametrize("value_limit", [0.0, 0.3, 0.8, 1.0])
def test_all_contested_positions_are_there_when_the_limit_allows(restart_shards, value_limit):
    states = restart_states(GAME.spec, restart_shards, value_limit, limit=1000, seed=1)
    assert states[:, 0].tolist() == contested(restart_shards, value_limit)
    assert (states.dtype, states.shape[1]) == (np.uint64, 5)


def test_rows_are_whole_records(restart_shards):
    every = {int(row[0]): row for folder in restart_shards for row in read_shard(folder)[0].states}
    for state in restart_states(GAME.spec, restart_shards, 0.8, limit=1000, seed=1):
        np.testing.assert_array_equal(state, every[int(state[0])])


def test_a_limit_draws_without_replacement_and_by_the_seed_alone(restart_shards):
    names = contested(restart_shards, 1.0)
    drawn, again, other = (
        restart_states(GAME.spec, restart_shards, 1.0, limit=20, seed=seed)[:, 0].tolist()
        for seed in (1, 1, 2)
    )
    assert drawn == again != other
    assert len(set(drawn)) == 20
    assert set(drawn) < set(names)


def test_every_contested_position_is_drawn_equally_often(restart_shards):
    names = contested(restart_shards[1:], 1.0)
    draws, limit = 100, 20
    counts = dict.fromkeys(names, 0)
    for seed in range(draws):
        for name in restart_states(GAME.spec, restart_shards[1:], 1.0, limit, seed)[:, 0].tolist():
            counts[name] += 1
    share = limit / len(names)
    sigma = math.sqrt(draws * share * (1 - share))
    assert max(abs(count - draws * share) for count in counts.values()) < 5 * sigma


def test_no_contested_position_gives_no_rows(tmp_path):
    records = make_records(np.random.default_rng(0), [12, 5])
    write_shard(tmp_path / "shard", records, {"game": "chess"})
    assert restart_states(GAME.spec, [tmp_path / "shard"], 1.0, 10, 0).shape == (0, 5)


def test_bad_input_is_refused(restart_shards, tmp_path):
    with pytest.raises(UsageError):
        restart_states(GAME.spec, [], 0.8, 10, 0)
    with pytest.raises(ConfigError, match=r"restarts\.value_limit .*1\.1"):
        restart_states(GAME.spec, restart_shards, 1.1, 10, 0)
    with pytest.raises(ConfigError, match=r"restarts\.limit"):
        restart_states(GAME.spec, restart_shards, 0.8, 0, 0)
    records = make_records(np.random.default_rng(0), [20])
    wider = dataclasses.replace(records, states=np.zeros((20, 6), np.uint64))
    write_shard(tmp_path / "wider", wider, {"game": "go"})
    with pytest.raises(UsageError, match=r"wider .*go .*6 .*5"):
        restart_states(GAME.spec, [*restart_shards, tmp_path / "wider"], 0.8, 10, 0)
    (tmp_path / "wider").write_bytes(b"")
    with pytest.raises(CorruptDataError, match="wider"):
        restart_states(GAME.spec, [tmp_path / "wider"], 0.8, 10, 0)
