"""Makes tensors for the device of packed samples: bitboards and targets are built here, each step.

A thread prepares batches while the device trains on the one before.

Dimensions: B positions, P planes, L columns for legal actions, K columns of the policy target.
"""

import operator
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from chess_snn.data import Samples, play_actions
from chess_snn.errors import CorruptDataError
from chess_snn.games.base import NO_ACTION, ONGOING, Game
from chess_snn.jit import kernel
from chess_snn.nets import expand_planes
from chess_snn.training.losses import Targets
from chess_snn.types import BoolArray, Float32Array, Int16Array, Int32Array, UInt8Array

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """One batch, all of it on one device."""

    words_BP: Tensor
    """int64: the bits of bitplanes, see :func:`chess_snn.nets.expand_planes`."""
    board_shape: tuple[int, int]
    targets: Targets

    def planes(self, num_planes: int) -> Tensor:
        """The first planes, float32[B, P, H, W] in {0, 1}, channels-last, on the batch's device."""
        return expand_planes(self.words_BP[:, :num_planes], self.board_shape, torch.float32)

    def __len__(self) -> int:
        """Number of positions, B."""
        return len(self.words_BP)

    def split(self, size: int) -> "list[TrainingBatch]":
        """Views of ``size`` positions each, the last one maybe fewer."""
        rows = [slice(lo, lo + size) for lo in range(0, len(self), size)]
        return [self._with(operator.itemgetter(part)) for part in rows]

    def to(self, device: torch.device) -> Self:
        """The same on ``device``."""
        return self._with(lambda tensor: tensor.to(device, non_blocking=True))

    def pinned(self) -> Self:
        """The same in host memory that a GPU may read while both go on."""
        return self._with(Tensor.pin_memory)

    def copy_from(self, batch: "TrainingBatch") -> None:
        """Take the numbers of ``batch``, of the same shapes, into the memory of this one."""
        self.words_BP.copy_(batch.words_BP, non_blocking=True)
        for field in fields(Targets):
            ours, theirs = getattr(self.targets, field.name), getattr(batch.targets, field.name)
            ours.copy_(theirs, non_blocking=True)

    def _with(self, change: Callable[[Tensor], Tensor]) -> Self:
        targets = {f.name: change(getattr(self.targets, f.name)) for f in fields(Targets)}
        return replace(self, words_BP=change(self.words_BP), targets=Targets(**targets))


def assemble(game: Game, samples: Samples, all_columns: bool = False) -> TrainingBatch:
    """The bitboards and targets of one training step, in the host's memory.

    Args:
        game: of the samples.
        samples: B of them.
        all_columns: whether there are as many columns as a position can have legal actions, so
            that every batch has the same shape; else as many as one of these has.

    Raises:
        CorruptDataError: a policy target names an action that is not legal.
    """
    legal_actions, num_legal = game.legal_actions(samples.states)
    # There is nothing to choose where nature is to move.
    num_legal = np.where(samples.target_weights.any(axis=1), num_legal, 0).astype(np.int32)
    if not all_columns:
        legal_actions = legal_actions[:, : max(1, int(num_legal.max()))]
    policy = _over_legal_actions(game, samples, legal_actions, num_legal)
    ended = samples.terminations != ONGOING

    return TrainingBatch(
        words_BP=as_tensor(game.planes(samples.states).view(np.int64)),
        board_shape=game.spec.board_shape,
        targets=Targets(
            legal_actions_BL=as_tensor(legal_actions),
            num_legal_B=as_tensor(num_legal),
            policy_BL=as_tensor(policy),
            outcomes_stm_B=as_tensor(samples.outcomes_stm),
            root_values_stm_B=as_tensor(samples.values_stm),
            log_plies_left_B=as_tensor(np.log1p(samples.plies_left, dtype=np.float32)),
            ended_B=as_tensor(ended.astype(np.float32)),
        ),
    )


def transform(game: Game, samples: Samples, symmetries: UInt8Array) -> Samples:
    """``samples`` seen in the views ``symmetries`` uint8[B]; see :meth:`Game.transform`.

    What was said of a position is as true of its other views.
    """
    every_action = np.column_stack([samples.target_actions, samples.actions])
    states, every_action = game.transform(samples.states, every_action, symmetries)
    return replace(
        samples, states=states, actions=every_action[:, -1], target_actions=every_action[:, :-1]
    )


def show_afterstates(game: Game, samples: Samples, chosen: BoolArray) -> Samples:
    """``samples`` with the afterstate of the played action where ``chosen`` bool[B] says so.

    An afterstate has a value, and no policy: its row of the policy target is empty.
    """
    rows = np.flatnonzero(chosen)
    states = samples.states.copy()
    played = play_actions(game, states[rows], samples.actions[rows])
    states[rows] = played.state[:, : states.shape[1]]
    return replace(
        samples,
        states=states,
        values_stm=np.where(chosen, samples.after_stm, samples.values_stm),
        outcomes_stm=np.where(chosen, samples.after_stm, samples.outcomes_stm),
        plies_left=samples.plies_left - chosen,
        target_actions=np.where(chosen[:, None], NO_ACTION, samples.target_actions),
        target_weights=np.where(chosen[:, None], np.float32(0), samples.target_weights),
    )


def _over_legal_actions(
    game: Game, samples: Samples, legal_actions: Int16Array, num_legal: Int32Array
) -> Float32Array:
    """The policy target as weights float32[B, L] of the listed legal actions."""
    policy = np.zeros(legal_actions.shape, np.float32)
    bad = _spread_targets(
        samples.target_actions, samples.target_weights, legal_actions, num_legal, policy
    )
    if bad >= 0:
        state = np.zeros(game.spec.state_words, np.uint64)
        state[: game.spec.record_words] = samples.states[bad]
        raise CorruptDataError(
            f"a policy target names an action that is not legal in {game.format_state(state)}; "
            "the games were written by other rules: play them again"
        )
    return policy


@kernel
def _spread_targets(
    target_actions: Int16Array, target_weights: Float32Array, legal_actions: Int16Array,
    num_legal: Int32Array, policy: Float32Array,
) -> int:
    """Fill ``policy`` [B, L]; the first row whose target is not among its legal actions, or -1."""
    for b in range(len(policy)):
        for k in range(target_actions.shape[1]):
            action = target_actions[b, k]
            if action < 0:
                break
            for j in range(num_legal[b]):
                if legal_actions[b, j] == action:
                    policy[b, j] += target_weights[b, k]
                    break
            else:
                return b
    return -1


def as_tensor(array: np.ndarray) -> Tensor:
    """A tensor over the memory of ``array``, or of a dense copy."""
    return torch.from_numpy(np.ascontiguousarray(array))


def load_ahead(prepare: Callable[[], T], num_items: int, ahead: int) -> Iterator[T]:
    """Yield the results of ``num_items`` calls of ``prepare``, in their order.

    ``prepare`` is called from one thread at a time, and ``num_items`` times in all if the iterator
    is read to its end: whatever it draws from, it draws the same as without a thread.

    Args:
        prepare: makes one item.
        num_items: how many are wanted.
        ahead: items made while one is in use; 0 makes each when it is asked for.
    """
    if ahead == 0:
        for _ in range(num_items):
            yield prepare()
        return
    thread = ThreadPoolExecutor(1, thread_name_prefix="load-ahead")
    try:
        under_way: deque[Future[T]] = deque()
        for index in range(num_items):
            while len(under_way) <= ahead and index + len(under_way) < num_items:
                under_way.append(thread.submit(prepare))
            yield under_way.popleft().result()
    finally:
        thread.shutdown(cancel_futures=True)
