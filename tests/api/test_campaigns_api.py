"""A played campaign read from Python: figures, networks, games."""

import io

import chess
import chess.pgn
import numpy as np
import pytest

import chess_snn
from chess_snn.campaign import campaign_lock
from chess_snn.campaign.configuration.loading import _name_and_value
from chess_snn.errors import CampaignError, CampaignLockedError, UsageError


@pytest.fixture(scope="module")
def campaign(played_campaign):
    return chess_snn.open_campaign(str(played_campaign.path))


def test_what_a_campaign_is(campaign, played_campaign):
    assert (campaign.name, campaign.game, campaign.path) == (
        played_campaign.name, "chess", played_campaign.path)
    assert (campaign.iterations, campaign.generations) == (2, [0, 1, 2])
    assert campaign.config == played_campaign.config
    assert "2 iterations" in repr(campaign)


def test_figures_are_a_frame_of_one_row_an_iteration(campaign):
    pytest.importorskip("pandas")
    frame = campaign.figures()
    assert frame["iteration"].tolist() == [0, 1]
    assert frame["generation"].tolist() == [1, 2]
    assert {"champion", "progress", "elapsed_s"} <= set(frame.columns)
    assert frame["progress"].iloc[-1] == 1.0


def test_networks_are_found_by_generation(campaign):
    newest, first = campaign.network(), campaign.network(0, threads=1)
    assert newest.name.endswith("@2")
    assert first.name.endswith("@0")
    assert campaign.network("champion").game == "chess"
    assert len(first.evaluate(chess.Board()).policy) == 20
    with pytest.raises(CampaignError, match="no generation 9"):
        campaign.network(9)


def test_games_are_legal_with_targets_and_values(campaign):
    games = list(campaign.games())
    assert [game.iteration for game in games] == [0] * 6 + [1] * 6
    assert [game.moves for game in campaign.games(iteration=1)] == [g.moves for g in games[6:]]
    for game in games[::3]:
        assert len(game) == len(game.moves) == len(game.policies) == len(game.values_stm)
        assert len(game.positions) == len(game) + 1
        for fen, move, policy, after in zip(
            game.positions, game.moves, game.policies, game.positions[1:], strict=False
        ):
            board = chess.Board(fen)
            assert move in board.legal_moves
            assert set(policy) <= set(board.legal_moves)
            assert sum(policy.values()) == pytest.approx(1, abs=1e-5)
            board.push(move)
            assert board.epd() == chess.Board(after).epd()
        assert np.all(np.abs(game.values_stm) <= 1)
        read = chess.pgn.read_game(io.StringIO(game.pgn()))
        assert list(read.mainline_moves()) == game.moves
        assert game.outcome_white == {"1-0": 1, "0-1": -1}.get(read.headers["Result"], 0)
        assert game.ending == read.headers["EndedBy"]
    with pytest.raises(UsageError, match="no games of iteration 7; it has finished 2"):
        campaign.games(iteration=7)


def test_games_of_2048_have_names_of_moves(campaign_2048):
    game = next(chess_snn.open_campaign(campaign_2048.path).games())
    assert set(game.moves) <= {"left", "right", "up", "down"}
    with pytest.raises(UsageError, match="PGN is for chess"):
        game.pgn()


def test_a_campaign_that_is_running_is_read_and_not_run(campaign, played_campaign):
    pytest.importorskip("prefect")
    with campaign_lock(played_campaign):
        assert campaign.iterations == 2
        with pytest.raises(CampaignLockedError, match="campaign"):
            campaign.resume()


@pytest.mark.slow
@pytest.mark.orchestration
def test_a_campaign_is_started_and_runs_to_its_end(tmp_path):
    pytest.importorskip("prefect")
    from small_campaigns import SMALL  # noqa: PLC0415

    settings = dict(map(_name_and_value, SMALL))
    campaign = chess_snn.start_campaign(
        "smoke", settings | {"campaign.iterations": 1}, seed=4, directory=tmp_path / "mine"
    )
    assert (campaign.iterations, campaign.config.campaign.seed) == (1, 4)
    assert campaign.network("champion").evaluate(chess.Board()).policy
    with pytest.raises(CampaignError, match="holds another campaign"):
        chess_snn.start_campaign("smoke", directory=tmp_path / "mine")
