"""Many games at once are those of python-chess, and of 2048 by its definition."""

import sys
from pathlib import Path

import chess
import numpy as np
import pytest

import chess_snn
from chess_snn.games.chess import move_of_action

sys.path.append(str(Path(__file__).parents[1] / "games"))  # the oracles of the rules

import chess_oracle
import twenty48_oracle


def is_drawn(board: chess.Board) -> bool:
    return board.halfmove_clock >= 100 or (
        board.halfmove_clock >= 8 and board.is_repetition(3)
    )


def check_ending(board: chess.Board, ending: str) -> None:
    earlier = 2 if board.halfmove_clock >= 8 and board.is_repetition(3) else 0
    assert chess_oracle.termination(board, earlier) == ending


def play_beside_python_chess(num_games: int, max_plies: int, every: int) -> int:
    """Random games in batches of 100; returns how many ended by the rules."""
    rng, num_ended, width = np.random.default_rng(1), 0, 100
    env = chess_snn.make_env("chess", num_envs=width)
    for first in range(0, num_games, width):
        env.reset()
        boards = [chess.Board() for _ in range(width)]
        for ply in range(max_plies):
            if env.ended.all():
                break
            lists, counts = env.legal_actions()
            actions = lists[np.arange(width), rng.integers(0, np.maximum(counts, 1))].copy()
            going_on = np.flatnonzero(~env.ended)
            for row in going_on:
                board = boards[row]
                assert not is_drawn(board)
                if (row + ply + first) % every == 0:
                    wanted = chess_oracle.legal_actions(board)
                    assert set(lists[row, : counts[row]].tolist()) == set(wanted)
                    assert {env.moves(row)[move]: move for move in env.moves(row)} == wanted
                    assert env.position(row).fen() == board.fen(en_passant="legal")
                board.push(move_of_action(board, int(actions[row])))
            step = env.step(actions)
            for row in going_on[step.ended[going_on]]:
                check_ending(boards[row], env.endings[step.terminations[row]])
                assert step.rewards[row] == float(boards[row].is_checkmate())
                num_ended += 1
            assert not step.rewards[~step.ended].any()
    return num_ended


def test_40_games_are_those_of_python_chess():
    assert play_beside_python_chess(40, max_plies=200, every=29) > 2


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_10000_games_are_those_of_python_chess():
    assert play_beside_python_chess(10_000, max_plies=2000, every=5) == 10_000


def test_rewards_are_given_once_to_who_mated():
    env = chess_snn.make_env("chess", num_envs=2)
    env.reset(positions=["7k/8/6K1/8/8/8/8/5Q2 w - - 0 1"] * 2)
    moves = env.moves(0)
    step = env.step(np.array([moves[chess.Move.from_uci(uci)] for uci in ("f1f8", "f1f2")]))
    assert step.rewards.tolist() == [1, 0]
    assert step.ended.tolist() == env.ended.tolist() == [True, False]
    assert [env.endings[code] for code in step.terminations] == ["checkmate", "ongoing"]
    assert env.players.tolist() == [1, 1]
    assert env.plies.tolist() == [1, 1]
    lists, counts = env.legal_actions()
    assert counts[0] == 0
    step = env.step(np.array([0, lists[1, 0]]))
    assert step.rewards.tolist() == [0, 0]
    env.reset(env.ended)
    assert env.legal_actions()[1][0] == 20
    assert not env.legal_actions()[0].flags.writeable


def test_a_refused_step_changes_nothing():
    env = chess_snn.make_env("chess", num_envs=2)
    lists, _ = env.legal_actions()
    good = int(lists[0, 0])
    with pytest.raises(chess_snn.errors.IllegalMoveError, match="game 1"):
        env.step(np.array([good, -1]))
    assert env.plies.tolist() == [0, 0]


@pytest.mark.parametrize("fen", chess_oracle.ODD_POSITIONS[:10])
def test_planes_and_masks_are_the_position(fen):
    env = chess_snn.make_env("chess", num_envs=2)
    env.reset(np.array([1]), [fen])
    board = chess.Board(fen)
    planes, packed = env.observe(), env.observe(packed=True)
    assert (planes.shape, packed.shape) == ((2, 48, 8, 8), (2, 48))
    for plane, piece in enumerate(chess.PIECE_TYPES):
        for side in (board.turn, not board.turn):
            squares = board.pieces(piece, side)
            squares = squares if board.turn else squares.mirror()
            number = plane if side == board.turn else plane + 6
            found = np.flatnonzero(planes[1, number].ravel())
            assert set(found.tolist()) == set(squares)
            assert packed[1, number] == int(squares)
    mask = env.legal_mask()
    assert set(np.flatnonzero(mask[1]).tolist()) == set(chess_oracle.legal_actions(board))
    assert mask[0].sum() == 20


def test_2048_follows_its_rules_and_its_seeds():
    env, same, other = (chess_snn.make_env("2048", 8, seed=seed) for seed in (3, 3, 4))
    assert [env.position(row) for row in range(8)] != [other.position(row) for row in range(8)]
    first = [env.position(row) for row in range(8)]
    assert len(set(first)) > 4, "each game has tiles of its own"
    rng, points = np.random.default_rng(0), 0.0
    for _ in range(60):
        lists, counts = (array.copy() for array in env.legal_actions())
        actions = lists[np.arange(8), rng.integers(0, np.maximum(counts, 1))].copy()
        before = [env.position(row) for row in range(8)]
        step = env.step(actions)
        np.testing.assert_array_equal(step.rewards, same.step(actions).rewards)
        for row in np.flatnonzero(counts):
            board = [[int(tile) if tile != "." else 0 for tile in line.split()]
                     for line in before[row].split("/")]
            assert sorted(lists[row, : counts[row]]) == twenty48_oracle.legal_actions(board)
            slid, won = twenty48_oracle.move(board, twenty48_oracle.ACTIONS[actions[row]])
            assert step.rewards[row] == won
            after = [[int(tile) if tile != "." else 0 for tile in line.split()]
                     for line in env.position(row).split("/")]
            changed = [(a, b) for x, y in zip(slid, after, strict=True)
                       for a, b in zip(x, y, strict=True) if a != b]
            assert changed in ([(0, 2)], [(0, 4)])
            points += won
    assert points > 0
    env.reset()
    assert [env.position(row) for row in range(8)] != first
