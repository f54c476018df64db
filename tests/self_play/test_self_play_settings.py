"""Settings of self-play: ranges, shards, the temperature schedule."""

import numpy as np
import pytest

from chess_snn.errors import ConfigError
from chess_snn.self_play import SelfPlaySettings


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
