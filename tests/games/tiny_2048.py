"""2048 on a board so small that dynamic programming solves it: an oracle for search with chance.

Words, actions, events and planes are those of the real game (``chess_snn.games.twenty48``) with
fewer cells: cell s = row * columns + column has bits 4s to 4s + 3 of word 0; word 1 is 1 in an
afterstate.
"""

from functools import cache

import numpy as np

from chess_snn.games.base import NO_ACTION, GameBatch, GameSpec, ValueKind

LEFT, UP, RIGHT, DOWN = range(4)
SCORE_UNIT = 16.0
_NUM_PLANES = 17
_EVENT_SHARES = (0.9, 0.1)


class Tiny2048:
    """The game ends where no move is left, or a tile of ``2 ** target`` stands on the board."""

    def __init__(self, rows=2, columns=2, target=15):
        self._rows, self._columns, self._cells, self._target = rows, columns, rows * columns, target
        self.spec = GameSpec(
            name="tiny-2048", num_actions=4, policy_steps=(), num_planes=_NUM_PLANES,
            board_shape=(rows, columns), state_words=2, record_words=2, history_length=0,
            history_word=-1, max_legal=max(4, 2 * self._cells), num_players=1,
            value_kind=ValueKind.RETURN, terminations=("ongoing", "no_moves"), is_stochastic=True,
            score_unit=SCORE_UNIT, value_limit=64.0,
        )
        self.slide, self.moves = cache(self.slide), cache(self.moves)
        self.value, self.afterstate_value = cache(self.value), cache(self.afterstate_value)

    # Boards as tuples of exponents.

    def slide(self, board, action):
        """(board after a move, its reward); the same board where the move is not legal."""
        moved, points = [0] * self._cells, 0
        for line in self._lines(action):
            tiles, merged, position = [board[s] for s in line if board[s]], [], 0
            while position < len(tiles):
                if tiles[position : position + 2] == [tiles[position]] * 2:
                    merged.append(tiles[position] + 1)
                    points += 2 ** merged[-1]
                    position += 2
                else:
                    merged.append(tiles[position])
                    position += 1
            for s, tile in zip(line, merged, strict=False):
                moved[s] = tile
        return tuple(moved), points / SCORE_UNIT

    def moves(self, board):
        if max(board) >= self._target:
            return []
        return [action for action in range(4) if self.slide(board, action)[0] != board]

    def events(self, board):
        """(event, probability) of every tile that may appear, in the order of the list."""
        empty = [s for s in range(self._cells) if board[s] == 0]
        return [
            (2 * s + k, share / len(empty)) for s in empty for k, share in enumerate(_EVENT_SHARES)
        ]

    def spawn(self, board, event):
        return tuple(event % 2 + 1 if s == event // 2 else tile for s, tile in enumerate(board))

    def board(self, word):
        return tuple(int(word) >> 4 * s & 15 for s in range(self._cells))

    def word(self, board):
        return np.uint64(sum(tile << 4 * s for s, tile in enumerate(board)))

    # Exact values, without discount.

    def value(self, board):
        return max((self.action_value(board, action) for action in self.moves(board)), default=0.0)

    def afterstate_value(self, board):
        return sum(p * self.value(self.spawn(board, event)) for event, p in self.events(board))

    def action_value(self, board, action):
        moved, reward = self.slide(board, action)
        return reward + self.afterstate_value(moved)

    # The protocol, as far as a search needs it.

    def initial_states(self, seeds):
        boards = []
        for seed in seeds:
            rng, board = np.random.default_rng(int(seed)), (0,) * self._cells
            for _ in range(2):
                events, shares = zip(*self.events(board), strict=True)
                board = self.spawn(board, rng.choice(events, p=shares))
            boards.append(board)
        return self.states(boards)

    def states(self, boards):
        """uint64[n, 2]: decision states."""
        return np.array([(self.word(board), 0) for board in boards], np.uint64).reshape(-1, 2)

    def start(self, boards):
        """A batch at ``boards``."""
        batch = self.allocate(len(boards))
        self.reset(batch, np.arange(len(boards)), self.states(boards))
        return batch

    def allocate(self, num_games):
        batch = GameBatch.empty(self.spec, num_games)
        self.reset(batch, np.arange(num_games), self.initial_states([0]).repeat(num_games, 0))
        return batch

    def reset(self, batch, rows, states):
        batch.state[rows], batch.ply[rows], batch.reward[rows] = states, 0, 0
        self._settle(batch, rows)

    def step(self, batch, actions, chance=None, num_rows=None):
        rows = np.arange(len(batch) if num_rows is None else num_rows)
        rows = rows[(actions[rows] >= 0) & (batch.termination[rows] == 0)]
        for row in rows:
            board = self.board(batch.state[row, 0])
            if batch.state[row, 1]:
                board, reward = self.spawn(board, int(actions[row])), 0.0
                batch.state[row] = self.word(board), 0
            else:
                board, reward = self.slide(board, int(actions[row]))
                batch.ply[row] += 1
                batch.state[row] = self.word(board), 1
                if chance is not None:
                    events, shares = zip(*self.events(board), strict=True)
                    event = np.random.default_rng(int(chance[row])).choice(events, p=shares)
                    batch.state[row] = self.word(self.spawn(board, event)), 0
            batch.reward[row] = reward
        self._settle(batch, rows)

    def legal_actions(self, states):
        lists = [
            [event for event, _ in self.events(self.board(word))] if is_after
            else self.moves(self.board(word))
            for word, is_after in states
        ]
        actions = np.zeros((len(states), self.spec.max_legal), np.int16)
        for row, listed in enumerate(lists):
            actions[row, : len(listed)] = listed
        return actions, np.array([len(listed) for listed in lists], np.int32)

    def event_probabilities(self, states):
        probabilities = np.zeros((len(states), self.spec.max_legal), np.float32)
        for row in np.flatnonzero(states[:, 1]):
            shares = [share for _, share in self.events(self.board(states[row, 0]))]
            probabilities[row, : len(shares)] = shares
        return probabilities

    def winning_actions(self, states, legal_actions, num_legal):
        return np.full(len(states), NO_ACTION, np.int16)

    def planes(self, states):
        planes = np.zeros((len(states), _NUM_PLANES), np.uint64)
        for s in range(self._cells):
            tiles = states[:, 0] >> np.uint64(4 * s) & np.uint64(15)
            planes[np.arange(len(states)), tiles.astype(np.int64)] |= np.uint64(1 << s)
        planes[:, -1] = states[:, 1] * np.uint64((1 << self._cells) - 1)
        return planes

    def positions(self, planes):
        """(board, whether it is an afterstate) of each row of ``planes``."""
        return [
            (
                tuple(
                    next(e for e in range(16) if int(row[e]) >> s & 1) for s in range(self._cells)
                ),
                row[-1] > 0,
            )
            for row in planes
        ]

    def side_to_move(self, states):
        return np.zeros(len(states), np.uint8)

    def _lines(self, action):
        """The cells of each line, from where tiles slide to."""
        cells = np.arange(self._cells).reshape(self._rows, self._columns)
        lines = cells if action in (LEFT, RIGHT) else cells.T
        return (lines if action in (LEFT, UP) else lines[:, ::-1]).tolist()

    def _settle(self, batch, rows):
        batch.legal_actions[rows], batch.num_legal[rows] = self.legal_actions(batch.state[rows])
        batch.termination[rows] = batch.num_legal[rows] == 0
