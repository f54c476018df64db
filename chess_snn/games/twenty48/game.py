"""2048 behind the :class:`chess_snn.games.base.Game` protocol.

An input plane is one ``uint64``: bit s is cell s. Plane e, from 0 to 15, holds the cells whose
exponent is e (plane 0: the empty ones); the last plane is all ones in an afterstate.
"""

from typing import Final

import numpy as np

from chess_snn.games.base import Game, GameBatch, GameSpec, ValueKind
from chess_snn.games.bits import ONE, ZERO
from chess_snn.games.twenty48 import notation
from chess_snn.games.twenty48.boards import NUM_SYMMETRIES, VIEWED_ACTION, view_board
from chess_snn.games.twenty48.expectimax import line_values, plan_actions, write_values
from chess_snn.games.twenty48.layout import (
    BOARD,
    MAX_EXPONENT,
    MAX_LEGAL,
    NATURE,
    NATURE_MOVES,
    NUM_ACTIONS,
    NUM_CELLS,
    SCORE_UNIT,
    SIDE,
    STATE_WORDS,
    TERMINATIONS,
    slide_table,
)
from chess_snn.games.twenty48.step import (
    list_legal,
    reset_games,
    step_games,
    write_probabilities,
    write_starts,
)
from chess_snn.jit import kernel
from chess_snn.types import (
    Float32Array,
    Int16Array,
    Int32Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
)

_NATURE_PLANE: Final = MAX_EXPONENT + 1
NUM_PLANES: Final = _NATURE_PLANE + 1
_ALL: Final = np.uint64((1 << NUM_CELLS) - 1)
_EXPONENT_MASK: Final = np.uint64(MAX_EXPONENT)

TWENTY48_SPEC: Final = GameSpec(
    name="2048",
    num_actions=NUM_ACTIONS,
    policy_steps=(),
    num_planes=NUM_PLANES,
    board_shape=(SIDE, SIDE),
    state_words=STATE_WORDS,
    record_words=STATE_WORDS,
    history_length=0,
    history_word=-1,
    max_legal=MAX_LEGAL,
    num_players=1,
    value_kind=ValueKind.RETURN,
    terminations=TERMINATIONS,
    is_stochastic=True,
    num_symmetries=NUM_SYMMETRIES,
    score_unit=SCORE_UNIT,
    value_limit=1024.0,
    typical_plies=700,
    milestone_name="largest tile",
    milestones=(512, 1024, 2048, 4096, 8192, 16384, 32768),
)

_STOP_AT_AFTERSTATES: Final = np.empty(0, dtype=np.uint64)


class Twenty48Game(Game):
    """2048; state rows are described in :mod:`chess_snn.games.twenty48.layout`.

    A game begins with two tiles. A move slides all tiles and merges equal neighbours in pairs; it
    is rewarded with the sum of the merged tiles, in units of 1024 points. Then a tile appears in an
    empty cell, each with the same probability: a 2 with probability 0.9, else a 4. The game ends
    where no move changes the board. Two 32768 do not merge: the board has no 65536.
    """

    spec: Final = TWENTY48_SPEC

    def initial_states(self, seeds: UInt64Array) -> UInt64Array:
        """uint64[G, 2]: boards with two tiles, drawn from ``seeds`` uint64[G] one by one."""
        states = np.empty((len(seeds), STATE_WORDS), dtype=np.uint64)
        write_starts(np.ascontiguousarray(seeds, dtype=np.uint64), states)
        return states

    def reset(self, batch: GameBatch, rows: Int64Array, states: UInt64Array) -> None:
        """Put ``states`` uint64[n, 2], decisions or afterstates, into ``rows`` int64[n]."""
        reset_games(
            batch.state, batch.ply, batch.legal_actions, batch.num_legal, batch.termination,
            batch.reward, np.asarray(rows, dtype=np.int64), np.ascontiguousarray(states),
            slide_table(),
        )

    def step(
        self, batch: GameBatch, actions: Int16Array, chance: UInt64Array | None = None,
        num_rows: int | None = None,
    ) -> None:
        """Play ``actions`` int16[G] in the first ``num_rows`` rows.

        With ``chance`` uint64[G] the next tile comes too; without, the games stop at their
        afterstates. An afterstate plays its action as the event, whether there is ``chance`` or
        not.
        """
        step_games(
            batch.state, batch.ply, batch.legal_actions, batch.num_legal, batch.termination,
            batch.reward, np.ascontiguousarray(actions, dtype=np.int16),
            _STOP_AT_AFTERSTATES if chance is None else np.ascontiguousarray(chance),
            len(batch) if num_rows is None else num_rows, slide_table(),
        )

    def legal_actions(self, states: UInt64Array) -> tuple[Int16Array, Int32Array]:
        """Actions or events int16[B, 32], 0 behind them, and counts int32[B] of uint64[B, 2]."""
        legal_actions = np.zeros((len(states), MAX_LEGAL), dtype=np.int16)
        num_legal = np.empty(len(states), dtype=np.int32)
        list_legal(np.ascontiguousarray(states), legal_actions, num_legal, slide_table())
        return legal_actions, num_legal

    def event_probabilities(self, states: UInt64Array) -> Float32Array:
        """float32[B, 32]: 0.9 / n for a 2 and 0.1 / n for a 4 in each of n empty cells."""
        probabilities = np.zeros((len(states), MAX_LEGAL), dtype=np.float32)
        write_probabilities(np.ascontiguousarray(states), probabilities)
        return probabilities

    def planes(self, states: UInt64Array) -> UInt64Array:
        """Bitplanes uint64[B, 17] of ``states`` uint64[B, 2]: one an exponent, one afterstates."""
        planes = np.empty((len(states), NUM_PLANES), dtype=np.uint64)
        write_planes(np.ascontiguousarray(states), planes)
        return planes

    def transform(
        self, states: UInt64Array, actions: Int16Array, symmetries: UInt8Array
    ) -> tuple[UInt64Array, Int16Array]:
        """Copies of ``states`` uint64[B, 2] and ``actions`` int16[B, K] in views uint8[B].

        Bits of a view in [0, 8): 1 swaps left and right, 2 top and bottom, 4 rows and
        columns, in that order. All actions 0 to 3 are taken for moves, also beside an afterstate;
        others stay as they are.
        """
        states = np.array(states, dtype=np.uint64, order="C")
        actions = np.array(actions, dtype=np.int16, order="C")
        view_rows(states, actions, symmetries)
        return states, actions

    def milestones(self, states: UInt64Array) -> Int64Array:
        """int64[B]: the largest tile of ``states`` uint64[B, 2]."""
        tiles = np.empty(len(states), dtype=np.int64)
        write_largest_tiles(np.ascontiguousarray(states), tiles)
        return tiles

    def heuristic_stm(self, states: UInt64Array) -> Float32Array:
        """float32[B]: see :mod:`chess_snn.games.twenty48.expectimax`; of uint64[B, 2]."""
        values = np.empty(len(states), dtype=np.float32)
        write_values(np.ascontiguousarray(states), values, line_values())
        return values

    def planned_actions(self, states: UInt64Array, depth: int) -> Int16Array:
        """int16[B]: expectimax over ``depth`` >= 1 of the player's moves, of uint64[B, 2].

        See :mod:`chess_snn.games.twenty48.expectimax`.
        """
        actions = np.empty(len(states), dtype=np.int16)
        plan_actions(
            np.ascontiguousarray(states), depth, actions, slide_table(), line_values()
        )
        return actions

    def parse_state(self, text: str) -> UInt64Array:
        """State row uint64[2] of rows like ``2 . . 4`` with ``/`` between them.

        See :mod:`chess_snn.games.twenty48.notation`.

        Raises:
            PositionError: the text is malformed, a tile is out of range, or the board cannot occur.
        """
        return notation.parse_state(text)

    def format_state(self, state: UInt64Array) -> str:
        """The board of ``state`` uint64[2], with ``+`` at its end if it is an afterstate."""
        return notation.format_state(state)

    def parse_action(self, state: UInt64Array, text: str) -> int:
        """Action of ``left``, ``l`` and so on at ``state`` uint64[2]; events are like ``2@b3``.

        Raises:
            IllegalMoveError: the move is malformed or not legal there.
        """
        legal_actions, num_legal = self.legal_actions(state[None])
        return notation.parse_action(state, legal_actions[0, : num_legal[0]].tolist(), text)

    def format_action(self, state: UInt64Array, action: int) -> str:
        """A legal action or event at ``state`` uint64[2] as text."""
        return notation.format_action(state, action)


@kernel
def write_planes(states: UInt64Array, planes: UInt64Array) -> None:
    """Fill ``planes`` uint64[B, 17] from ``states`` uint64[B, 2]."""
    for i in range(len(states)):
        planes[i] = ZERO
        board = states[i, BOARD]
        for cell in range(NUM_CELLS):
            exponent = board >> np.uint64(4 * cell) & _EXPONENT_MASK
            planes[i, exponent] |= ONE << np.uint64(cell)
        if states[i, NATURE] == NATURE_MOVES:
            planes[i, _NATURE_PLANE] = _ALL


@kernel
def write_largest_tiles(states: UInt64Array, tiles: Int64Array) -> None:
    """Fill ``tiles`` int64[B] from ``states`` uint64[B, 2]; 0 on an empty board."""
    for i in range(len(states)):
        largest = ZERO
        for cell in range(NUM_CELLS):
            largest = max(largest, states[i, BOARD] >> np.uint64(4 * cell) & _EXPONENT_MASK)
        tiles[i] = ONE << largest if largest != ZERO else ZERO


@kernel
def view_rows(states: UInt64Array, actions: Int16Array, symmetries: UInt8Array) -> None:
    """Put ``states`` uint64[B, 2] and ``actions`` int16[B, K] into the views uint8[B] in place."""
    for i in range(len(states)):
        states[i, BOARD] = view_board(states[i, BOARD], np.uint64(symmetries[i]))
        for j in range(actions.shape[1]):
            if 0 <= actions[i, j] < NUM_ACTIONS:
                actions[i, j] = VIEWED_ACTION[symmetries[i], actions[i, j]]
