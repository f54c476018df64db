"""The environment for PettingZoo passes PettingZoo's own tests."""

import warnings

import chess
import pytest

pytest.importorskip("pettingzoo", reason="pip install 'chess-snn[pettingzoo]'")

import numpy as np
from pettingzoo.test import api_test, seed_test

import chess_snn
from chess_snn.errors import IllegalMoveError


@pytest.mark.parametrize("game", ["chess", "2048"])
def test_pettingzoo_accepts_it(game, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Said of every observation with a mask, those of PettingZoo's own games too.
        warnings.filterwarnings("ignore", "Observation (space for each agent|is not a NumPy)")
        api_test(chess_snn.pettingzoo_env(game), num_cycles=200)
    assert "Passed" in capsys.readouterr().out


def test_the_same_seed_is_the_same_game():
    seed_test(lambda: chess_snn.pettingzoo_env("2048"), num_cycles=20)


def play(env, *moves):
    for uci in moves:
        env.step(env.env.moves(0)[chess.Move.from_uci(uci)])


def test_the_winner_gets_what_the_loser_loses():
    env = chess_snn.pettingzoo_env("chess", render_mode="ansi")
    env.reset()
    assert env.render() == str(chess.Board())
    play(env, "f2f3", "e7e5", "g2g4")
    observation, reward, terminated, _, _ = env.last()
    assert (env.agent_selection, reward, terminated) == ("player_1", 0, False)
    assert observation["action_mask"].sum() == 30
    assert env.observe("player_0")["action_mask"].sum() == 0
    play(env, "d8h4")
    assert env.rewards == {"player_0": -1, "player_1": 1}
    assert all(env.terminations.values())
    env.step(None)
    env.step(None)
    assert env.agents == []


def test_illegal_actions_are_refused():
    env = chess_snn.pettingzoo_env("chess")
    env.reset()
    with pytest.raises(IllegalMoveError, match="illegal"):
        env.step(np.int64(0))
    with pytest.raises(IllegalMoveError, match="player_0 is to move"):
        env.step(None)
