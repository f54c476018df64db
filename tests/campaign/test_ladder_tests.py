"""The climb of a generation: within its budget, whole after any stop, and in the ratings."""

import math
from dataclasses import asdict

import numpy as np
import pytest
from signed_files import REPORT as REPORT_VERSION
from signed_files import edit, resign, write_signed
from small_campaigns import receipt_of

from benchmarks.ladder import ladder_json
from chess_snn.campaign import load_config
from chess_snn.campaign.stages import prepare_first_generation
from chess_snn.campaign.store.match_facts import LadderTestFacts
from chess_snn.campaign.store.plans import begin_iteration
from chess_snn.campaign.store.receipts import read_receipt, write_receipt
from chess_snn.campaign.store.typed_json import from_json
from chess_snn.campaign.strength import ladder_tests, ratings
from chess_snn.campaign.strength.ladder_tests import ladder_notice, play_ladder_test
from chess_snn.campaign.strength.ratings import rate_campaign, rating_of
from chess_snn.campaign.viewing.figures import figure_row, metrics_of
from chess_snn.errors import CorruptDataError
from chess_snn.evaluation.engines import player as engine_player
from chess_snn.evaluation.ladder.adaptive import APPROXIMATE_ELO
from chess_snn.evaluation.ladder.available import AvailablePlayers
from chess_snn.evaluation.ladder.ladder import Ladder
from tests.evaluation.fake_engines import write_engine

LADDER_TESTS = (
    "evaluation.ladder_test=true", "evaluation.ladder_test_games=7",
    "evaluation.simulations=0", "evaluation.ladder_test_interval=1",
)
ENGINE = "stockfish@30"
BATCH, GAMES = 2, 6
"""Games within the budget of 7."""

REPORT = {
    "player": "gen-000003", "simulations": 0, "scale": "ladder 1", "num_games": 4, "score": 0.5,
    "elo": 0.0, "elo_low": None, "elo_high": 90.0, "bracket": ["random"], "start": "random",
    "ended_by": "games", "notice": None,
    "rungs": [
        {"player": "random", "elo": 0.0, "num_batches": 1, "num_games": 4, "score": 0.5},
    ],
}


EVEN = np.array([[2, 3, 6], [3, 4, 3], [6, 3, 2]])
BETTER = np.array([[9, 5, 6], [5, 4, 3], [6, 1, 1]])


def ladder_of(*pairs, **identities):
    """Games are cut so early that all are drawn."""
    pairings = [dict(zip(("player_a", "player_b", "pairs"), pair, strict=True)) for pair in pairs]
    return Ladder.from_json(ladder_json(pairings, identities, max_plies=6, origin={}))


def make_ladder():
    """Three players without an engine."""
    return ladder_of(
        ("greedy~50", "random", BETTER), ("greedy", "greedy~50", BETTER),
        ("greedy", "random", BETTER + EVEN),
    )


def engine_rung(identity):
    """A ladder with a rung of an engine."""
    return ladder_of(
        (ENGINE, "random", BETTER), ("greedy", ENGINE, BETTER), **{ENGINE: identity}
    )


def use(monkeypatch, ladder):
    for module in (ladder_tests, ratings):
        monkeypatch.setattr(module, "read_ladder", lambda: ladder)
    return ladder


@pytest.fixture(autouse=True)
def ladder(monkeypatch):
    return use(monkeypatch, make_ladder())


@pytest.fixture
def untrained(new_folder):
    def make(name="c", *changes):
        folder = new_folder(name, *LADDER_TESTS, *changes)
        prepare_first_generation(folder)
        begin_iteration(folder, 0, 0.0)
        return folder

    return make


def files_of(folder):
    return sorted(path.name for path in (folder.path / "matches" / "gen-000000").iterdir())


def test_it_ends_with_its_games_leaves_whole_matches_and_is_rated(untrained):
    folder, told = untrained(), []
    assert rate_campaign(folder) is None
    report = play_ladder_test(folder.path, 0, on_progress=lambda *now: told.append(now))
    assert (report.player, report.ended_by, report.start) == (
        "gen-000000", "games", "random"
    )
    assert sum(rung.num_games for rung in report.rungs) == report.num_games == GAMES
    assert report.bracket == ["random", "greedy~50", "greedy"]
    assert [rung.player for rung in report.rungs] == report.bracket
    assert {rung.score for rung in report.rungs} == {0.5}
    assert report.elo_low < report.elo < report.elo_high
    assert report.notice is None
    assert told[-1] == (GAMES, 7)
    assert files_of(folder) == [
        "climb-greedy.json", "climb-greedy~50.json", "climb-random.json", "climb.json"
    ]
    assert play_ladder_test(folder.path, 0) == report

    # Its games and the ladder's are in the ratings.
    assert (report.simulations, report.scale) == (0, ladder_tests.read_ladder().scale)
    rating = rating_of(rate_campaign(folder, 0), 0, 0)
    for name in ("elo", "elo_low", "elo_high", "num_games"):
        assert getattr(rating, name) == getattr(report, name)
    rated = rate_campaign(folder).ratings
    assert rated.of("greedy").num_games == 2 * (40 + 72) + BATCH
    assert set(rated.players) == {"random", "greedy~50", "greedy", "gen-000000"}


def test_it_ends_when_the_interval_is_narrow(untrained):
    folder = untrained(
        "c", "evaluation.ladder_test_interval=10000", "evaluation.ladder_test_games=60"
    )
    report = play_ladder_test(folder.path, 0)
    assert report.ended_by == "interval"
    assert report.num_games < 60


@pytest.mark.parametrize(("preset", "pairs"), [("smoke", 2), ("cpu", 5), ("gpu", 10)])
def test_batches_follow_from_the_games(preset, pairs):
    assert load_config(preset).evaluation.ladder_test_pairs == pairs


class StoppedError(Exception):
    pass


def play_until(folder, games):
    """Play, and be stopped once so many games are played."""
    def stop(done, _total):
        if done >= games:
            raise StoppedError

    with pytest.raises(StoppedError):
        play_ladder_test(folder.path, 0, on_progress=stop)


def test_stopped_anywhere_it_comes_to_the_same(untrained):
    expected = play_ladder_test(untrained("whole").path, 0)
    for after in (1, 5):
        folder = untrained(f"stopped-{after}")
        play_until(folder, after)
        assert len(list(folder.path.glob("matches/*/climb-*.json"))) == after // BATCH
        assert play_ladder_test(folder.path, 0) == expected


def test_stopped_between_its_report_and_its_matches_they_become_whole(untrained, monkeypatch):
    folder = untrained()

    def stop(*_arguments):
        raise StoppedError

    with monkeypatch.context() as patched:
        patched.setattr(ladder_tests, "finish_match", stop)
        with pytest.raises(StoppedError):
            play_ladder_test(folder.path, 0)
    assert len([name for name in files_of(folder) if ".part-" in name]) == GAMES // BATCH
    play_ladder_test(folder.path, 0)
    assert not [name for name in files_of(folder) if ".part-" in name]


def test_it_begins_where_an_older_generation_stood(untrained):
    folder = untrained()
    for generation, bracket in ((3, ["random", "greedy~50", "greedy"]), (4, ["greedy"])):
        path = folder.match(f"gen-{generation:06d}", "climb")
        write_signed(path, REPORT_VERSION, REPORT | {"bracket": bracket})

    assert ladder_tests.ladder_start(folder, 4) == -math.inf

    def start(generation):
        names = ("random", "greedy~50", "greedy")
        stood = ladder_tests.ladder_start(folder, generation)
        return min(names, key=lambda name: abs(make_ladder().rung(name).elo - stood))

    assert [start(generation) for generation in (3, 4, 5, 6, 9)] == [
        "random", "random", "greedy~50", "greedy", "greedy"
    ], "generation 4 may still be climbing while 5 does"


@pytest.mark.parametrize("damage", [
    {"bracket": []},
    {"rungs": [{"player": "random", "elo": 0.0, "num_batches": "1", "num_games": 4, "score": 0.5}]},
])
def test_a_damaged_report_is_named(new_folder, damage):
    folder = new_folder("c", *LADDER_TESTS)
    write_signed(folder.match("gen-000000", "climb"), REPORT_VERSION, REPORT | damage)
    for read in (
        lambda: play_ladder_test(folder.path, 0), lambda: ladder_tests.ladder_start(folder, 2)
    ):
        with pytest.raises(CorruptDataError, match=r"climb\.json"):
            read()


def test_the_search_budget_of_a_ladder_test_may_be_its_own(untrained):
    """So that campaigns whose matches have different budgets are rated with the same one."""
    folder = untrained("c", "evaluation.ladder_test_simulations=2")
    report = play_ladder_test(folder.path, 0)
    assert (report.player, report.simulations) == ("gen-000000@2", 2)
    assert rating_of(rate_campaign(folder, 0), 0, 2).elo == report.elo


def test_players_that_cannot_be_had_are_passed_over_and_named(untrained, monkeypatch):
    notice = "the ladder is without greedy"
    monkeypatch.setattr(
        ladder_tests, "available_players",
        lambda *_, **__: AvailablePlayers(("random", "greedy~50"), notice),
    )
    folder = untrained()
    assert ladder_notice(folder.config) == notice
    report = play_ladder_test(folder.path, 0)
    assert report.notice == notice
    assert report.bracket == ["random", "greedy~50"]


def test_batches_against_a_player_that_is_gone_are_lost_bug(untrained, ladder, monkeypatch):
    folder = untrained()
    play_until(folder, 2 * BATCH + 1)
    gone = next(
        name for name in ladder.players
        if name != "random" and folder.match_part("gen-000000", f"climb-{name}", 0).exists()
    )
    others = tuple(name for name in ladder.players if name != gone)
    monkeypatch.setattr(
        ladder_tests, "available_players",
        lambda *_, **__: AvailablePlayers(others, f"without {gone}")
    )
    report = play_ladder_test(folder.path, 0)
    assert report.num_games == GAMES
    assert gone in {rung.player for rung in report.rungs}
    assert gone not in report.bracket
    assert f"climb-{gone}.json" in files_of(folder)
    assert not [name for name in files_of(folder) if ".part-" in name]
    assert rating_of(rate_campaign(folder, 0), 0, 0).num_games == GAMES


def test_an_engine_that_fails_on_the_way_ends_the_campaign_bug(untrained, monkeypatch, tmp_path):
    ladder = use(monkeypatch, engine_rung("Engine 1"))
    monkeypatch.setattr(  # it was there when the ladder test began
        ladder_tests, "available_players", lambda *_, **__: AvailablePlayers(ladder.players, None)
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(engine_player, "GAMES_FOLDER", str(tmp_path))
    folder = untrained()
    report = play_ladder_test(folder.path, 0)
    assert report.num_games == GAMES
    assert [rung.player for rung in report.rungs] == ["random", "greedy"]
    assert ENGINE in report.notice


@pytest.fixture
def engine_ladder(monkeypatch, tmp_path):
    """Use a ladder with a rung that was rated as so-and-so, where a program of that name is."""
    write_engine(tmp_path, "sound").rename(tmp_path / "stockfish")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(engine_player, "GAMES_FOLDER", str(tmp_path))
    return lambda identity: use(monkeypatch, engine_rung(identity))


def test_another_version_of_the_engine_plays_its_rung_approximately(untrained, engine_ladder):
    engine_ladder("Fake  1.0")
    exact = play_ladder_test(untrained("exact").path, 0)
    engine_ladder("Engine 1")
    folder = untrained()
    report = play_ladder_test(folder.path, 0)
    assert exact.notice is None
    assert report.notice == ladder_notice(folder.config)
    assert report.rungs == exact.rungs
    assert ENGINE in {rung.player for rung in report.rungs}
    assert report.elo == exact.elo
    for end in ("elo_low", "elo_high"):
        off = abs(getattr(exact, end) - exact.elo)
        found = abs(getattr(report, end) - report.elo)
        assert found == pytest.approx(math.hypot(off, APPROXIMATE_ELO))


def test_a_climb_goes_on_without_a_rung_whose_engine_was_replaced(untrained, engine_ladder):
    ladder = engine_ladder("Fake  1.0")
    folder = untrained()
    play_until(folder, 2 * BATCH + 1)
    part = folder.match_part("gen-000000", f"climb-{ENGINE}", 0)
    assert part.exists(), [path.name for path in part.parent.iterdir()]
    facts = {"identity": "Engine 1", "failures": 0, "last_failure": None, "last_illegal": None}
    edit(part, programs={ENGINE: facts})
    report = play_ladder_test(folder.path, 0)
    assert report.num_games == GAMES
    met = {rung.player: rung.num_batches for rung in report.rungs}
    assert met[ENGINE] == 1
    assert ENGINE not in report.bracket
    assert set(ladder.players) >= met.keys()


def test_without_a_climb_nothing_is_said(new_folder):
    assert ladder_notice(new_folder("c").config) is None


def test_a_receipt_keeps_it_and_older_ones_have_none(new_folder):
    folder = new_folder("c", *LADDER_TESTS)
    ladder_test = from_json(LadderTestFacts, REPORT | {"elo_low": -90.0})
    plain = receipt_of(folder, 0)
    assert not [name for name in metrics_of(folder.config, plain) if "ladder" in name]
    write_receipt(folder, plain)
    path = folder.receipt(0)
    resign(path, lambda body: body.pop("ladder_test"))
    assert read_receipt(folder, 0).ladder_test is None
    edit(path, ladder_test=asdict(ladder_test))
    receipt = read_receipt(folder, 0)
    assert receipt.ladder_test == ladder_test
    row = figure_row(receipt)
    assert (row["ladder_elo"], row["ladder_elo_low"]) == (ladder_test.elo, ladder_test.elo_low)
    edit(path, ladder_test={"elo": 3})
    with pytest.raises(CorruptDataError, match=r"iter-000000\.json"):
        read_receipt(folder, 0)
