"""Games solved in closed form, to show that evaluation asks nothing of chess and 2048."""

import numpy as np

from chess_snn.games.base import GameBatch, GameSpec, ValueKind

_VALUE_SHIFT = np.uint64(16)
_NATURE = np.uint64(1 << 40)
_LOW = np.uint64((1 << 16) - 1)
TAKE, WAIT = 0, 1
DOUBLE, BACK = 0, 1
UNIT = 4.0
_SIDE_BIT = np.uint64(1 << 32)
_HEAP_MASK = np.uint64((1 << 32) - 1)


class _SolvedGame:
    """Batches, the same for both."""

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


class DoublingGame(_SolvedGame):
    """A coin of some value, 1 at first, for a number of rounds, with chance events.

    In each round action 0 takes its value in points, action 1 takes nothing. Then the coin doubles
    or goes back to 1, with even odds. So in round t (from 0) it is worth 1 + t / 2 on average, and
    after n events at least 2^k with probability 2^-k, for k up to n. The state word is the rounds
    left, the coin's value from bit 16 on, and bit 40 for nature.
    """

    def __init__(self, rounds=6):
        self._rounds = rounds
        self.spec = GameSpec(
            name="doubling", num_actions=2, policy_steps=(), num_planes=1, board_shape=(1, 1),
            state_words=1, record_words=1, history_length=0, history_word=-1, max_legal=2,
            num_players=1, value_kind=ValueKind.RETURN, terminations=("ongoing", "no_rounds"),
            is_stochastic=True, score_unit=UNIT, value_limit=1000.0,
            milestone_name="coin", milestones=(2, 4, 8),
        )

    def mean_of_greedy(self):
        return sum(1 + t / 2 for t in range(self._rounds))

    def initial_states(self, seeds):
        return np.full((len(seeds), 1), self._rounds, np.uint64) | (np.uint64(1) << _VALUE_SHIFT)

    def step(self, batch, actions, chance=None, num_rows=None):
        rows = np.arange(len(batch) if num_rows is None else num_rows)
        rows = rows[(actions[rows] >= 0) & (batch.num_legal[rows] > 0)]
        is_event = (batch.state[rows, 0] & _NATURE) > 0
        self._play_events(batch, rows[is_event], actions[rows[is_event]] == DOUBLE)
        rows = rows[~is_event]
        takes = actions[rows] == TAKE
        batch.reward[rows] = np.where(takes, self._value(batch.state[rows]) / UNIT, 0)
        batch.state[rows, 0] = (batch.state[rows, 0] - np.uint64(1)) | _NATURE
        batch.ply[rows] += 1
        if chance is not None:
            self._play_events(batch, rows, chance[rows] % np.uint64(2) == 0)
        self._settle(batch, rows)

    def _play_events(self, batch, rows, doubles):
        value = np.where(doubles, 2 * self._value(batch.state[rows]), 1).astype(np.uint64)
        left = batch.state[rows, 0] & _LOW
        batch.state[rows, 0] = left | (value << _VALUE_SHIFT)
        self._settle(batch, rows)

    def _settle(self, batch, rows):
        is_over = (batch.state[rows, 0] & _LOW) == 0
        is_over &= (batch.state[rows, 0] & _NATURE) == 0
        batch.legal_actions[rows] = np.arange(2, dtype=np.int16)
        batch.num_legal[rows] = np.where(is_over, 0, 2)
        batch.termination[rows] = is_over

    def _value(self, states):
        return (states[:, 0] & ~_NATURE) >> _VALUE_SHIFT

    def side_to_move(self, states):
        return np.zeros(len(states), np.uint8)

    def milestones(self, states):
        return self._value(states).astype(np.int64)

    def format_state(self, state):
        return f"{int(state[0] & _LOW)} {int(self._value(state[None])[0])}"

    def parse_state(self, text):
        left, value = map(int, text.split())
        return np.array([left | value << 16], np.uint64)


class SubtractionGame(_SolvedGame):
    """One heap; a move takes 1, 2 or 3; who takes the last one wins (Bouton 1901).

    The side to move wins exactly where the heap is not a multiple of 4, by taking ``heap % 4``.
    Action k takes k + 1; the state word is the heap, and bit 32 where black is to move.
    """

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
