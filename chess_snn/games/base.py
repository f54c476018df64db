"""Protocol of a game: all that the rest of the system may know of it.

Start here: chess and 2048 are this one protocol, and all that follows asks it alone. Read
``GameSpec`` for the numbers of a game, ``GameBatch`` for games in play, and ``Game`` for what can
be asked. File 1 of 16 of the spine in docs/architecture.md.

A game is a set of batched kernels over rows of ``uint64``. Nothing above this package asks *which*
game it is; it reads :class:`GameSpec` and calls :class:`Game`. The protocol covers one- and
two-player games, deterministic or with chance events.

Dimensions: G games, W words a state row, R words of it that a record keeps, M most legal actions,
K history length, P bitplanes.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, Protocol

import numpy as np

from chess_snn.errors import ConfigError
from chess_snn.types import (
    BoolArray,
    Float32Array,
    Int16Array,
    Int32Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
)

ONGOING = 0
"""Termination code of a game that goes on, in every game."""
NO_ACTION: Final = -1
"""Stand-in for an action: leave that game alone, or none was found."""


class ValueKind(enum.Enum):
    """Prediction of the value head for this game."""

    WDL = "wdl"
    """Probabilities of win, draw and loss."""
    RETURN = "return"
    """The sum of the rewards still to come, in [0, ``GameSpec.value_limit``]."""


@dataclass(frozen=True, slots=True)
class GameSpec:
    """The constants of a game."""

    name: str
    num_actions: int
    """A: actions are integers in [0, A), in the side to move's frame."""
    policy_steps: tuple[tuple[int, int], ...]
    """Steps of actions from square to square: (rows, columns) for each policy plane.
    Empty in any other game, which has a dense policy head."""
    num_planes: int
    """P: binary input planes, without those that follow from the rules."""
    board_shape: tuple[int, int]
    """(H, W) of a plane; H * W <= 64, square s is bit s of the plane's word."""
    state_words: int
    """W: ``uint64`` words in a state row."""
    record_words: int
    """R <= W: the leading words that a stored record keeps; planes depend on these alone."""
    history_length: int
    """K: words of repetition history a game carries; 0 for a game without memory."""
    history_word: int
    """The column of the state row that is remembered of each position; -1 without memory."""
    max_legal: int
    """M: an upper bound on the legal actions, or chance events, of any position."""
    num_players: int
    value_kind: ValueKind
    terminations: tuple[str, ...]
    """Name of each termination code; code 0 is ``"ongoing"``."""
    is_stochastic: bool = False
    """True if a chance event follows each action."""
    num_rule_planes: int = 0
    """Planes after these that follow from them by the rules; a network sees them or not."""
    num_symmetries: int = 1
    """Views of a position that the rules cannot tell apart, the position itself included."""
    score_unit: float = 1.0
    """Points of the game's score that a reward of 1 stands for."""
    value_limit: float = 1.0
    """Largest size of a value, in rewards."""
    typical_plies: int = 100
    """Mean length of a game in the first hours of learning, truncated ones among them."""
    milestone_name: str = ""
    """Name of what :meth:`Game.milestones` measures (2048: the largest tile); empty without any."""
    milestones: tuple[int, ...] = ()
    """Rising: of each, reports say which share of the games got so far (2048: 512, 1024, …)."""

    @property
    def policy_planes(self) -> int | None:
        """Number of planes if action = square * policy_planes + plane; None for a dense head."""
        return len(self.policy_steps) or None

    @property
    def all_planes(self) -> int:
        """Columns of :meth:`Game.planes`: those that follow from the rules are the last."""
        return self.num_planes + self.num_rule_planes

    @property
    def value_sign(self) -> float:
        """Factor from a child's value to its parent's view: -1 with two players, +1 with one."""
        return -1.0 if self.num_players == 2 else 1.0

    @property
    def value_range(self) -> tuple[float, float]:
        """The least and the largest value, in rewards."""
        least = -self.value_limit if self.value_kind is ValueKind.WDL else 0.0
        return least, self.value_limit


@dataclass(slots=True)
class GameBatch:
    """G positions with everything the rules need to go on; arrays that kernels change in place."""

    state: UInt64Array
    """uint64[G, W]."""
    history: UInt64Array
    """uint64[G, K]: what the rules remember of the K newest positions: the ``history_word`` of the
    position at ply p since the reset stands in column p mod K."""
    ply: Int32Array
    """int32[G]: plies since the reset."""
    legal_actions: Int16Array
    """int16[G, M]: the legal actions, in the first ``num_legal`` columns; the rest is undefined."""
    num_legal: Int32Array
    """int32[G]: 0 exactly where the game has ended."""
    termination: UInt8Array
    """uint8[G]: index into ``GameSpec.terminations``."""
    reward: Float32Array
    """float32[G]: of the last step, for the player who made it. A two-player game rewards the
    winning action with 1 and everything else with 0; a chance event is not rewarded."""

    @classmethod
    def empty(cls, spec: GameSpec, num_games: int) -> "GameBatch":
        """Arrays of zeros for ``num_games`` games, to be reset."""
        return cls(
            state=np.zeros((num_games, spec.state_words), np.uint64),
            history=np.zeros((num_games, spec.history_length), np.uint64),
            ply=np.zeros(num_games, np.int32),
            legal_actions=np.zeros((num_games, spec.max_legal), np.int16),
            num_legal=np.zeros(num_games, np.int32),
            termination=np.zeros(num_games, np.uint8),
            reward=np.zeros(num_games, np.float32),
        )

    def take(self, rows: Int64Array) -> "GameBatch":
        """A copy of ``rows`` (int64[n]), in that order; rows may repeat."""
        return GameBatch(*(getattr(self, field.name)[rows] for field in fields(self)))

    def lists(self, actions: Int16Array) -> BoolArray:
        """bool[G]: whether each game's entry of ``actions`` int16[G] is legal in it."""
        is_listed = np.arange(self.legal_actions.shape[1]) < self.num_legal[:, None]
        is_legal: BoolArray = ((self.legal_actions == actions[:, None]) & is_listed).any(axis=1)
        return is_legal

    def __len__(self) -> int:
        """Number of games, G."""
        return len(self.state)


class Game(Protocol):
    """The rules of one game, for many positions at once.

    A game inherits from this class. Methods with a body here are right for every game, or for games
    without what they ask for: chance, milestones, wins, a second player.

    Methods that take arrays trust them: validation happens where text or files come in.
    """

    @property
    def spec(self) -> GameSpec:
        """The game's constants."""
        ...

    def initial_states(self, seeds: UInt64Array) -> UInt64Array:
        """Start rows uint64[G, W]; ``seeds`` uint64[G] matter only to games with a random start."""
        ...

    def allocate(self, num_games: int) -> GameBatch:
        """Arrays for ``num_games`` games, all at the initial position (seed 0)."""
        batch = GameBatch.empty(self.spec, num_games)
        seeds = np.zeros(num_games, dtype=np.uint64)
        self.reset(batch, np.arange(num_games), self.initial_states(seeds))
        return batch

    def reset(self, batch: GameBatch, rows: Int64Array, states: UInt64Array) -> None:
        """Put ``states`` uint64[n, W] into ``rows`` int64[n], without any earlier history.

        Of a state only the R words that records keep matter; the rest follows from them.
        """
        ...

    def step(
        self, batch: GameBatch, actions: Int16Array, chance: UInt64Array | None = None,
        num_rows: int | None = None,
    ) -> None:
        """Play ``actions`` int16[G] and update every field of the batch.

        Only the first ``num_rows`` rows change, by default all.
        A negative action, or a game that has ended, leaves its row alone. Releases the GIL.

        In a stochastic game ``chance`` uint64[G] holds 64 random bits a game, which decide the
        event after the action. Without them the games stop at their *afterstates*: positions where
        nature is to move, whose ``legal_actions`` are the possible events. Stepping an afterstate
        plays the event given as its action. The reward and the ply belong to the action: the event
        is not rewarded and does not count as a ply. An afterstate has not ended.
        """
        ...

    def event_probabilities(self, states: UInt64Array) -> Float32Array:
        """float32[B, M]: of each event that :meth:`legal_actions` lists, 0 behind them.

        Rows sum to 1 where nature is to move in ``states`` uint64[B, >= R], and to 0 elsewhere.
        """
        return np.zeros((len(states), self.spec.max_legal), np.float32)

    def legal_actions(self, states: UInt64Array) -> tuple[Int16Array, Int32Array]:
        """Legal lists int16[B, M] and counts int32[B] of ``states`` uint64[B, >= R].

        Repetition and other history do not count here: a drawn position still has its moves. The
        columns behind each list hold 0, so that they can be gathered.
        """
        ...

    def winning_actions(
        self, states: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array
    ) -> Int16Array:
        """int16[B]: an action that wins at once for the side to move; NO_ACTION where none is seen.

        The rules may overlook wins that take long to see, and never name an action that does not
        win. Of going-on positions uint64[B, W] with their lists int16[B, M] and int32[B].
        """
        return np.full(len(states), NO_ACTION, np.int16)

    def planes(self, states: UInt64Array) -> UInt64Array:
        """Bitplanes uint64[B, P] of ``states`` uint64[B, >= R], side to move's perspective.

        P is ``GameSpec.all_planes`` here.
        """
        ...

    def side_to_move(self, states: UInt64Array) -> UInt8Array:
        """uint8[B]: 0 where the first player (white) is to move, of ``states`` uint64[B, >= R]."""
        return np.zeros(len(states), np.uint8)

    def practice_states(self, seeds: UInt64Array) -> UInt64Array:
        """Rows uint64[n, W] of simple positions that one side should win (chess: KQK, KRK, KPK).

        Either side may be to move, and none of them has ended. Row i depends on ``seeds[i]`` of
        uint64[n] alone.

        Raises:
            ConfigError: the game has none.
        """
        raise ConfigError(
            f"{self.spec.name} has no practice positions; set self_play.practice_share_first and "
            "self_play.practice_share_last to 0"
        )

    def transform(
        self, states: UInt64Array, actions: Int16Array, symmetries: UInt8Array
    ) -> tuple[UInt64Array, Int16Array]:
        """Copies of ``states`` uint64[B, >= R] and ``actions`` int16[B, K] in another view.

        ``symmetries`` uint8[B] in [0, ``num_symmetries``) names the view; 0 changes nothing. A row
        stays as it was where the rules know the difference (chess: a castling right tells left from
        right). Negative actions stay as they are. Rows come settled, as from games or records.
        """
        ...

    def milestones(self, states: UInt64Array) -> Int64Array:
        """int64[B]: how far each of ``states`` uint64[B, >= R] has got; see the spec's names.

        0 in a game without milestones.
        """
        return np.zeros(len(states), np.int64)

    def heuristic_stm(self, states: UInt64Array) -> Float32Array:
        """float32[B]: a hand-made estimate for the side to move (chess: material in pawns)."""
        ...

    def planned_actions(self, states: UInt64Array, depth: int) -> Int16Array:
        """int16[B]: what the game's own player without a network does, the first of equals.

        It looks ``depth`` >= 1 of its own moves ahead, with the heuristic at the end. NO_ACTION
        where ``states`` uint64[B, >= R] have no move or nature is to move.

        Raises:
            ConfigError: the game has no such player.
        """
        raise ConfigError(
            f"{self.spec.name} has no player 'expectimax:{depth}'; use 'minimax:{depth}'"
        )

    def parse_state(self, text: str) -> UInt64Array:
        """State row uint64[W] of a position in the game's notation (chess: FEN).

        Raises:
            PositionError: the text is malformed or the position cannot occur.
        """
        ...

    def format_state(self, state: UInt64Array) -> str:
        """The position uint64[W] in the game's notation (chess: FEN)."""
        ...

    def parse_action(self, state: UInt64Array, text: str) -> int:
        """Action of a move in the game's notation (chess: UCI) at ``state`` uint64[W].

        Raises:
            IllegalMoveError: the move is malformed or not legal there.
        """
        ...

    def format_action(self, state: UInt64Array, action: int) -> str:
        """A legal action at ``state`` uint64[W] in the game's notation (chess: UCI)."""
        ...


def termination_counts(spec: GameSpec, codes: Sequence[int] | UInt8Array) -> dict[str, int]:
    """Count ``codes`` by how they ended; ways that did not occur are left out."""
    counts = np.bincount(np.asarray(codes, dtype=np.int64), minlength=len(spec.terminations))
    return {spec.terminations[code]: int(n) for code, n in enumerate(counts) if n}
