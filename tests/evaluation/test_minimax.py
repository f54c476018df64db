import chess
import numpy as np
import pytest
from solved_games import SubtractionGame
from uniform_evaluator import UniformEvaluator

from chess_snn.errors import ConfigError
from chess_snn.evaluation.players import GreedyPlayer, MinimaxPlayer
from chess_snn.games import minimax
from chess_snn.games.minimax import WIN_VALUE, action_values
from chess_snn.search import SearchSettings, make_search

PAWNS = {chess.PAWN: 1, chess.KNIGHT: 3, chess.BISHOP: 3, chess.ROOK: 5, chess.QUEEN: 9}

MATE_IN_ONE = "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1"
MATE_IN_TWO = "7k/8/8/8/8/8/R7/1R4K1 w - - 0 1"
STALEMATE_TRAP = "7k/8/6K1/8/8/8/8/5Q2 w - - 0 1"
LAST_MOVE_BEFORE_FIFTY = "7k/8/8/8/8/8/R7/1R4K1 w - - 99 80"
FOOLS_MATE_LOOMS = "rnbqkbnr/pppp1ppp/8/4p3/8/5P2/PPPPP1PP/RNBQKBNR w KQkq - 0 2"
BACK_RANK_LOOMS = "r5k1/5ppp/8/8/8/6P1/3P1P1P/3Q2K1 w - - 0 1"
PROMOTION = "8/P6k/8/8/8/8/7p/K7 b - - 0 1"
TACTICAL = [
    MATE_IN_ONE, MATE_IN_TWO, STALEMATE_TRAP, LAST_MOVE_BEFORE_FIFTY, BACK_RANK_LOOMS, PROMOTION,
]


def oracle_state_value(board, depth_left):
    if board.is_checkmate():
        return -(WIN_VALUE + depth_left)
    if board.is_stalemate() or board.is_insufficient_material() or board.halfmove_clock >= 100:
        return 0
    if depth_left == 0:
        return sum(
            worth * (len(board.pieces(kind, board.turn)) - len(board.pieces(kind, not board.turn)))
            for kind, worth in PAWNS.items()
        )
    return max(oracle_action_values(board, depth_left).values())


def oracle_action_values(board, depth):
    """Value of each legal move in UCI, by plain recursion; a mate at the horizon is WIN_VALUE."""
    values = {}
    for move in list(board.legal_moves):
        board.push(move)
        values[move.uci()] = -oracle_state_value(board, depth - 1)
        board.pop()
    return values


def library_action_values(game, batch, depth):
    """The same, one dictionary a row."""
    values = iter(action_values(game, batch, depth))
    return [
        {
            game.format_action(batch.state[row], action): next(values)
            for action in batch.legal_actions[row, : batch.num_legal[row]]
        }
        for row in range(len(batch))
    ]


def streams(num_games, seed=0):
    keys = np.random.default_rng(seed).integers(0, 2**64, num_games, dtype=np.uint64)
    return keys, np.zeros(num_games, np.int32)


def chosen_moves(game, batch, player, seed=0):
    actions = player.choose(batch, *streams(len(batch), seed))
    pairs = zip(batch.state, actions, strict=True)
    return [game.format_action(state, action) for state, action in pairs]


@pytest.mark.parametrize(
    ("depth", "num_random", "max_moves"),
    [(1, 60, 100), (2, 15, 100), pytest.param(3, 4, 18, marks=pytest.mark.slow)],
)
def test_values_and_choice_equal_python_chess(
    chess_game, batch_of, random_fens, depth, num_random, max_moves
):
    fens = random_fens(num_random, depth, max_moves) + TACTICAL
    batch = batch_of(fens)
    oracle = [oracle_action_values(chess.Board(fen), depth) for fen in fens]
    assert library_action_values(chess_game, batch, depth) == oracle
    moves = chosen_moves(chess_game, batch, MinimaxPlayer(chess_game, depth))
    for fen, move, values in zip(fens, moves, oracle, strict=True):
        assert values[move] == max(values.values()), (fen, move)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_mates_in_one_even_where_it_could_mate_later(chess_game, batch_of, depth):
    batch = batch_of([MATE_IN_ONE] * 8)
    moves = chosen_moves(chess_game, batch, MinimaxPlayer(chess_game, depth))
    assert set(moves) == {"a1a8"}


def test_avoids_an_avoidable_mate_in_one(chess_game, batch_of):
    fens = [FOOLS_MATE_LOOMS] * 40 + [BACK_RANK_LOOMS] * 40
    moves = chosen_moves(chess_game, batch_of(fens), MinimaxPlayer(chess_game, 2))
    for fen, move in zip(fens, moves, strict=True):
        board = chess.Board(fen)
        board.push_uci(move)
        for reply in list(board.legal_moves):
            board.push(reply)
            assert not board.is_checkmate(), (fen, move, reply.uci())
            board.pop()


def test_a_draw_is_worth_nothing_to_the_side_that_is_ahead(chess_game, batch_of):
    [values] = library_action_values(chess_game, batch_of([STALEMATE_TRAP]), 1)
    assert values["f1f7"] == 0
    assert values["f1f8"] == WIN_VALUE
    assert values["f1a1"] == 9


def test_chunks_do_not_change_values(chess_game, batch_of, random_fens, monkeypatch):
    batch = batch_of(random_fens(6, seed=11))
    whole = action_values(chess_game, batch, 2)
    monkeypatch.setattr(minimax, "MAX_FRONTIER_ROWS", 50)
    np.testing.assert_array_equal(action_values(chess_game, batch, 2), whole)


def test_frontier_stays_within_its_bound(chess_game, batch_of, random_fens, monkeypatch):
    batch = batch_of(random_fens(40, seed=12))
    widths = []
    step = chess_game.step

    class Watched:
        spec = chess_game.spec
        heuristic_stm = staticmethod(chess_game.heuristic_stm)

        @staticmethod
        def step(children, actions):
            widths.append(len(children))
            step(children, actions)

    monkeypatch.setattr(minimax, "MAX_FRONTIER_ROWS", 300)
    action_values(Watched(), batch, 2)
    assert len(widths) > 40
    assert max(widths) <= 300


def test_best_actions_are_equally_likely(chess_game, batch_of):
    start = batch_of([chess.STARTING_FEN])
    moves = chosen_moves(
        chess_game, start.take(np.zeros(4000, np.int64)), GreedyPlayer(chess_game)
    )
    _, counts = np.unique(moves, return_counts=True)
    assert len(counts) == 20
    expected = 4000 / 20
    chi_square = np.sum((counts - expected) ** 2 / expected)
    assert chi_square < 43.8  # 99.9 % quantile at 19 degrees of freedom


def test_solves_the_subtraction_game():
    game = SubtractionGame()
    heaps = np.array([5, 6, 7, 9, 10, 11])
    batch = game.allocate(len(heaps))
    game.reset(batch, np.arange(len(heaps)), heaps[:, None].astype(np.uint64))
    actions = MinimaxPlayer(game, 6).choose(batch, *streams(len(heaps)))
    np.testing.assert_array_equal(actions + 1, heaps % 4)


def test_all_rows_ended():
    game = SubtractionGame()
    batch = game.allocate(2)
    game.reset(batch, np.arange(2), np.zeros((2, 1), np.uint64))
    actions = MinimaxPlayer(game, 3).choose(batch, *streams(2))
    np.testing.assert_array_equal(actions, [-1, -1])


def test_refuses_a_game_of_one_player():
    with pytest.raises(ConfigError):
        MinimaxPlayer(SubtractionGame(num_players=1), depth=1)


# The tree search itself solves a small game, from a network that knows nothing of it.


HEAPS = np.arange(1, 13, dtype=np.uint64)
SIMULATIONS = 2000


@pytest.mark.parametrize("kind", ["gumbel", "puct"])
def test_every_position_of_a_solved_game_is_played_perfectly(kind):
    """Without ``finds_wins``, which looks for a win at once by the rules."""
    game, count = SubtractionGame(), len(HEAPS)
    batch = game.allocate(count)
    game.reset(batch, np.arange(count), HEAPS[:, None])
    search = make_search(
        game, UniformEvaluator(), SearchSettings(kind=kind, finds_wins=False),
        simulations=SIMULATIONS, num_games=count,
    )
    result = search.run(
        batch, HEAPS, np.zeros(count, np.int32), np.zeros(count, np.float32)
    )
    is_won = HEAPS % 4 > 0
    np.testing.assert_array_equal(result.actions[is_won] + 1, HEAPS[is_won] % 4)
    assert (result.values_stm[is_won] > 0).all()
    assert (result.values_stm[~is_won] < 0).all()
