"""Positions with a forced mate, found in random games and proved by searching every reply."""

import numpy as np

from chess_snn.games import get_game

GAME = get_game("chess")
CHECKMATE = GAME.spec.terminations.index("checkmate")
_GAMES_A_ROUND = 512
_MOST_PLIES = 300


def mates_in_one(count, seed):
    """``count`` different positions in which some move mates."""
    return _suite(count, seed, plies_to_mate=1)


def mates_in_two(count, seed):
    """``count`` different positions in which no move mates, but one does against every reply."""
    return _suite(count, seed, plies_to_mate=3)


def mating_actions(batch):
    """The actions of a batch of one that mate at once."""
    children = _children(batch)
    return batch.legal_actions[0, : batch.num_legal[0]][children.termination == CHECKMATE]


def forces_mate_in_two(batch, action):
    """Whether after ``action`` every reply allows a mate in one; False where it mates or draws."""
    child = batch.take(np.zeros(1, np.int64))
    GAME.step(child, np.array([action], np.int16))
    if not child.num_legal[0]:
        return False
    replies = _children(child)
    return all(
        replies.num_legal[row] and len(mating_actions(replies.take(np.array([row]))))
        for row in range(len(replies))
    )


def _suite(count, seed, plies_to_mate):
    rng, found = np.random.default_rng(seed), {}
    while len(found) < count:
        for state in _before_mates(rng, plies_to_mate):
            batch = GAME.allocate(1)
            GAME.reset(batch, np.zeros(1, np.int64), state[None])
            if plies_to_mate == 3 and not _is_mate_in_two(batch):
                continue
            found.setdefault(GAME.format_state(state), batch)
    return list(found.values())[:count]


def _is_mate_in_two(batch):
    if len(mating_actions(batch)):
        return False
    actions = batch.legal_actions[0, : batch.num_legal[0]]
    return any(forces_mate_in_two(batch, action) for action in actions)


def _before_mates(rng, plies_to_mate):
    """State rows so many plies before the end of random games that end in mate."""
    batch = GAME.allocate(_GAMES_A_ROUND)
    trail, lengths = [], np.zeros(_GAMES_A_ROUND, np.int64)
    for _ in range(_MOST_PLIES):
        trail.append(batch.state.copy())
        live = batch.num_legal > 0
        slots = rng.integers(np.maximum(batch.num_legal, 1))
        chosen = batch.legal_actions[np.arange(_GAMES_A_ROUND), slots]
        GAME.step(batch, np.where(live, chosen, -1).astype(np.int16))
        lengths += live
    for row in np.flatnonzero(batch.termination == CHECKMATE):
        if lengths[row] >= plies_to_mate:
            yield trail[lengths[row] - plies_to_mate][row]


def _children(batch):
    """Every position after one action of a batch of one."""
    count = int(batch.num_legal[0])
    children = batch.take(np.zeros(count, np.int64))
    GAME.step(children, batch.legal_actions[0, :count].copy())
    return children
