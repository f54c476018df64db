"""A second two-player game, solved in closed form, to show that evaluation asks nothing of chess.

One heap; a move takes 1, 2 or 3; who takes the last one wins. The side to move wins exactly where
the heap is not a multiple of 4, by taking ``heap % 4`` (Bouton 1901, one heap of bounded Nim).
"""

import numpy as np

from chess_snn.games.base import GameBatch, GameSpec, ValueKind

_SIDE_BIT = np.uint64(1 << 32)
_HEAP_MASK = np.uint64((1 << 32) - 1)


class SubtractionGame:
    """Action k takes k + 1; the state word is the heap, and bit 32 where black is to move."""

    def __init__(self, heap: int = 21, num_players: int = 2) -> None:
        self._heap = heap
        self.spec = GameSpec(
            name="subtraction", num_actions=3, policy_steps=(), num_planes=1,
            board_shape=(1, 1), state_words=1, record_words=1, history_length=0, history_word=-1,
            max_legal=3, num_players=num_players, value_kind=ValueKind.WDL,
            terminations=("ongoing", "took_last"),
        )

    def initial_states(self, seeds):
        return np.full((len(seeds), 1), self._heap, np.uint64)

    def allocate(self, num_games):
        batch = GameBatch.empty(self.spec, num_games)
        rows = np.arange(num_games)
        self.reset(batch, rows, self.initial_states(rows))
        return batch

    def reset(self, batch, rows, states):
        batch.state[rows] = states
        batch.ply[rows] = 0
        batch.reward[rows] = 0
        self._settle(batch, rows)

    def step(self, batch, actions, chance=None, num_rows=None):
        rows = np.arange(len(batch) if num_rows is None else num_rows)
        rows = rows[(actions[rows] >= 0) & (batch.termination[rows] == 0)]
        batch.state[rows, 0] -= (actions[rows] + 1).astype(np.uint64)
        batch.state[rows, 0] ^= _SIDE_BIT
        batch.ply[rows] += 1
        self._settle(batch, rows)
        batch.reward[rows] = batch.termination[rows]

    def _settle(self, batch, rows):
        heap = (batch.state[rows, 0] & _HEAP_MASK).astype(np.int32)
        batch.legal_actions[rows] = np.arange(3, dtype=np.int16)
        batch.num_legal[rows] = np.minimum(heap, 3)
        batch.termination[rows] = heap == 0

    def winning_actions(self, states, legal_actions, num_legal):
        """All of the heap, where that is allowed."""
        heap = (states[:, 0] & _HEAP_MASK).astype(np.int16)
        return np.where(heap <= 3, heap - 1, -1).astype(np.int16)

    def planes(self, states):
        """The heap as it is."""
        return states[:, :1] & _HEAP_MASK

    def side_to_move(self, states):
        return ((states[:, 0] & _SIDE_BIT) > 0).astype(np.uint8)

    def practice_states(self, seeds):
        """Heaps of 1 to 3, which the side to move wins at once; bit 2 of a seed says who it is."""
        heaps = seeds % np.uint64(3) + np.uint64(1)
        side = np.where(seeds & np.uint64(4), _SIDE_BIT, np.uint64(0))
        return (heaps | side)[:, None]

    def mirror(self, states, actions):
        """A heap has neither left nor right."""
        return states.copy(), actions.copy()

    def heuristic_stm(self, states):
        return np.zeros(len(states), np.float32)

    def format_state(self, state):
        return f"{state[0] & _HEAP_MASK} {'wb'[int(state[0] >= _SIDE_BIT)]}"
