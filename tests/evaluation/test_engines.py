"""Engines by name, and Stockfish itself where it is installed (``make stockfish``)."""

import chess
import chess.engine
import numpy as np
import pytest
from fake_engines import write_engine
from solved_games import SubtractionGame

from chess_snn.errors import ConfigError, EngineError
from chess_snn.evaluation.engines import player as engine_player
from chess_snn.evaluation.engines.player import find_engine
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.matches import play_match
from chess_snn.evaluation.named_players import (
    DilutedPlayer,
    check_player,
    is_player_name,
    make_player,
    split_dilution,
)
from chess_snn.evaluation.openings import random_openings
from chess_snn.evaluation.players import FORFEIT, VOID, RandomPlayer, program_of

PATIENT = EngineSettings(answer_s=120.0, start_s=120.0)


def zeros(num_games):
    return np.zeros(num_games, np.uint64), np.zeros(num_games, np.int32)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("stockfish@1", chess.engine.Limit(nodes=1)),
        ("stockfish@200", chess.engine.Limit(nodes=200)),
        ("stockfish:depth=1", chess.engine.Limit(depth=1)),
        ("stockfish:depth=4", chess.engine.Limit(depth=4)),
    ],
)
def test_stockfish_plays_what_python_chess_hears_from_it(
    stockfish, chess_game, batch_of, random_fens, text, limit
):
    fens = random_fens(10, seed=2)
    actions = make_player(chess_game, text, PATIENT).choose(batch_of(fens), *zeros(10))
    with chess.engine.SimpleEngine.popen_uci(str(stockfish), timeout=120) as engine:
        engine.configure({"Threads": 1, "Hash": 16})
        for fen, action in zip(fens, actions, strict=True):
            # A new game each time: the engine forgets.
            heard = engine.play(chess.Board(fen), limit, game=object()).move.uci()
            assert chess_game.format_action(chess_game.parse_state(fen), action) == heard


@pytest.mark.parametrize("processes", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_an_answer_depends_on_the_position_alone(
    stockfish, chess_game, batch_of, random_fens, processes
):
    settings = EngineSettings(processes, answer_s=120.0, start_s=120.0)
    player = make_player(chess_game, "stockfish@500", settings)
    fens = random_fens(9, seed=4)
    together = player.choose(batch_of(fens), *zeros(9))
    backwards = player.choose(batch_of(fens[::-1]), *zeros(9))
    np.testing.assert_array_equal(together, backwards[::-1])
    for fen, action in zip(fens, together, strict=True):
        assert player.choose(batch_of([fen]), *zeros(1))[0] == action


@pytest.mark.slow
def test_a_match_with_stockfish_is_reproducible(stockfish, chess_game):
    openings = random_openings(chess_game, 3, 4, seed=0)

    def play(processes):
        settings = EngineSettings(processes, answer_s=120.0, start_s=120.0)
        players = [
            make_player(chess_game, text, settings)
            for text in ("stockfish@20", "stockfish:depth=1~60")
        ]
        return play_match(chess_game, *players, openings, seed=5, max_plies=80)

    one, two = play(1), play(2)
    np.testing.assert_array_equal(one.plies, two.plies)
    np.testing.assert_array_equal(one.scores_a, two.scores_a)
    assert one.score > 0.5
    assert one.voided == one.forfeits_a == one.forfeits_b == 0
    for facts in one.programs.values():
        assert facts.identity.startswith("Stockfish")
        assert facts.failures == 0
    assert set(one.summary()["programs"]) == {"stockfish@20", "stockfish:depth=1~60"}


def test_ended_games_are_not_asked_about(stockfish, chess_game, batch_of):
    player = make_player(chess_game, "stockfish@1", PATIENT)
    batch = batch_of(["7k/6Q1/6K1/8/8/8/8/8 b - - 0 1", chess.STARTING_FEN])
    actions = player.choose(batch, *zeros(2))
    assert actions[0] == -1
    assert actions[1] >= 0


def test_a_closed_player_answers_nothing(stockfish, chess_game, batch_of):
    player = make_player(chess_game, "stockfish@1", PATIENT)
    player.choose(batch_of([chess.STARTING_FEN]), *zeros(1))
    player.close()
    assert player.choose(batch_of([chess.STARTING_FEN]), *zeros(1))[0] == -3


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("uci:{}@100", "uci:{}@100"),
        ("uci:{}@nodes=100", "uci:{}@100"),
        ("uci:{}:nodes=100", "uci:{}@100"),
        ("uci:{}:depth=3", "uci:{}:depth=3"),
        ("uci:{}@depth=03", "uci:{}:depth=3"),
        ("uci:{}:depth=3~12.5", "uci:{}:depth=3~12.5"),
    ],
)
def test_engines_as_text(chess_game, tmp_path, text, name):
    path = write_engine(tmp_path, "sound")
    text, name = text.format(path), name.format(path)
    assert is_player_name(text)
    player = make_player(chess_game, text)
    assert player.name == name
    assert make_player(chess_game, name).name == name
    assert not (tmp_path / "pids").exists(), "a process was started for a name"
    assert program_of(player).identity == "Fake  1.0"


@pytest.mark.parametrize("text", [
    "stockfish", "stockfish@", "stockfish:8", "stockfish@1e3", "stockfish:time=1", "stockfish@0",
    "stockfish@9999999999", "stockfish:depth=101", "stockfish:depth=1@5", "uci:@5", "uci@5",
])
@pytest.mark.parametrize("refuse", [make_player, check_player])
def test_bad_engine_names_are_refused(chess_game, refuse, text):
    assert is_player_name(text)
    with pytest.raises(ConfigError):
        refuse(chess_game, text)


@pytest.mark.parametrize("text", ["stockfishes@5", "ucinet:4", "campaigns/stockfish@5", "Random"])
def test_what_is_no_player_may_be_a_network(text):
    assert not is_player_name(text)


@pytest.mark.parametrize("text", [
    "stockfish@100", "stockfish:depth=3~50", "uci:fruit@nodes=100", "uci:/nowhere/fruit:depth=1",
])
def test_the_name_of_an_engine_can_be_read_where_it_is_not_installed_bug(
    bare_machine, chess_game, text
):
    with pytest.raises(EngineError):
        make_player(chess_game, text)
    check_player(chess_game, text)


def test_engines_are_found_on_the_path_and_beside_it(bare_machine, monkeypatch, tmp_path):
    folder = tmp_path / "games"
    folder.mkdir()
    engine = write_engine(folder, "stockfish").rename(folder / "stockfish")
    monkeypatch.setattr(engine_player, "GAMES_FOLDER", str(folder))
    assert find_engine("stockfish") == engine
    monkeypatch.setattr(engine_player, "GAMES_FOLDER", "/nowhere")
    monkeypatch.setenv("PATH", str(folder))
    assert find_engine("stockfish") == engine
    monkeypatch.chdir(folder)
    assert find_engine("./stockfish") == engine


def test_a_path_that_is_no_program(tmp_path):
    (tmp_path / "text").write_text("no program")
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(EngineError, match=str(path)):
            find_engine(str(path))
    with pytest.raises(EngineError, match="text"):
        find_engine(str(tmp_path / "text"))


def test_engines_play_chess_only(tmp_path):
    for refuse in (make_player, check_player):
        with pytest.raises(ConfigError, match="subtraction"):
            refuse(SubtractionGame(), f"uci:{write_engine(tmp_path, 'sound')}@5")


@pytest.mark.parametrize(
    ("field", "value"),
    [("processes", -1), ("answer_s", 0), ("start_s", float("nan")), ("restarts", -1),
     ("give_up_after", 0)],
)
def test_settings_out_of_range(field, value):
    with pytest.raises(ConfigError, match=rf"engine\.{field}"):
        EngineSettings(**{field: value})


NUM_ROWS = 20_000


class ConstantPlayer:
    """Answers one action always, legal or not, and counts what it is asked."""

    def __init__(self, action=-100):
        self.name, self.action, self.asked = "constant", action, 0

    def choose(self, batch, keys, plies):
        assert batch.num_legal.all(), "ended rows must not reach the player within"
        self.asked += len(batch)
        return np.full(len(batch), self.action, np.int16)


def streams(num_games, seed=3):
    return np.random.default_rng(seed).integers(0, 2**64, num_games, dtype=np.uint64)


@pytest.fixture
def starts(batch_of):
    return batch_of([chess.STARTING_FEN]).take(np.zeros(NUM_ROWS, np.int64))


@pytest.mark.parametrize("percent", [1, 25, 90, 99.5])
@pytest.mark.parametrize("across", ["games", "plies"])
def test_the_share_of_random_moves_is_what_was_asked_for(starts, percent, across):
    inner = ConstantPlayer()
    keys, plies = streams(NUM_ROWS), np.zeros(NUM_ROWS, np.int32)
    if across == "plies":
        keys, plies = np.repeat(keys[:1], NUM_ROWS), np.arange(NUM_ROWS, dtype=np.int32)
    actions = DilutedPlayer(inner, percent).choose(starts, keys, plies)
    is_random = actions != inner.action
    assert inner.asked == np.count_nonzero(~is_random)
    share = percent / 100
    deviation = np.sqrt(share * (1 - share) / NUM_ROWS)
    assert abs(is_random.mean() - share) < 4 * deviation


def test_random_moves_are_uniform_over_the_legal_ones(starts):
    keys, plies = streams(NUM_ROWS), np.zeros(NUM_ROWS, np.int32)
    for inner in (ConstantPlayer(), RandomPlayer()):
        actions = DilutedPlayer(inner, 50).choose(starts, keys, plies)
        _, counts = np.unique(actions[actions >= 0], return_counts=True)
        assert len(counts) == 20
        expected = counts.sum() / 20
        assert np.sum((counts - expected) ** 2 / expected) < 43.8  # 99.9 %, 19 degrees of freedom


def test_which_plies_are_random_does_not_depend_on_the_player_within(starts):
    keys, plies = streams(NUM_ROWS), np.zeros(NUM_ROWS, np.int32)
    one, two = (
        DilutedPlayer(ConstantPlayer(action), 30).choose(starts, keys, plies)
        for action in (-100, -200)
    )
    np.testing.assert_array_equal(one == -100, two == -200)
    np.testing.assert_array_equal(one[one >= 0], two[two >= 0])


@pytest.mark.parametrize("fault", [FORFEIT, VOID])
def test_a_fault_of_the_player_within_passes_through(starts, fault):
    actions = DilutedPlayer(ConstantPlayer(fault), 50).choose(
        starts, streams(NUM_ROWS), np.zeros(NUM_ROWS, np.int32)
    )
    assert set(actions[actions < 0]) == {fault}


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("greedy~25", ("greedy", 25.0)),
        ("stockfish:depth=1~2.5", ("stockfish:depth=1", 2.5)),
        ("uci:/opt/a~b/engine@10~90", ("uci:/opt/a~b/engine@10", 90.0)),
        ("uci:/opt/engine~b@10", ("uci:/opt/engine~b@10", None)),
        ("greedy", ("greedy", None)),
        ("greedy~", ("greedy~", None)),
        ("greedy~1e1", ("greedy~1e1", None)),
        ("greedy~-5", ("greedy~-5", None)),
    ],
)
def test_dilution_as_text(text, split):
    assert split_dilution(text) == split


def test_the_name_says_how_much(chess_game):
    assert make_player(chess_game, "minimax:2~25").name == "minimax:2~25"
    assert make_player(chess_game, "greedy~02.50").name == "greedy~2.5"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("greedy~0", "'greedy' .*got 0"), ("greedy~100", "got 100"), ("greedy~1000", "got 1000"),
        ("greedy~10~10", "greedy~10"),
        pytest.param("greedy" + "~10" * 1_000, "greedy~10", id="a thousand times"),
        ("greedy~", "'greedy~'"), ("greedy~x", "'greedy~x'"), ("~50", "''"),
        ("nobody~50", "'nobody'"),
    ],
)
@pytest.mark.parametrize("refuse", [make_player, check_player])
def test_bad_dilution_is_refused(chess_game, refuse, text, named):
    with pytest.raises(ConfigError, match=named):
        refuse(chess_game, text)
