"""A network to ask: load it, evaluate positions, search them, and look at its spikes.

Dimensions: G positions, n legal actions, M columns for legal actions.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar, overload

import numpy as np

from chess_snn import nets
from chess_snn.api.answers import Analysis, Candidate, Evaluation, Spikes
from chess_snn.api.positions import Move, Position, Positions, line_at, moves_at, read_positions
from chess_snn.campaign.models.model import Model
from chess_snn.campaign.models.references import find_model
from chess_snn.errors import ClosedError, PositionError
from chess_snn.games import get_game
from chess_snn.games.base import GameBatch, ValueKind
from chess_snn.search import (
    MAX_SIMULATIONS,
    RootReport,
    Search,
    SearchSettings,
    TreeSearch,
    make_search,
)
from chess_snn.settings import check_range
from chess_snn.types import Closeable, Float32Array

if TYPE_CHECKING:
    from chess_snn.api.matches import Player

MOST_TREES: Final = 64
"""Positions that are searched together; their trees are in memory at the same time."""
_Answer = TypeVar("_Answer")


def load(
    name: str | os.PathLike[str], *, game: str | None = None, device: str = "cpu",
    precision: nets.Precision | None = None, threads: int | None = None,
) -> Net:
    """The network that ``name`` stands for, ready to be asked.

    >>> import chess_snn
    >>> chess_snn.load("chess").game
    'chess'

    Args:
        name: one that comes with the library (``chess``, ``2048``, ``chess-small``); a campaign's
            folder (its newest network), ``FOLDER@12`` or ``FOLDER@champion``; an exported model's
            or a checkpoint's folder; a file of weights; ``models:/chess-snn@champion`` of a
            registry. Behind ``#`` may stand ``ticks=2`` or settings of the search.
        game: that it must play; None accepts any.
        device: ``cpu``, ``cuda``, ``cuda:1``, or ``auto``.
        precision: ``fp32``, ``bf16`` or ``int8``; None takes that of its training.
        threads: that evaluate positions side by side on a CPU; None takes one a core.

    Raises:
        UsageError: there is no such network, or it plays another game.
        CorruptDataError: its file is damaged.
        ExtraError: a registry is asked, and the extra ``orchestration`` is not installed.
    """
    model = find_model(os.fspath(name), game=game)
    return Net(model, device=device, precision=precision, threads=threads)


class Net(Closeable):
    """A network that answers questions about positions; :func:`load` makes it.

    A question is a position or a list of them: a ``chess.Board``, a FEN, or rows of 2048. A list is
    one batch, and its answer a list in the same order. Answers do not depend on what else is in a
    list. It may be asked by several threads.

    It holds threads, or memory of a GPU, from its first answer until :meth:`close`; use it in a
    ``with`` block where that matters.
    """

    def __init__(
        self, model: Model, *, device: str = "cpu", precision: nets.Precision | None = None,
        threads: int | None = None, network: nets.Network | None = None,
    ) -> None:
        """Load ``model``; ``network``, if given, is the same in memory."""
        self.model = model
        """Where it lies, and what is known of it."""
        self.network = model.load_stored() if network is None else network
        """The network as torch has it, in float32."""
        self.rules = get_game(model.game)
        """The rules of its game, for arrays."""
        self._place = device, precision or model.precision, threads
        self._evaluator: nets.OwnedEvaluator | None = None
        self._is_closed = False
        self._search: tuple[tuple[int, int], Search] | None = None
        self._lock, self._hooks = threading.RLock(), threading.Lock()

    def __repr__(self) -> str:
        """Name, game and size."""
        return f"<Net {self.name}: {self.game}, {self.network.num_parameters:,} parameters>"

    @property
    def name(self) -> str:
        """The name it was asked for by, with its generation."""
        return self.model.label

    @property
    def game(self) -> str:
        """``chess`` or ``2048``."""
        return self.model.game

    @property
    def settings(self) -> SearchSettings:
        """How it is searched."""
        return self.model.search

    @property
    def evaluator(self) -> nets.OwnedEvaluator:
        """The network on its device, for arrays.

        Raises:
            ClosedError: it was closed.
            ConfigError: the device is not here.
        """
        with self._lock:
            if self._is_closed:
                raise ClosedError(f"the network {self.name} is closed; load it again")
            if self._evaluator is None:
                device, precision, threads = self._place
                self._evaluator = nets.make_evaluator(
                    self.network, device=device, precision=precision, num_threads=threads
                )
            return self._evaluator

    @overload
    def evaluate(self, positions: Position) -> Evaluation: ...

    @overload
    def evaluate(self, positions: Positions) -> list[Evaluation]: ...

    def evaluate(self, positions: Position | Positions) -> Evaluation | list[Evaluation]:
        """Evaluate ``positions`` without a search.

        >>> import chess, chess_snn
        >>> answer = chess_snn.load("chess").evaluate(chess.Board())
        >>> len(answer.policy), round(sum(answer.policy.values()), 3)
        (20, 1.0)

        Raises:
            PositionError: a position is of another game or variant, malformed, impossible or over.
            ClosedError: the network was closed.
        """
        return _as_asked(positions, self._evaluations(self._read(positions)))

    def evaluate_moves(self, position: Position) -> dict[Move, Evaluation]:
        """Evaluate the positions after each legal move, without a search.

        Values are those of the side to move in ``position``, the reward of the move included, and
        exact where the move ends the game; in 2048 before the new tile. Policies are empty.

        Raises as :meth:`evaluate`.
        """
        batch, game = self._read(position), self.rules
        actions = batch.legal_actions[0, : batch.num_legal[0]]
        after = batch.take(np.zeros(len(actions), np.int64))
        game.step(after, actions)
        wdl, values = self._outlooks(after)
        return {
            move: Evaluation(self._points(values[i]), _wdl(wdl[i]), {})
            for i, move in enumerate(moves_at(game, batch.state[0], actions))
        }

    @overload
    def search(
        self, positions: Position, simulations: int = 200, *, temperature: float = 0.0,
        seed: int = 0, is_stopped: Callable[[], bool] | None = None,
    ) -> Analysis: ...

    @overload
    def search(
        self, positions: Positions, simulations: int = 200, *, temperature: float = 0.0,
        seed: int = 0, is_stopped: Callable[[], bool] | None = None,
    ) -> list[Analysis]: ...

    def search(
        self, positions: Position | Positions, simulations: int = 200, *,
        temperature: float = 0.0, seed: int = 0, is_stopped: Callable[[], bool] | None = None,
    ) -> Analysis | list[Analysis]:
        """Search ``positions``, each by a tree of its own.

        >>> import chess, chess_snn
        >>> mate_in_one = chess.Board("6k1/5ppp/8/8/8/8/8/K3R3 w - - 0 1")
        >>> chess_snn.load("chess").search(mate_in_one, simulations=32).move
        Move.from_uci('e1e8')

        Args:
            positions: one, or a list.
            simulations: of each position, up to 100,000; 0 plays the network's policy.
            temperature: of the move: 0 takes the best one, more draws it.
            seed: of the random numbers of a temperature above 0; position i of a list draws with
                ``seed + i``.
            is_stopped: asked before each wave of simulations; once true, the search ends with what
                it has.

        Raises:
            ConfigError: a number is out of range, or the trees need more memory than the setting
                ``search.memory_mib`` allows.
            PositionError, ClosedError: as :meth:`evaluate`.
        """
        check_range("simulations", simulations, ge=0, le=MAX_SIMULATIONS)
        check_range("temperature", temperature, ge=0.0, lt=np.inf)
        check_range("seed", seed, ge=0, lt=2**63)
        batch, found = self._read(positions), []
        with self._lock:  # a search holds its trees
            for first in range(0, len(batch), MOST_TREES):
                rows = np.arange(first, min(first + MOST_TREES, len(batch)))
                keys = rows.astype(np.uint64) + np.uint64(seed)
                found += self._searched(
                    batch.take(rows), simulations, keys, temperature, is_stopped or _never
                )
        return _as_asked(positions, found)

    @overload
    def spikes(self, positions: Position, before: Position | None = None) -> Spikes: ...

    @overload
    def spikes(self, positions: Positions, before: Positions | None = None) -> list[Spikes]: ...

    def spikes(
        self, positions: Position | Positions, before: Position | Positions | None = None
    ) -> Spikes | list[Spikes]:
        """Record the spikes of one evaluation in float32 of each of ``positions``.

        With ``before``, as many as ``positions``, it is what differs from there: the changes that
        neurons would send which remember what they sent last.

        >>> import chess, chess_snn
        >>> spikes = chess_snn.load("chess-small").spikes(chess.Board())
        >>> layer = spikes["policy.neurons"]
        >>> layer.dtype, layer.shape[2:]
        (dtype('uint8'), (8, 8))

        Raises:
            PositionError: as :meth:`evaluate`; or there are more or fewer positions before.
        """
        batch = self._read(positions)
        earlier = None if before is None else self._read(before)
        if earlier is not None and len(earlier) != len(batch):
            raise PositionError(
                f"got {len(batch)} positions and {len(earlier)} before them; give one for each"
            )
        return _as_asked(positions, self.spikes_of(batch, earlier))

    def spikes_of(self, batch: GameBatch, before: GameBatch | None = None) -> list[Spikes]:
        """The same of each row of ``batch``, for those who have arrays."""
        game, most = self.rules, self.network.config.most_spikes
        new, old = (
            [None] * len(batch) if rows is None
            else nets.network_input(game.planes(rows.state), game.spec.board_shape).unsqueeze(1)
            for rows in (batch, before)
        )
        with self._hooks:  # both hook into the network's layers
            return [
                Spikes(
                    nets.record_activity(self.network, planes_1PHW, before_1PHW)[0], most,
                    nets.count_work(self.network, planes_1PHW, before_1PHW),
                )
                for planes_1PHW, before_1PHW in zip(new, old, strict=True)
            ]

    def player(self, simulations: int = 64) -> Player:
        """This network as a player, with so many simulations a move; 0 plays its policy.

        >>> import chess_snn
        >>> chess_snn.load("chess").player(64).name
        'shipped/chess:64'
        """
        from chess_snn.api.matches import Player  # noqa: PLC0415 - which knows networks

        check_range("simulations", simulations, ge=0, le=MAX_SIMULATIONS)
        return Player.of_network(self, replace(self.model, simulations=simulations))

    def copy(
        self, *, device: str | None = None, precision: nets.Precision | None = None,
        threads: int | None = None, ticks: int = 0,
    ) -> Net:
        """The same weights elsewhere, or with other ``ticks``; what is left out stays.

        Raises:
            ConfigError: the network cannot have that number of ticks.
        """
        own_device, own_precision, own_threads = self._place
        changed = self.network.with_ticks(ticks) if ticks else self.network
        copy = Net(
            self.model, device=device or own_device, precision=precision or own_precision,
            threads=threads or own_threads, network=changed,
        )
        copy._hooks = self._hooks
        return copy

    def close(self) -> None:
        """Give threads and memory back; only spikes can be asked for afterwards."""
        with self._lock:
            if self._evaluator is not None:
                self._evaluator.close()
            self._evaluator, self._search, self._is_closed = None, None, True

    def _read(self, positions: Position | Positions) -> GameBatch:
        listed = positions if isinstance(positions, list | tuple) else [positions]
        return read_positions(self.rules, listed)

    def _points(self, value: float) -> float:
        """A value of the arrays as users see it: in points of the game, if it has any."""
        return float(value) * self.rules.spec.score_unit

    def _evaluations(self, batch: GameBatch) -> list[Evaluation]:
        if not len(batch):
            return []
        game = self.rules
        answer = self.evaluator.evaluate(
            game.planes(batch.state), batch.legal_actions, batch.num_legal
        )
        evaluations = []
        for row, count in enumerate(batch.num_legal):
            shares = _softmax(answer.legal_logits[row, :count])
            order = np.argsort(-shares, kind="stable")
            moves = moves_at(game, batch.state[row], batch.legal_actions[row, order])
            evaluations.append(Evaluation(
                self._points(answer.value_stm[row]), _wdl(answer.wdl_stm[row]),
                dict(zip(moves, shares[order].tolist(), strict=True)),
            ))
        return evaluations

    def _outlooks(self, after: GameBatch) -> tuple[Float32Array, Float32Array]:
        """Win, draw and loss float32[n, 3 or 0] and values float32[n], in the view of who moved."""
        spec = self.rules.spec
        live = np.flatnonzero(after.num_legal)
        going_on = after.take(live)
        if spec.is_stochastic:
            going_on.num_legal[:] = 0  # of events, which have no logits
        answer = self.evaluator.evaluate(
            self.rules.planes(going_on.state), going_on.legal_actions, going_on.num_legal
        )
        values = after.reward.copy()
        values[live] += spec.value_sign * answer.value_stm
        if spec.value_kind is not ValueKind.WDL:
            return np.empty((len(after), 0), np.float32), values
        wdl = np.tile(np.array([0.0, 1.0, 0.0], np.float32), (len(after), 1))
        wdl[after.reward > 0] = (1.0, 0.0, 0.0)
        wdl[live] = answer.wdl_stm[:, ::-1] if spec.value_sign < 0 else answer.wdl_stm
        return wdl, values

    def _searched(
        self, batch: GameBatch, simulations: int, keys: np.ndarray, temperature: float,
        is_stopped: Callable[[], bool],
    ) -> list[Analysis]:
        num_rows, evaluations = len(batch), self._evaluations(batch)
        search = self._search_of(simulations, num_rows)
        plies, temperatures = np.zeros(num_rows, np.int32), np.full(num_rows, temperature,
                                                                    np.float32)
        if isinstance(search, TreeSearch):
            search.run(batch, keys, plies, temperatures, is_stopped)
            return [
                self._analysis(batch.state[row], evaluation, search.inspect(row))
                for row, evaluation in enumerate(evaluations)
            ]
        actions = search.run(batch, keys, plies, temperatures).actions
        return [
            _policy_analysis(evaluation, moves_at(self.rules, batch.state[row], actions[[row]])[0])
            for row, evaluation in enumerate(evaluations)
        ]

    def _search_of(self, simulations: int, num_rows: int) -> Search:
        """The search of the last question, if it fits; another one otherwise."""
        if self._search is None or self._search[0] != (simulations, num_rows):
            self._search = None  # its memory is free before other trees are made
            self._search = (simulations, num_rows), make_search(
                self.rules, self.evaluator, self.settings, simulations=simulations,
                num_games=num_rows, in_play=True,
            )
        return self._search[1]

    def _analysis(
        self, state: np.ndarray, evaluation: Evaluation, report: RootReport
    ) -> Analysis:
        choice, visits = report.principal_variation[0], report.visits
        ranking = sorted(range(len(visits)), reverse=True, key=lambda i: (
            report.actions[i] == choice, visits[i], report.target[i], report.priors[i]
        ))
        moves = moves_at(self.rules, state, report.actions)
        return Analysis(
            evaluation, self._points(report.value_stm),
            tuple(
                Candidate(
                    moves[i], int(visits[i]), float(report.priors[i]), float(report.target[i]),
                    self._points(report.q_stm[i]) if visits[i] else None,
                )
                for i in ranking
            ),
            line_at(self.rules, state, report.principal_variation),
        )


def _policy_analysis(evaluation: Evaluation, move: Move) -> Analysis:
    """The answer without a tree, where ``move`` was drawn."""
    policy = {move: evaluation.policy[move]} | evaluation.policy
    candidates = (Candidate(each, 0, share, share, None) for each, share in policy.items())
    return Analysis(evaluation, evaluation.value_stm, tuple(candidates), (move,))


def _never() -> bool:
    return False


def _as_asked(positions: object, answers: list[_Answer]) -> _Answer | list[_Answer]:
    """All answers to a list, or the one to a position."""
    return answers if isinstance(positions, list | tuple) else answers[0]


def _wdl(shares: Float32Array) -> tuple[float, float, float] | None:
    if not len(shares):
        return None
    win, draw, loss = shares.astype(np.float64).tolist()
    return win, draw, loss


def _softmax(logits: Float32Array) -> np.ndarray:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    shares: np.ndarray = weights / weights.sum()
    return shares
