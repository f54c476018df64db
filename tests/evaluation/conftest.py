import random

import chess
import numpy as np
import pytest

from chess_snn.errors import EngineError
from chess_snn.evaluation.engines import player as engine_player
from chess_snn.evaluation.engines.player import find_engine
from chess_snn.games import get_game


@pytest.fixture(scope="session")
def chess_game():
    return get_game("chess")


@pytest.fixture(scope="module")
def stockfish():
    """The program; tests are skipped where it is not installed."""
    try:
        return find_engine("stockfish")
    except EngineError as error:
        pytest.skip(str(error))


@pytest.fixture
def bare_machine(monkeypatch, tmp_path):
    """A machine without engines; its folder of programs."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(engine_player, "GAMES_FOLDER", str(programs))
    return programs


@pytest.fixture
def batch_of(chess_game):
    """Builds a GameBatch from FENs."""

    def build(fens):
        batch = chess_game.allocate(len(fens))
        states = np.stack([chess_game.parse_state(fen) for fen in fens])
        chess_game.reset(batch, np.arange(len(fens)), states)
        return batch

    return build


@pytest.fixture(scope="session")
def random_fens():
    """Draws n positions with legal moves by random play in python-chess."""

    def draw(n, seed, max_moves=100):
        stream, fens = random.Random(seed), []
        while len(fens) < n:
            board = chess.Board()
            for _ in range(stream.randint(2, 120)):
                if board.is_game_over(claim_draw=True):
                    break
                board.push(stream.choice(list(board.legal_moves)))
            if not board.is_game_over(claim_draw=True) and board.legal_moves.count() <= max_moves:
                fens.append(board.fen())
        return fens

    return draw
