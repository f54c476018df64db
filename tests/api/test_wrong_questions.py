"""Whatever is wrong with a question is one line that names the value and what to give instead."""

import chess
import chess.variant
import numpy as np
import pytest

import chess_snn
from chess_snn import extras, load
from chess_snn.errors import (
    CampaignError,
    ChessSnnError,
    ClosedError,
    ConfigError,
    ExtraError,
    IllegalMoveError,
    PositionError,
    UsageError,
)

ROWS = "2 . . 4/. . . ./. . . ./. . . 2"
MATED = "7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"


@pytest.fixture(scope="module")
def nets():
    with chess_snn.load("chess-small", threads=1) as chess_net, chess_snn.load("2048") as tiles:
        yield {"chess": chess_net, "2048": tiles}


def chess960() -> chess.Board:
    return chess.Board.from_chess960_pos(5)


@pytest.mark.parametrize(("game", "position", "named"), [
    ("chess", chess.variant.AtomicBoard(), "a board of atomic; give a chess.Board"),
    ("chess", chess.variant.CrazyhouseBoard(), "crazyhouse"),
    ("chess", chess960(), "castling rights"),
    ("chess", chess.Board(None), "impossible position '8/8/8/8/8/8/8/8 w - - 0 1'"),
    ("chess", "8/8 w", "not a FEN: '8/8 w'"),
    ("chess", "", "not a FEN"),
    ("chess", MATED, r"the game is over in '7k/6Q1.*' \(checkmate\); give an earlier position"),
    ("chess", chess.Board(MATED), "checkmate"),
    ("chess", "7k/8/6K1/8/8/8/8/1Q6 w - - 100 90", "fifty moves"),
    ("chess", "7k/8/6K1/8/8/8/8/8 w - - 0 1", "insufficient material"),
    ("chess", ROWS, "is a position of 2048, and chess is played here; give a chess.Board"),
    ("chess", None, "None is of the type NoneType; give a chess.Board or a FEN"),
    ("chess", b"startpos", "bytes"),
    ("chess", 4, "int"),
    ("chess", np.zeros((8, 8)), "ndarray"),
    ("chess", {"fen": 1}, "dict"),
    ("chess", [chess.Board(), MATED], "position 1 of the list: the game is over"),
    ("chess", [chess.Board(), ROWS], "position 1 of the list: .* is a position of 2048"),
    ("chess", [chess.Board(), [chess.Board()]], "position 1 of the list: .* the type list"),
    ("2048", chess.Board(), "is a position of chess, and 2048 is played here; give rows"),
    ("2048", chess.STARTING_FEN, "is a position of chess"),
    ("2048", f"{ROWS} +", "a chance event is still to come"),
    ("2048", "2 3 . ./. . . ./. . . ./. . . .", "2 3"),
    ("2048", [ROWS, chess.Board()], "position 1 of the list"),
])
def test_wrong_positions(nets, game, position, named):
    with pytest.raises(PositionError, match=named) as refused:
        nets[game].evaluate(position)
    assert "\n" not in str(refused.value)


def test_every_question_refuses_wrong_positions(nets):
    net = nets["chess"]
    for ask in (net.search, net.spikes, net.evaluate_moves, net.player(2).move):
        for position, named in ((ROWS, "is a position of 2048"), (MATED, "checkmate")):
            with pytest.raises(PositionError, match=named):
                ask(position)


@pytest.mark.parametrize("arguments", [
    {"simulations": -1}, {"simulations": 100_001}, {"temperature": -1.0},
    {"temperature": float("nan")}, {"seed": -1},
])
def test_numbers_out_of_range(nets, arguments):
    (name,) = arguments
    with pytest.raises(ConfigError, match=name):
        nets["chess"].search(chess.Board(), **arguments)


def test_trees_that_need_too_much_memory(nets, tmp_path):
    with pytest.raises(ConfigError, match=r"search\.memory_mib"):
        chess_snn.load("chess-small#search.memory_mib=1").search(chess.Board(), 5000)


@pytest.mark.parametrize(("ask", "kind", "named"), [
    (lambda: load("nowhere"), UsageError, "'nowhere' does not exist"),
    (lambda: load("chesss"), UsageError, r"did you mean chess\?"),
    (lambda: load("chess", game="2048"), UsageError, "is of the game chess; give one of"),
    (lambda: load("chess", game="go"), UsageError, "go"),
    (lambda: load("random"), UsageError, "is a player"),
    (lambda: load("chess-small", device="tpu").evaluate("startpos"), ConfigError, "tpu"),
    (lambda: load("chess-small", precision="fp8").evaluate("startpos"), ConfigError, "fp8"),
    (lambda: load("chess-small", threads=0).evaluate("startpos"), ConfigError, "threads"),
    (lambda: load("chess").copy(ticks=2), ConfigError, "ticks"),
    (lambda: chess_snn.player("bob"), UsageError, "'bob' does not exist"),
    (lambda: chess_snn.player("expectimax:2"), ConfigError, "one player"),
    (lambda: chess_snn.player("chess", game="2048"), UsageError, "is of the game chess"),
    (lambda: chess_snn.play_match("random", "random"), ConfigError, "named 'random'"),
    (lambda: chess_snn.play_match("random", "greedy", games=3), UsageError, "even, got 3"),
    (lambda: chess_snn.play_match("random", "greedy", games=0), ConfigError, "games"),
    (lambda: chess_snn.play_match("random", "greedy", max_plies=-1), ConfigError, "max_plies"),
    (lambda: chess_snn.play_match("random", "greedy", openings="gambit"), UsageError, "'gambit'"),
    (lambda: chess_snn.play_match("random", "greedy", openings=[MATED]), PositionError, "over"),
    (lambda: chess_snn.play_match("random", "greedy", openings=[]), ConfigError, "openings"),
    (lambda: chess_snn.play_match(
        chess_snn.load("2048").player(0), "random", openings=[ROWS]), UsageError, "seeds"),
    (lambda: chess_snn.play_match(chess_snn.load("2048").player(0), chess_snn.player("random")),
     UsageError, "different games, 2048 and chess"),
    (lambda: chess_snn.open_campaign("nowhere"), CampaignError, "holds no campaign"),
    (lambda: chess_snn.make_env("go"), ConfigError, "unknown game 'go'"),
    (lambda: chess_snn.make_env("chess", 0), ConfigError, "num_envs"),
    (lambda: chess_snn.make_env("chess", 2).step(np.array([0, 0])), IllegalMoveError,
     "action 0 of game 0 is illegal in 'rnbq"),
    (lambda: chess_snn.make_env("chess", 2).step(np.array([0])), IllegalMoveError, "2 whole"),
    (lambda: chess_snn.make_env("chess", 1).step(np.array([0.5])), IllegalMoveError, "float64"),
    (lambda: chess_snn.make_env("chess", 1).step(np.array([70_000])), IllegalMoveError, "70000"),
    (lambda: chess_snn.make_env("chess").reset(positions=[ROWS]), PositionError, "of 2048"),
    (lambda: chess_snn.make_env("chess").reset(positions=[]), PositionError, "1 row"),
    (lambda: chess_snn.make_env("chess").reset(np.array([1])), UsageError, "rows"),
])
def test_wrong_calls(ask, kind, named):
    with pytest.raises(kind, match=named) as refused:
        ask()
    assert isinstance(refused.value, ChessSnnError)
    assert "\n" not in str(refused.value)


def test_a_closed_network_is_named():
    net = chess_snn.load("chess-small", threads=1)
    player = net.player(2)
    net.close()
    net.close()
    for ask in (net.evaluate, net.search, net.evaluate_moves, player.move):
        with pytest.raises(ClosedError, match="chess-small is closed; load it again"):
            ask(chess.Board())
    with pytest.raises(ClosedError):
        chess_snn.play_match(player, "random", games=2)
    assert net.spikes(chess.Board()).total > 0, "which needs no device"


@pytest.mark.parametrize("ask", [
    lambda: chess_snn.pettingzoo_env("chess"),
    lambda: load("models:/chess-snn@champion"),
    lambda: chess_snn.start_campaign("smoke"),
])
def test_a_missing_extra_is_named(ask, monkeypatch, tmp_path):
    def missing(module):
        raise ModuleNotFoundError(name=module.partition(".")[0])

    monkeypatch.setattr(extras.importlib, "import_module", missing)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ExtraError, match=r"pip install 'chess-snn\[\w+\]'"):
        ask()
    assert not list(tmp_path.iterdir())
