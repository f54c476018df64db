"""A network that learnt from an engine's games beats what it was before."""

import pytest
from made_imports import fixed_games

from chess_snn.campaign import load_config
from chess_snn.campaign.machine.training_launch import train_network
from chess_snn.errors import EngineError
from chess_snn.evaluation.engines.player import find_engine
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.match_files import match_pgn
from chess_snn.evaluation.matches import play_match
from chess_snn.evaluation.named_players import make_player
from chess_snn.evaluation.openings import book_openings, random_openings
from chess_snn.evaluation.players import SearchPlayer
from chess_snn.games import get_game
from chess_snn.nets import load_network, make_evaluator
from chess_snn.pgn.importing import import_pgn
from chess_snn.search import SearchSettings, make_search
from chess_snn.training import WEIGHTS

GAME = get_game("chess")
NUM_LEARNT = 1000
NUM_PLAYED = 60
SIMULATIONS = 64


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """Stockfish against itself from positions after random moves."""
    try:
        find_engine("stockfish")
    except EngineError as missing:
        pytest.skip(str(missing))
    players = [
        make_player(GAME, f"stockfish@{nodes}", EngineSettings(processes=2))
        for nodes in (40, 60)
    ]
    openings = random_openings(GAME, num_openings=NUM_LEARNT // 2, num_plies=8, seed=0)
    played = play_match(GAME, *players, openings, seed=0)
    texts = match_pgn(GAME, played, event="self", date="2026-01-01")
    folder = tmp_path_factory.mktemp("stockfish")
    (folder / "games.pgn").write_text("".join(text for _, text in texts))
    found = import_pgn(folder / "games.pgn", folder / "imported", workers=2)
    assert found.report.games == NUM_LEARNT
    return folder / "imported"


def seat(network, name, num_games):
    evaluator = make_evaluator(load_network(network / WEIGHTS), precision="bf16", num_threads=2)
    search = make_search(
        GAME, evaluator, SearchSettings(), simulations=SIMULATIONS, num_games=num_games
    )
    return SearchPlayer(search, name)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_network_that_has_learnt_beats_one_that_has_not(imported, tmp_path):
    for name, epochs in (("learnt", 4), ("untrained", 0)):
        config = fixed_games(load_config(settings=[
            f'supervised.games="{imported}"', f"supervised.epochs={epochs}",
        ]))
        points = train_network(config, tmp_path / name, num_threads=2)
        if epochs:
            first, last = points[0], points[-1]
            assert last["holdout_policy_accuracy"] > 2 * first["holdout_policy_accuracy"]
            assert last["holdout_value_loss"] < first["holdout_value_loss"]
    result = play_match(
        GAME, *(seat(tmp_path / name, name, NUM_PLAYED) for name in ("learnt", "untrained")),
        book_openings(GAME, NUM_PLAYED // 2, seed=0), seed=0, max_plies=300,
    )
    assert result.score >= 0.9
