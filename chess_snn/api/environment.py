"""Many games at once for reinforcement learning: numpy in, numpy out, at the speed of the kernels.

Dimensions: G games, A actions, M columns for legal actions, P planes, H and W board, n rows.
"""

from dataclasses import dataclass
from typing import Any, Final

import chess
import numpy as np

from chess_snn.api.positions import Move, Positions, moves_at, read_positions
from chess_snn.errors import IllegalMoveError, PositionError, UsageError
from chess_snn.extras import load_extra
from chess_snn.games import GameBatch, get_game
from chess_snn.games.chess import to_board
from chess_snn.games.illegal import find_illegal
from chess_snn.rng import derive_seed, random_words
from chess_snn.settings import check_range
from chess_snn.types import (
    BoolArray,
    Float32Array,
    Int16Array,
    Int32Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
)
from chess_snn.wording import counted

_MOST_GAMES: Final = 1_000_000
_FIRST_EVENT: Final = np.uint64(1) << np.uint64(32)
"""The draws of a game's stream from here on decide its tiles; those before, its start."""


def make_env(game: str = "chess", num_envs: int = 1, *, seed: int = 0) -> "Env":
    """``num_envs`` games of ``game`` (``chess`` or ``2048``) at their beginning.

    >>> import chess_snn
    >>> env = chess_snn.make_env("chess", num_envs=2)
    >>> actions, counts = env.legal_actions()
    >>> step = env.step(actions[:, 0])
    >>> counts.tolist(), step.ended.tolist(), env.position(0).fullmove_number
    ([20, 20], [False, False], 1)

    Args:
        game: that is played.
        num_envs: G, from 1 to 1,000,000.
        seed: of the tiles of 2048; chess has no chance.

    Raises:
        ConfigError: there is no such game, or a number is out of range.
    """
    check_range("num_envs", num_envs, ge=1, le=_MOST_GAMES)
    check_range("seed", seed, ge=0, lt=2**63)
    return Env(game, num_envs, seed)


def pettingzoo_env(
    game: str = "chess", *, seed: int = 0, render_mode: str | None = None
) -> Any:
    """One game of ``game`` as an environment of PettingZoo, with its interface ``AECEnv``.

    Agents are ``player_0``, in chess White, and ``player_1``, Black. An observation is a dictionary
    of ``observation``, uint8[H, W, P] in {0, 1}, and ``action_mask``, int8[A]; the planes are in
    the view of the side to move, and the mask of any other agent is 0. ``render_mode="ansi"``
    renders the position as text.

    Raises:
        ExtraError: the extra ``pettingzoo`` is not installed.
        ConfigError: there is no such game.
    """
    return load_extra("chess_snn.api.aec", "pettingzoo").GameEnv(game, seed, render_mode)


@dataclass(frozen=True, slots=True)
class Step:
    """Result of one step of all games; the arrays belong to the caller."""

    rewards: Float32Array
    """float32[G], for the player who moved: 1 for a win and 0 otherwise in chess, the merged tiles
    in points in 2048; 0 where nobody moved."""
    ended: BoolArray
    """bool[G]: whether the game is over, by this step or an earlier one."""
    terminations: UInt8Array
    """uint8[G]: why, an index into :attr:`Env.endings`; 0 while a game goes on."""


class Env:
    """G games side by side; :func:`make_env` makes it.

    Actions are numbers in [0, ``num_actions``), in chess as the side to move sees the board: those
    of AlphaZero, see :mod:`chess_snn.games.chess.actions`. A game that has ended stays as it is
    until :meth:`reset`.
    """

    def __init__(self, game: str, num_envs: int, seed: int) -> None:
        self._rules = get_game(game)
        self._keys = random_words(
            np.full(num_envs, derive_seed(seed, "environment"), np.uint64),
            np.arange(num_envs, dtype=np.uint64),
        )
        self._episodes = np.zeros(num_envs, np.uint64)
        self._seeds = np.zeros(num_envs, np.uint64)
        self._batch = GameBatch.empty(self._rules.spec, num_envs)
        self._lists = self._batch.legal_actions[:], self._batch.num_legal[:]
        for shown in self._lists:
            shown.flags.writeable = False
        self.reset()

    @property
    def batch(self) -> GameBatch:
        """The games as the kernels have them, to look at."""
        return self._batch

    @property
    def num_envs(self) -> int:
        """Number of games, G."""
        return len(self._batch)

    @property
    def num_actions(self) -> int:
        """Number of actions, A: 4672 in chess, 4 in 2048."""
        return self._rules.spec.num_actions

    @property
    def num_planes(self) -> int:
        """Number of planes, P: 48 in chess, 17 in 2048."""
        return self._rules.spec.all_planes

    @property
    def board_shape(self) -> tuple[int, int]:
        """Rows H and columns W of a plane."""
        return self._rules.spec.board_shape

    @property
    def endings(self) -> tuple[str, ...]:
        """Names of the terminations; the first one stands for a game that goes on."""
        return self._rules.spec.terminations

    @property
    def ended(self) -> BoolArray:
        """bool[G]: which games are over."""
        ended: BoolArray = self._batch.num_legal == 0
        return ended

    @property
    def players(self) -> UInt8Array:
        """uint8[G]: the side to move, 0 for White and 1 for Black; 0 in 2048."""
        return self._rules.side_to_move(self._batch.state)

    @property
    def plies(self) -> Int32Array:
        """int32[G]: moves since the reset."""
        return self._batch.ply.copy()

    def reset(
        self, rows: Int64Array | BoolArray | None = None,
        positions: Positions | None = None,
    ) -> None:
        """Begin new games: in all rows, or in ``rows``, int64[n] or bool[G].

        Games begin at the beginning, in 2048 each with other tiles, or at ``positions``, one a row.

        Raises:
            PositionError: a position is malformed, impossible, of another game, or over.
            UsageError: there is no such row.
        """
        numbers = self._numbers(rows)
        if self._rules.spec.is_stochastic:
            self._seeds[numbers] = random_words(self._keys[numbers], self._episodes[numbers])
            self._episodes[numbers] += np.uint64(1)
        if positions is None:
            states = self._rules.initial_states(self._seeds[numbers])
        else:
            if len(positions) != len(numbers):
                raise PositionError(
                    f"got {counted(len(positions), 'position')} for "
                    f"{counted(len(numbers), 'row')}; give one for each"
                )
            states = read_positions(self._rules, positions).state
        self._rules.reset(self._batch, numbers, states)

    def legal_actions(self) -> tuple[Int16Array, Int32Array]:
        """Lists int16[G, M] and their lengths int32[G], 0 where a game is over.

        They are views, which the next step or reset changes; what stands behind a list has no
        meaning.
        """
        return self._lists

    def legal_mask(self) -> BoolArray:
        """bool[G, A]: which actions are legal."""
        actions, counts = self._lists
        mask = np.zeros((self.num_envs, self.num_actions), np.bool_)
        rows, columns = np.nonzero(np.arange(actions.shape[1]) < counts[:, None])
        mask[rows, actions[rows, columns]] = True
        return mask

    def step(self, actions: Int16Array) -> Step:
        """Play an action in each game, int16[G]; those of games that are over are ignored.

        Raises:
            IllegalMoveError: an action is not legal, or there is not one for each game; no game has
                changed.
        """
        batch, rules = self._batch, self._rules
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_envs,) or chosen.dtype.kind not in "iu":
            raise IllegalMoveError(
                f"actions must be {self.num_envs} whole numbers, got {chosen.dtype} of the shape "
                f"{chosen.shape}"
            )
        if chosen.dtype != np.int16:
            chosen = chosen.astype(np.int64)
        row = find_illegal(batch.legal_actions, batch.num_legal, chosen)
        if row >= 0:
            raise IllegalMoveError(
                f"action {chosen[row]} of game {row} is illegal in "
                f"{rules.format_state(batch.state[row])!r}; take one of legal_actions()"
            )
        was_over = batch.num_legal == 0
        chance = random_words(self._seeds, batch.ply.astype(np.uint64) + _FIRST_EVENT) if (
            rules.spec.is_stochastic
        ) else None
        rules.step(batch, chosen.astype(np.int16), chance)
        rewards = batch.reward * np.float32(rules.spec.score_unit)
        rewards[was_over] = 0.0
        return Step(rewards, batch.num_legal == 0, batch.termination.copy())

    def observe(self, *, packed: bool = False) -> UInt8Array | UInt64Array:
        """Planes uint8[G, P, H, W] in {0, 1}, in the view of the side to move.

        ``packed`` gives uint64[G, P], as fast as the kernels: bit s is square s = row * W + column.
        In chess, row 0 is the own back rank; :data:`chess_snn.games.chess.planes.PLANE_NAMES` has
        the names.
        """
        words = self._rules.planes(self._batch.state)
        if packed:
            return words
        height, width = self.board_shape
        bits = np.unpackbits(words.astype("<u8").view(np.uint8), axis=1, bitorder="little")
        squares = bits.reshape(self.num_envs, self.num_planes, 64)[..., : height * width]
        return squares.reshape(self.num_envs, self.num_planes, height, width)

    def position(self, row: int) -> chess.Board | str:
        """The position of one game: a board without its past, or rows of 2048."""
        state = self._batch.state[row]
        return to_board(state) if self._rules.spec.name == "chess" else (
            self._rules.format_state(state)
        )

    def moves(self, row: int) -> dict[Move, int]:
        """The legal moves of one game, and the action of each."""
        actions = self._batch.legal_actions[row, : self._batch.num_legal[row]].tolist()
        return dict(zip(moves_at(self._rules, self._batch.state[row], actions), actions,
                        strict=True))

    def _numbers(self, rows: Int64Array | BoolArray | None) -> Int64Array:
        """int64[n]: the numbers of ``rows``."""
        if rows is None:
            return np.arange(self.num_envs)
        given = np.asarray(rows)
        if given.dtype == np.bool_ and len(given) == self.num_envs:
            return given.nonzero()[0]
        numbers = given.nonzero()[0] if given.dtype == np.bool_ else given.astype(np.int64)
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < self.num_envs):
            raise UsageError(
                f"rows must be from 0 to {self.num_envs - 1}, got {numbers.min()} to "
                f"{numbers.max()}"
            )
        return numbers
