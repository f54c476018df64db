"""Networks that come with the library, asked about boards; python-chess is the oracle."""

import random
import threading

import chess
import numpy as np
import pytest
from small_campaigns import make_weights

import chess_snn
from chess_snn.api.positions import read_positions
from chess_snn.games import get_game
from chess_snn.nets import build_network, net_config, save_network

MATE = "7k/8/6K1/8/8/8/8/5Q2 w - - 0 1"  # Qf8 mates, Qf7 stalemates
BLACK = "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 2"
PROMOTION = "8/P6k/8/8/8/8/7K/1n6 w - - 0 1"
CASTLING = "r3k2r/pppppppp/8/8/8/8/PPPPPPPP/R3K2R w KQkq - 0 1"
EN_PASSANT = "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3"
POSITIONS = [chess.STARTING_FEN, MATE, BLACK, PROMOTION, CASTLING, EN_PASSANT]
TILES = ["2 . . 4/. . . ./. . . ./. . . 2", "2 2 4 8/4 8 16 32/8 16 32 64/16 32 64 128"]
GAME = get_game("chess")


@pytest.fixture(scope="module")
def net():
    with chess_snn.load("chess-small", precision="fp32", threads=1) as net:
        yield net


@pytest.fixture(scope="module")
def tiles_net():
    with chess_snn.load("2048", threads=1) as net:
        yield net


def played(seed: int, plies: int) -> chess.Board:
    """A board with its moves."""
    rng, board = random.Random(seed), chess.Board()
    while len(board.move_stack) < plies and not board.is_game_over(claim_draw=True):
        board.push(rng.choice(list(board.legal_moves)))
    return board


def test_policies_are_over_the_legal_moves_and_a_list_is_one_batch(net):
    boards = [*POSITIONS, *(chess.Board(fen) for fen in POSITIONS)]
    answers = net.evaluate(boards)
    for position, answer in zip(boards, answers, strict=True):
        board = chess.Board(position) if isinstance(position, str) else position
        assert set(answer.policy) == set(board.legal_moves)
        shares = list(answer.policy.values())
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) == pytest.approx(1)
        assert answer.move == next(iter(answer.policy))
        win, draw, loss = answer.wdl_stm
        assert win + draw + loss == pytest.approx(1, abs=1e-5)
        assert answer.value_stm == pytest.approx(win - loss, abs=1e-5)
    assert answers[: len(POSITIONS)] == answers[len(POSITIONS) :], "a board is its FEN"
    assert net.evaluate(BLACK).wdl_stm == pytest.approx(answers[2].wdl_stm, abs=1e-5)
    assert net.evaluate([]) == net.search([]) == net.spikes([]) == []
    assert isinstance(net.evaluate([BLACK]), list)
    assert net.evaluate("startpos") == net.evaluate(chess.Board())


def test_answers_are_those_of_the_arrays(net):
    batch = read_positions(GAME, POSITIONS)
    arrays = net.evaluator.evaluate(
        GAME.planes(batch.state), batch.legal_actions, batch.num_legal
    )
    for row, answer in enumerate(net.evaluate(POSITIONS)):
        assert answer.wdl_stm == pytest.approx(arrays.wdl_stm[row].tolist(), abs=1e-6)
        best = batch.legal_actions[row, arrays.legal_logits[row].argmax()]
        assert answer.move.uci() == GAME.format_action(batch.state[row], best)


@pytest.mark.parametrize("seed", [0, 1, 4, 9, 15, 19, 25, 31, 37, 38])
def test_a_board_brings_its_past_along(seed):
    """Two of the games ended and are taken back; the last position came about twice."""
    board = played(seed, plies=10 + 5 * seed)
    while board.is_game_over(claim_draw=True):
        board.pop()
    assert board.is_repetition(2) == (seed == 38)
    (row,) = read_positions(GAME, [board]).state
    batch = GAME.allocate(1)
    for move in board.move_stack:
        GAME.step(batch, np.array([GAME.parse_action(batch.state[0], move.uci())], np.int16))
    np.testing.assert_array_equal(row, batch.state[0])


def test_repetitions_and_draws_nobody_claimed_are_seen(net):
    board, shuffle = chess.Board(), ("g1f3", "g8f6", "f3g1", "f6g8")
    plain = net.evaluate(board)
    for uci in shuffle:
        board.push_uci(uci)
    assert net.evaluate(board).wdl_stm != plain.wdl_stm
    for uci in shuffle:
        board.push_uci(uci)
    with pytest.raises(chess_snn.errors.PositionError, match="threefold repetition"):
        net.evaluate(board)
    board.push_uci("g1h3")  # they play on
    assert set(net.evaluate(board).policy) == set(board.legal_moves)
    odd = chess.Board()
    odd.push(chess.Move.null())
    assert set(net.evaluate(odd).policy) == set(odd.legal_moves)


@pytest.mark.parametrize("simulations", [1, 24])
def test_a_search_adds_up_and_its_line_can_be_played(net, simulations):
    for fen, found in zip(POSITIONS, net.search(POSITIONS, simulations), strict=True):
        board = chess.Board(fen)
        assert {candidate.move for candidate in found.candidates} == set(board.legal_moves)
        assert found.move == found.candidates[0].move == found.line[0]
        visits = [candidate.visits for candidate in found.candidates[1:]]
        assert visits == sorted(visits, reverse=True)
        assert 0 < found.visits <= simulations
        assert sum(found.policy.values()) == pytest.approx(1, abs=1e-4)
        assert sum(c.prior for c in found.candidates) == pytest.approx(1, abs=1e-4)
        for candidate in found.candidates:
            assert (candidate.value_stm is None) == (candidate.visits == 0)
        for move in found.line:
            assert move in board.legal_moves
            board.push(move)
        assert found.evaluation.wdl_stm == pytest.approx(net.evaluate(fen).wdl_stm, abs=1e-5)


@pytest.mark.parametrize("kind", ["gumbel", "puct"])
def test_the_settings_of_a_search_may_stand_behind_the_name(kind):
    with chess_snn.load(f"chess-small#search.kind={kind}", threads=1) as net:
        found, again = net.search(BLACK, 40), net.search(BLACK, 40)
    assert net.settings.kind == kind
    assert found.visits == 40
    assert found == again
    visits = [candidate.visits for candidate in found.candidates[1:]]
    assert visits == sorted(visits, reverse=True)


def test_a_search_finds_mate_alone_and_in_a_list(net):
    alone = net.search(MATE, 64)
    assert alone.move == chess.Move.from_uci("f1f8")
    assert alone.value_stm > 0.9
    again = net.search([BLACK, MATE], 64)[1]
    assert [c.visits for c in again.candidates] == [c.visits for c in alone.candidates]
    assert again.line == alone.line


def test_without_simulations_the_policy_is_played_and_a_temperature_draws(net):
    found, answer = net.search(BLACK, 0), net.evaluate(BLACK)
    assert found.move == answer.move
    assert found.policy == answer.policy
    assert (found.visits, found.line, found.value_stm) == (0, (answer.move,), answer.value_stm)
    moves = [net.search(BLACK, 0, temperature=3.0, seed=seed).move for seed in range(12)]
    assert len(set(moves)) > 2
    assert moves == [a.move for a in net.search([BLACK] * 12, 0, temperature=3.0)]


def test_a_search_that_is_stopped_has_what_it_has(net):
    found = net.search(BLACK, 400, is_stopped=lambda: True)
    assert 0 < found.visits < 400


def test_moves_that_end_the_game_have_exact_odds(net):
    outlooks = net.evaluate_moves(MATE)
    board = chess.Board(MATE)
    assert set(outlooks) == set(board.legal_moves)
    assert outlooks[chess.Move.from_uci("f1f8")].wdl_stm == (1.0, 0.0, 0.0)
    assert outlooks[chess.Move.from_uci("f1f7")].wdl_stm == (0.0, 1.0, 0.0)
    for move, outlook in net.evaluate_moves(BLACK).items():
        after = chess.Board(BLACK)
        after.push(move)
        win, draw, loss = net.evaluate(after).wdl_stm
        assert outlook.wdl_stm == pytest.approx((loss, draw, win), abs=1e-5)
        assert outlook.value_stm == pytest.approx(loss - win, abs=1e-5)


def test_spikes_are_whole_numbers_that_add_up(net):
    one, other = net.spikes([BLACK, MATE])
    assert list(one) == list(other)
    layer = one["policy.neurons"]
    assert (layer.dtype, layer.shape[-2:]) == (np.uint8, (8, 8))
    assert one.total == sum(int(layer.sum()) for layer in one.values())
    assert 0 < one.rate < 1
    assert all(0 <= rate <= 1 for rate in one.rates.values())
    assert max(layer.max() for layer in one.values()) <= one.most
    assert one.work.total("active") == one.total
    assert one.total != other.total
    with net.copy() as copied:
        assert copied.spikes(BLACK).counts == one.counts


def test_changes_are_differences_of_spikes(net):
    boards = [chess.Board()]
    for move in ("e4", "e5"):
        boards.append(boards[-1].copy())
        boards[-1].push_san(move)
    old, new = net.spikes([boards[0], boards[2]])
    changed = net.spikes(boards[2], before=boards[0])
    for name, spikes_TX in changed.items():
        assert np.array_equal(spikes_TX, np.abs(new[name].astype(int) - old[name]))
    assert 0 < changed.total < new.total
    assert changed.work.sender_share < new.work.sender_share
    assert net.spikes([boards[0]], before=[boards[0]])[0].total == 0
    with pytest.raises(chess_snn.errors.PositionError):
        net.spikes(boards[:2], before=boards[:1])


def test_a_baseline_has_no_spikes(tmp_path):
    path = tmp_path / "relu.safetensors"
    save_network(path, build_network(GAME.spec, net_config("tiny").baseline(), 0))
    spikes = chess_snn.load(path).spikes(chess.Board())
    assert (len(spikes), spikes.total, spikes.rate) == (0, 0, 0.0)


def test_2048_is_asked_in_points_and_names(tiles_net):
    for rows, answer in zip(TILES, tiles_net.evaluate(TILES), strict=True):
        assert set(answer.policy) <= {"left", "right", "up", "down"}
        assert answer.wdl_stm is None
        assert answer.value_stm > 4
        outlooks = tiles_net.evaluate_moves(rows)
        assert set(outlooks) == set(answer.policy)
    found = tiles_net.search(TILES[0], 16)
    assert found.move in tiles_net.evaluate(TILES[0]).policy
    assert found.visits == 16
    assert tiles_net.spikes(TILES[0])["neurons"].shape[-2:] == (4, 4)


def test_names_stand_for_networks(net, tmp_path):
    assert (net.name, net.game) == ("shipped/chess-small", "chess")
    assert "chess-small" in repr(net)
    weights = make_weights(tmp_path / "net.safetensors")
    plain, more = chess_snn.load(weights), chess_snn.load(f"{weights}#ticks=3")
    assert more.network.config.ticks == 3
    assert plain.copy(ticks=3).evaluate(BLACK) == more.evaluate(BLACK)


def test_several_threads_may_ask(net):
    wanted = net.search(BLACK, 16)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(net.search(BLACK, 16))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.line for each in found] == [wanted.line] * 4
