"""Recorded games of 2048."""

import numpy as np
from made_games import plain_records

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.data import write_shard
from chess_snn.games import get_game
from chess_snn.games.starts import random_legal_actions
from chess_snn.rng import random_words

GAME = get_game("2048")


def played_games(num_games):
    """Records of random games, with the points and the last board of each."""
    states, actions, lengths, points, ends = [], [], [], [], []
    for seed in range(num_games):
        key, batch = np.array([seed], np.uint64), GAME.allocate(1)
        GAME.reset(batch, np.zeros(1, np.int64), GAME.initial_states(key))
        lengths.append(0)
        points.append(0.0)
        while batch.num_legal[0]:
            action = random_legal_actions(batch, key, batch.ply)
            states.append(batch.state[0].copy())
            actions.append(action[0])
            GAME.step(batch, action, random_words(key, batch.ply.astype(np.uint64)))
            points[-1] += 1024 * float(batch.reward[0])
            lengths[-1] += 1
        ends.append(batch.state[0].copy())
    records = plain_records(
        lengths, states=np.array(states), actions=actions, target_actions=actions,
        terminations=[1] * num_games,
    )
    return records, points, np.array(ends)


def make_tiles_campaign(path, records):
    """A campaign of 2048 with ``records`` as its first shard."""
    folder = CampaignFolder.create(path, load_config("smoke-2048"))
    write_shard(folder.shard(0, 0), records, {
        "game": "2048", "iteration": 0, "shard": 0, "generation": 0,
    })
    return folder
