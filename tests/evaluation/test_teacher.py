"""An engine's analysis of a position becomes a policy and a value."""

import asyncio

import chess
import chess.engine
import numpy as np
import pytest

from chess_snn.evaluation.engines.process import Candidate
from chess_snn.evaluation.engines.teacher import (
    EngineTeacher,
    Lines,
    expected_score,
    score_cp,
    softmax_of,
)
from chess_snn.evaluation.openings import random_openings

DEPTH = 4
LINES = 3


def as_python_chess_reads_it(program, boards):
    """{move: (score, is it a mate)} of each position, asked one after the other."""

    async def ask():
        _, engine = await chess.engine.popen_uci(str(program))
        await engine.configure({"Threads": 1, "Hash": 16})
        game = object()
        found = []
        for board in boards:
            lines = await engine.analyse(
                board, chess.engine.Limit(depth=DEPTH), multipv=LINES, game=game
            )
            found.append({line["pv"][0].uci(): line["score"].relative for line in lines})
        await engine.quit()
        return found

    return asyncio.run(ask())


@pytest.mark.oracle
def test_labels_are_what_python_chess_reads(stockfish, chess_game):
    batch = chess_game.allocate(24)
    openings = random_openings(chess_game, 24, 12, seed=3)
    chess_game.reset(batch, np.arange(24), openings)
    mate_in_one = chess_game.parse_state("6k1/5ppp/8/8/8/8/8/K3R3 w - - 0 1")
    chess_game.reset(batch, np.array([5]), mate_in_one[None])
    boards = [chess.Board(chess_game.format_state(state)) for state in batch.state]

    lines = Lines(LINES, temperature_cp=80.0)
    said = EngineTeacher(chess_game, f"stockfish:depth={DEPTH}", lines).label(batch)

    for row, scores in enumerate(as_python_chess_reads_it(stockfish, boards)):
        shares = {
            chess_game.format_action(batch.state[row], batch.legal_actions[row, slot]):
            said.policy_targets[row, slot]
            for slot in np.flatnonzero(said.policy_targets[row])
        }
        # python-chess counts a mate in n as 10,000 - n, which suits no temperature.
        cp = np.array([
            10_000 - 100 * score.mate() if score.is_mate() and score.mate() > 0
            else score.score(mate_score=10_000) for score in scores.values()
        ], float)
        wanted = np.exp((cp - cp.max()) / 80.0)
        for move, share in zip(scores, wanted / wanted.sum(), strict=True):
            assert shares.get(move, 0.0) == pytest.approx(share, abs=1e-6)
        best = next(iter(scores.values()))
        assert said.values_stm[row] == pytest.approx(
            2 * best.wdl(model="lichess").expectation() - 1, abs=2e-3
        )
    assert said.values_stm[5] == pytest.approx(1.0)
    assert said.policy_targets.sum(axis=1) == pytest.approx(np.ones(24), abs=1e-6)


@pytest.mark.oracle
@pytest.mark.parametrize("cp", [-1000, -340, -12, 0, 55, 999])
def test_the_value_is_the_expected_score_of_lichess(cp):
    wdl = chess.engine.Cp(cp).wdl(model="lichess")
    assert expected_score(cp) == pytest.approx(2 * wdl.expectation() - 1, abs=2e-3)


def test_a_sooner_mate_is_better_and_a_later_one_against_us():
    scores = [
        score_cp(Candidate("", *each)) for each in [
            ("mate", 1), ("mate", 2), ("mate", 90), ("cp", 9_000), ("cp", 3), ("mate", -7),
            ("mate", -1), ("mate", 0),
        ]
    ]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] - scores[1] == 100


def test_shares_are_a_softmax():
    shares = softmax_of(np.array([100.0, 50.0, -1e6]), 50.0)
    e = np.e
    assert shares == pytest.approx([e / (e + 1), 1 / (e + 1), 0.0], abs=1e-6)
