import chess
import numpy as np
import pytest

from chess_snn.evaluation.analysis import analyse
from chess_snn.games.chess import move_of_action
from chess_snn.nets import build_network, make_evaluator, net_config
from chess_snn.search import SearchSettings, make_tree_search

MATE_OR_STALEMATE = "7k/8/6K1/8/8/8/8/5Q2 w - - 0 1"  # Qf8 mates, Qf7 stalemates
MIDDLEGAME = "r1bqkb1r/pppp1ppp/2n2n2/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 4 4"
BLACK_TO_MOVE = "8/5k2/8/8/8/2K1R3/6p1/8 b - - 0 1"


@pytest.fixture(scope="module")
def evaluator(chess_game):
    with make_evaluator(build_network(chess_game.spec, net_config("tiny"), seed=5)) as ready:
        yield ready


@pytest.fixture
def analysis_of(chess_game, evaluator, batch_of):
    def look(fen, simulations=60, **settings):
        search = make_tree_search(
            chess_game, evaluator, SearchSettings(**settings), simulations=simulations, num_games=1
        )
        return analyse(chess_game, search, batch_of([fen]))

    return look


def uci_of(analysis, fen):
    board = chess.Board(fen)
    return [move_of_action(board, int(action)).uci() for action in analysis.report.actions]


def test_moves_that_end_the_game_have_exact_odds(analysis_of):
    analysis = analysis_of(MATE_OR_STALEMATE, considered_actions=64)
    moves = uci_of(analysis, MATE_OR_STALEMATE)
    assert sorted(moves) == sorted(m.uci() for m in chess.Board(MATE_OR_STALEMATE).legal_moves)
    np.testing.assert_array_equal(analysis.actions_wdl_stm[moves.index("f1f8")], [1, 0, 0])
    np.testing.assert_array_equal(analysis.actions_wdl_stm[moves.index("f1f7")], [0, 1, 0])
    best = analysis.ranking()[0]
    assert moves[best] == "f1f8"
    assert analysis.report.principal_variation == (analysis.report.actions[best],)


@pytest.mark.parametrize("fen", [MIDDLEGAME, BLACK_TO_MOVE])
def test_other_moves_have_the_networks_odds_turned_round(
    chess_game, evaluator, analysis_of, batch_of, fen
):
    analysis = analysis_of(fen)
    for uci, wdl in zip(uci_of(analysis, fen), analysis.actions_wdl_stm, strict=True):
        board = chess.Board(fen)
        board.push_uci(uci)
        after = batch_of([board.fen()])
        answer = evaluator.evaluate(
            chess_game.planes(after.state), after.legal_actions, after.num_legal
        )
        assert np.ptp(answer.wdl_stm) > 0.01, "the test needs an opinion"
        np.testing.assert_allclose(wdl, answer.wdl_stm[0, ::-1], atol=1e-6)
    before = batch_of([fen])
    answer = evaluator.evaluate(
        chess_game.planes(before.state), before.legal_actions, before.num_legal
    )
    np.testing.assert_array_equal(analysis.wdl_stm, answer.wdl_stm[0])


@pytest.mark.parametrize("kind", ["gumbel", "puct", "policy"])
def test_the_choice_leads_and_visits_follow(analysis_of, kind):
    analysis = analysis_of(MIDDLEGAME, kind=kind)
    report, ranking = analysis.report, analysis.ranking()
    assert sorted(ranking) == list(range(len(report.actions)))
    assert report.actions[ranking[0]] == report.principal_variation[0]
    visits = report.visits[ranking[1:]]
    assert (np.diff(visits) <= 0).all()
    assert report.visits.sum() == 60


def test_the_same_question_has_the_same_answer(analysis_of):
    first, again = analysis_of(MIDDLEGAME), analysis_of(MIDDLEGAME)
    np.testing.assert_array_equal(first.report.visits, again.report.visits)
    np.testing.assert_array_equal(first.actions_wdl_stm, again.actions_wdl_stm)
    assert first.report.principal_variation == again.report.principal_variation
