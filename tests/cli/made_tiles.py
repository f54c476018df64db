"""Recorded games of 2048."""

import numpy as np

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.data import write_shard
from chess_snn.data.records import GameRecords
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
    num_positions = len(actions)
    records = GameRecords(
        states=np.array(states),
        actions=np.array(actions, np.int16),
        values_stm=np.zeros(num_positions, np.float32),
        surprises=np.zeros(num_positions, np.float32),
        target_offsets=np.arange(num_positions + 1),
        target_actions=np.array(actions, np.int16),
        target_weights=np.ones(num_positions, np.float32),
        game_offsets=np.cumsum([0, *lengths]),
        outcomes_white=np.zeros(num_games, np.int8),
        terminations=np.ones(num_games, np.uint8),
        cut_values_white=np.zeros(num_games, np.float32),
        start_kinds=np.zeros(num_games, np.uint8),
    )
    return records, points, np.array(ends)


def make_tiles_campaign(path, records):
    """A campaign of 2048 with ``records`` as its first shard."""
    folder = CampaignFolder.create(path, load_config("smoke-2048"))
    write_shard(folder.shard(0, 0), records, {
        "game": "2048", "iteration": 0, "shard": 0, "generation": 0,
    })
    return folder
