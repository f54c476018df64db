"""The ladder that is shipped: its ratings follow from its results."""

from pathlib import Path

import numpy as np
import pytest
from fake_engines import write_engine
from simulated_ladder import simulated_ladder

from benchmarks.ladder import ladder_json
from chess_snn.errors import RatingError
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.ladder.available import available_players, uses_engine
from chess_snn.evaluation.ladder.ladder import Ladder, read_ladder
from chess_snn.evaluation.ratings.crosstable import Crosstable
from chess_snn.evaluation.ratings.davidson import COLOUR, LOG_DRAW, log_probabilities
from chess_snn.evaluation.ratings.fit import fit_ratings
from chess_snn.evaluation.scores import ELO_PER_NAT

MOST_STEP = 500
"""Elo; the weaker one scores 0.05."""
DOCUMENT = Path(__file__).parents[2] / "docs" / "ratings.md"
ENGINES = EngineSettings(processes=1, answer_s=120.0, start_s=120.0)

@pytest.fixture(scope="module")
def ladder():
    return read_ladder()


def test_every_player_has_a_rating_with_an_interval(ladder):
    assert ladder.rung("random").elo == 0
    for rung in ladder.rungs:
        assert rung.elo_low <= rung.elo <= rung.elo_high
        assert np.isfinite([rung.elo_low, rung.elo_high]).all()


def test_no_step_is_so_high_that_all_games_end_one_way(ladder):
    elos = [rung.elo for rung in ladder.rungs]
    assert elos == sorted(elos)
    assert max(np.diff(elos)) < MOST_STEP


def score_of(counts):
    """Mean score of the first player of a pairing."""
    points = 4 - np.indices((3, 3)).sum(axis=0)
    return (counts * points).sum() / (4 * counts.sum())


def test_no_rating_hangs_on_sweeps_alone(ladder):
    for player in ladder.players:
        scores = [
            score_of(p.counts) for p in ladder.pairings if player in (p.player_a, p.player_b)
        ]
        assert sum(0.05 < score < 0.95 for score in scores) >= 2, player


def test_how_it_was_made_is_told(ladder):
    assert ladder.origin["command"].startswith("python -m benchmarks ladder --pairs")
    assert ladder.engine.startswith("Stockfish ")
    assert {name for name in ladder.players if uses_engine(name)} == set(ladder.programs)


def test_the_ratings_follow_from_the_results(ladder):
    ratings = fit_ratings(Crosstable.from_games(ladder.games()))
    for rung in ladder.rungs:
        elo = ratings.of(rung.player).elo
        np.testing.assert_allclose(
            (elo.value, elo.low, elo.high), (rung.elo, rung.elo_low, rung.elo_high), atol=0.5
        )


def test_the_document_shows_it(ladder):
    rows = [
        f"| `{rung.player}` | {rung.elo:.0f} | {rung.elo_low:.0f} to {rung.elo_high:.0f} | "
        f"{rung.num_games:,} |"
        for rung in reversed(ladder.rungs)
    ]
    heading = ["| player | Elo | 95 % interval | games |", "| --- " * 4 + "|"]
    table = "\n".join([*heading, *rows])
    made = f"{len(ladder.games()):,} games, {ladder.engine}, {ladder.origin['date'][:10]}"
    for wanted in (table, made, ladder.origin["command"]):
        assert wanted in DOCUMENT.read_text(), f"docs/ratings.md must have:\n{wanted}"


def test_it_predicts_better_than_who_knows_no_players(ladder):
    """Ratings of four openings in five predict the games of the others."""
    games = ladder.games()
    held_out = [game for game in games if int(game.opening.rpartition(":")[2]) % 5 == 0]
    fitted = [game for game in games if int(game.opening.rpartition(":")[2]) % 5 != 0]
    ratings = fit_ratings(Crosstable.from_games(fitted))
    elos = {rating.player: rating.elo.value / ELO_PER_NAT for rating in ratings.table}
    advantages = np.array([elos[game.white] - elos[game.black] for game in held_out])
    logs = log_probabilities(advantages + ratings.theta[COLOUR], ratings.theta[LOG_DRAW])
    happened = np.array([1 - game.outcome_white for game in held_out])
    loss = -logs[np.arange(len(held_out)), happened].mean()
    shares = np.bincount([1 - game.outcome_white for game in fitted]) / len(fitted)
    assert loss < 0.85 * -np.log(shares[happened]).mean()


def test_a_sweep_leaves_a_ladder_open():
    with pytest.raises(RatingError, match=r"'b' .*1\.00"):
        simulated_ladder({"random": 0, "b": 9000}, 10, np.random.default_rng(0))


def test_without_the_engine_there_are_the_players_that_need_none(ladder, bare_machine):
    found = available_players(ladder, ladder.players, ENGINES)
    assert found.players == tuple(name for name in ladder.players if not uses_engine(name))
    assert not found.approximate
    assert "stockfish" in found.notice
    assert available_players(ladder, found.players, ENGINES).notice is None


def test_one_engine_that_is_missing_takes_every_engine_along_bug(bare_machine):
    even = np.array([[2, 3, 6], [3, 4, 3], [6, 3, 2]])
    sound = f"uci:{write_engine(bare_machine, 'sound')}@5"
    names = (sound, "stockfish@30")
    pairings = [{"player_a": name, "player_b": "random", "pairs": even} for name in names]
    programs = {sound: "Fake  1.0", "stockfish@30": "Stockfish 1"}
    ladder = Ladder.from_json(ladder_json(pairings, programs, max_plies=6, origin={}))
    found = available_players(ladder, ladder.players, ENGINES)
    assert set(found.players) == {"random", sound}
    assert "Stockfish 1" in found.notice


def test_another_version_of_the_engine_plays_approximate_rungs(ladder, bare_machine):
    write_engine(bare_machine, "sound").rename(bare_machine / "stockfish")
    found = available_players(ladder, ladder.players, ENGINES)
    assert found.players == ladder.players
    assert list(found.approximate) == list(filter(uses_engine, ladder.players))
    assert "Fake  1.0" in found.notice
