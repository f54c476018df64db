"""Starts: exact shares, own streams, and nothing that has ended."""

from dataclasses import replace

import chess
import numpy as np
import pytest
from plain_streams import game_unit, game_word, splitmix_word

from chess_snn.data.records import START_KINDS
from chess_snn.errors import ConfigError
from chess_snn.games import get_game
from chess_snn.rng import derive_seed
from chess_snn.self_play import SelfPlaySettings
from chess_snn.self_play.starts import MISMATCH_PLIES, draw_starts

GAME = get_game("chess")
RECORD_WORDS = GAME.spec.record_words
SETTINGS = SelfPlaySettings(
    practice_share_first=0.3, practice_share_last=0.1,
    restart_share_first=0.1, restart_share_last=0.5, random_start_plies=0,
)
CHI_SQUARED_999 = 22.46
"""99.9 % quantile at 6 degrees of freedom."""
ENDED_BY_CLOCK = "4k3/8/8/8/8/8/4P3/4K2R w - - 100 90"
MATED = "rnb1kbnr/pppp1ppp/8/4p3/5PPq/8/PPPPP2P/RNBQKBNR w KQkq - 1 3"
EARLIER = [
    f"4k3/8/8/8/8/{pawns}/8/4K2R b K - {clock} 40"
    for clock, pawns in enumerate(["P7", "1P6", "2P5", "3P4", "4P3", "5P2", "6P1"])
]


def records_of(fens):
    rows = [GAME.parse_state(fen)[:RECORD_WORDS] for fen in fens]
    return np.array(rows, np.uint64).reshape(-1, RECORD_WORDS)


def draw(num_games=300, settings=SETTINGS, seed=4, progress=0.0, fens=EARLIER):
    return draw_starts(
        GAME, settings, num_games=num_games, seed=seed, progress=progress,
        restarts=None if fens is None else records_of(fens),
    )


def fens_of(starts, kind):
    return [GAME.format_state(state) for state in starts.states[starts.kinds == kind_code(kind)]]


def kind_code(kind):
    return START_KINDS.index(kind)


@pytest.mark.parametrize(("progress", "bounds"), [
    (0.0, [0.3, 0.5, 0.6]), (0.5, [0.2, 0.35, 0.65]), (1.0, [0.1, 0.2, 0.7]),
])
def test_kind_of_a_game_is_the_first_draw_of_its_stream(progress, bounds, monkeypatch):
    """Practice, mismatch and restart have the shares of their moment; the rest is ordinary."""
    monkeypatch.setattr("chess_snn.self_play.starts.MISMATCH_PLIES", 2)
    settings = replace(SETTINGS, mismatch_share_first=0.2, mismatch_share_last=0.1)
    bounds = dict(zip(("practice", "mismatch", "restart", "ordinary"), [*bounds, 1], strict=True))
    for k, kind in enumerate(draw(200, settings, progress=progress).kinds):
        unit = game_unit(4, "start_kinds", k)
        assert START_KINDS[kind] == next(name for name, bound in bounds.items() if unit < bound)


def test_a_game_starts_the_same_among_more_games():
    many = draw(300, replace(SETTINGS, random_start_plies=8))
    few = draw(37, replace(SETTINGS, random_start_plies=8))
    np.testing.assert_array_equal(few.states, many.states[:37])
    np.testing.assert_array_equal(few.kinds, many.kinds[:37])


def test_practice_games_start_at_the_practice_state_of_their_stream():
    starts = draw()
    numbers = np.flatnonzero(starts.kinds == kind_code("practice")).tolist()
    seeds = [splitmix_word(derive_seed(4, "practice"), k) for k in numbers]
    states = starts.states[numbers]
    np.testing.assert_array_equal(states, GAME.practice_states(np.array(seeds, np.uint64)))
    boards = [chess.Board(GAME.format_state(state)) for state in states]
    assert len({board.fen() for board in boards}) == len(boards) > 60
    assert not any(board.is_game_over() for board in boards)


def test_mismatches_start_where_one_side_took_what_the_other_left():
    settings = replace(
        SETTINGS, practice_share_first=0.0, restart_share_first=0.0, mismatch_share_first=1.0
    )
    starts = draw(200, settings)
    boards = [chess.Board(fen) for fen in fens_of(starts, "mismatch")]
    assert len(boards) == 200
    assert not any(board.is_game_over() for board in boards)
    plies = np.array([board.ply() for board in boards])
    assert plies.min() >= 1
    assert plies.max() <= MISMATCH_PLIES
    assert abs(plies.mean() - 40.5) < 6
    leads = np.array([material(board) for board in boards])
    assert (abs(leads[plies > 40]) > 9).mean() > 0.9
    assert 0.3 < (leads[plies > 40] > 0).mean() < 0.7


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_share_of_the_mismatches_is_led_by_the_policy(share):
    settings = replace(
        SETTINGS, practice_share_first=0.0, restart_share_first=0.0, mismatch_share_first=1.0,
        mismatch_policy_share=share,
    )
    asked = set()

    def last_action(game, batch, keys, plies):
        asked.update(keys.tolist())
        assert len({*game.side_to_move(batch.state) ^ (keys >> np.uint64(63))}) == 1
        return batch.legal_actions[np.arange(len(batch)), batch.num_legal - 1]

    starts = draw_starts(
        GAME, settings, num_games=200, seed=4, progress=0.0, policy=last_action
    )
    greedy = draw(200, settings).states  # all of them
    led = (starts.states != greedy).any(axis=1)
    assert not any(chess.Board(fen).is_game_over() for fen in fens_of(starts, "mismatch"))
    if share == 0.0:
        assert not asked
    # After a ply or two both may have led to the same position.
    assert led.mean() == pytest.approx(share, abs=0.1)
    one = draw_starts(GAME, settings, num_games=7, seed=4, progress=0.0, policy=last_action)
    np.testing.assert_array_equal(one.states, starts.states[:7])


def material(board):
    """White's pieces less Black's, in pawns."""
    worth = zip((1, 3, 3, 5, 9), chess.PIECE_TYPES, strict=False)
    return sum(
        pawns * (len(board.pieces(kind, chess.WHITE)) - len(board.pieces(kind, chess.BLACK)))
        for pawns, kind in worth
    )


def test_restarts_are_drawn_evenly():
    everything = replace(SETTINGS, practice_share_first=0.0, restart_share_first=1.0)
    fens = fens_of(draw(7000, everything), "restart")
    assert len(fens) == 7000
    assert set(fens) == set(EARLIER)
    observed = np.array([fens.count(fen) for fen in EARLIER])
    assert ((observed - 1000) ** 2 / 1000).sum() < CHI_SQUARED_999


def test_restarts_that_have_ended_are_passed_over():
    some_ended = [ENDED_BY_CLOCK, EARLIER[0], MATED, ENDED_BY_CLOCK, EARLIER[1]]
    starts = draw(2000, fens=some_ended)
    fens = fens_of(starts, "restart")
    assert set(fens) == {EARLIER[0], EARLIER[1]}
    # A game whose first draw goes on keeps it; the others draw again.
    numbers = np.flatnonzero(starts.kinds == kind_code("restart"))
    redrawn = 0
    for k, fen in zip(numbers.tolist(), fens, strict=True):
        draws = [some_ended[game_word(4, "restarts", k, attempt) % 5] for attempt in range(100)]
        assert fen == next(candidate for candidate in draws if candidate in EARLIER)
        redrawn += draws[0] not in EARLIER
    assert redrawn > 50


def test_restarts_that_have_all_ended_are_refused():
    with pytest.raises(ConfigError, match=r"100 .* 2 "):
        draw(fens=[ENDED_BY_CLOCK, MATED])


def test_starts_leave_the_restarts_alone():
    restarts = records_of([ENDED_BY_CLOCK, *EARLIER])
    before = restarts.copy()
    draw_starts(GAME, SETTINGS, num_games=300, seed=4, progress=0.0, restarts=restarts)
    np.testing.assert_array_equal(restarts, before)


@pytest.mark.parametrize("fens", [None, []])
def test_without_restarts_their_share_is_ordinary_and_practice_stays(fens):
    with_restarts, without = draw(), draw(fens=fens)
    restarted = with_restarts.kinds == kind_code("restart")
    assert restarted.any()
    assert (without.kinds[restarted] == kind_code("ordinary")).all()
    np.testing.assert_array_equal(without.kinds[~restarted], with_restarts.kinds[~restarted])
    np.testing.assert_array_equal(without.states[~restarted], with_restarts.states[~restarted])


# Settings of self-play: ranges, shards, the temperature schedule.


@pytest.mark.parametrize("when", ["first", "last"])
def test_shares_that_add_to_more_than_1_are_named(when):
    shares = {f"practice_share_{when}": 0.5, f"restart_share_{when}": 0.4}
    SelfPlaySettings(**shares)
    with pytest.raises(
        ConfigError,
        match=rf"^self_play\.practice_share_{when} = 0\.5, self_play\.restart_share_{when} = 0\.4, "
        rf"self_play\.mismatch_share_{when} = 0\.2 add to more than 1; lower one of them$",
    ):
        SelfPlaySettings(**shares, **{f"mismatch_share_{when}": 0.2})


def test_what_is_called_first_and_last_changes_on_a_straight_line():
    settings = SelfPlaySettings(
        max_plies_first=100, max_plies_last=201, material_share_first=1.0, material_share_last=0.2,
        practice_share_first=0.2, practice_share_last=0.0, restart_share_first=0.1,
        restart_share_last=0.5, mismatch_share_first=0.3, mismatch_share_last=0.1,
    )
    for progress, plies, material, practice, restart, mismatch in [
        (0.0, 100, 1.0, 0.2, 0.1, 0.3), (0.25, 125, 0.8, 0.15, 0.2, 0.25),
        (1.0, 201, 0.2, 0.0, 0.5, 0.1),
    ]:
        assert settings.max_plies(progress) == plies
        assert settings.material_share(progress) == pytest.approx(material)
        assert settings.practice_share(progress) == pytest.approx(practice)
        assert settings.restart_share(progress) == pytest.approx(restart)
        assert settings.mismatch_share(progress) == pytest.approx(mismatch)


def test_temperature_falls_on_a_straight_line_and_stays():
    settings = SelfPlaySettings(temperature_first=1.5, temperature_last=0.5, temperature_plies=40)
    temperatures = settings.temperatures(np.array([0, 10, 20, 30, 40, 41, 5000], np.int32))
    assert temperatures.dtype == np.float32
    np.testing.assert_allclose(temperatures, [1.5, 1.25, 1.0, 0.75, 0.5, 0.5, 0.5], rtol=1e-6)


def test_temperature_may_rise_or_switch_at_once():
    rising = SelfPlaySettings(temperature_first=0.0, temperature_last=2.0, temperature_plies=4)
    np.testing.assert_allclose(rising.temperatures(np.arange(6, dtype=np.int32)),
                               [0.0, 0.5, 1.0, 1.5, 2.0, 2.0])
    switch = SelfPlaySettings(temperature_first=1.0, temperature_last=0.0, temperature_plies=1)
    np.testing.assert_array_equal(switch.temperatures(np.arange(3, dtype=np.int32)), [1, 0, 0])


@pytest.mark.parametrize(("games", "per_shard", "workers", "shards"), [
    (400, 100, 1, 4), (401, 100, 1, 5), (99, 100, 1, 1), (1, 1, 1, 1),
    # Half of the 20 games that a worker plays at once is enough for a shard.
    (400, 400, 4, 12), (400, 100, 16, 32), (100, 100, 4, 8), (100, 100, 9, 9), (100, 100, 64, 64),
    # Shards are kept small enough, and every worker gets as many as the others.
    (400, 10, 3, 42), (400, 100, 3, 9),
    (5, 100, 8, 5),
])
def test_the_number_of_shards_follows_the_workers(games, per_shard, workers, shards):
    settings = SelfPlaySettings(
        games_per_iteration=games, games_per_shard=per_shard, concurrent_games=20
    )
    assert settings.num_shards(workers) == shards
