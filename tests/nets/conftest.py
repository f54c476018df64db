"""Real positions for networks to look at, and kernels for a GPU where there is none."""

import os
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from chess_snn.games import GameSpec, get_game
from chess_snn.games.starts import random_starts
from chess_snn.nets import expand_planes
from chess_snn.types import Int16Array, Int32Array, UInt64Array

if not torch.cuda.is_available():
    # Read by Triton when a kernel is defined: kernels then run on CPU tensors.
    os.environ["TRITON_INTERPRET"] = "1"

NUM_POSITIONS = 96
LONGEST_START = 80


@dataclass(frozen=True)
class Positions:
    spec: GameSpec
    planes: UInt64Array
    legal_actions: Int16Array
    num_legal: Int32Array

    def __getitem__(self, rows) -> "Positions":
        return Positions(
            self.spec, self.planes[rows], self.legal_actions[rows], self.num_legal[rows]
        )

    def tensor(self) -> Tensor:
        words = torch.from_numpy(self.planes.view(np.int64))
        return expand_planes(words, self.spec.board_shape, torch.float32)

    def legal_logits(self, policy_logits_BA: Tensor) -> Tensor:
        behind = np.arange(self.legal_actions.shape[1]) >= self.num_legal[:, None]
        actions = torch.from_numpy(np.where(behind, 0, self.legal_actions).astype(np.int64))
        return policy_logits_BA.gather(1, actions).masked_fill(torch.from_numpy(behind), -np.inf)


@pytest.fixture(scope="session", autouse=True)
def _one_torch_thread():
    """Small tensors gain nothing from two threads, and lose much where the machine is shared."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def positions() -> Positions:
    """Positions of random games, from the first ply to ply 80."""
    game = get_game("chess")
    plies = np.linspace(0, LONGEST_START, NUM_POSITIONS).astype(np.int32)
    states = random_starts(game, np.arange(NUM_POSITIONS, dtype=np.uint64), plies)
    legal_actions, num_legal = game.legal_actions(states)
    return Positions(game.spec, game.planes(states), legal_actions, num_legal)


@pytest.fixture(scope="session")
def boards() -> Positions:
    """Boards of 2048; in every third one nature is to move."""
    game, rng = get_game("2048"), np.random.default_rng(1)
    exponents = rng.integers(0, 12, (NUM_POSITIONS, 16))
    planes = np.zeros((NUM_POSITIONS, 17), np.uint64)
    for square in range(16):
        planes[np.arange(NUM_POSITIONS), exponents[:, square]] |= np.uint64(1 << square)
    num_legal = rng.integers(1, 5, NUM_POSITIONS).astype(np.int32)
    num_legal[::3] = 0
    planes[::3, 16] = 0xFFFF
    legal_actions = np.full((NUM_POSITIONS, game.spec.max_legal), -1, np.int16)
    for row, count in enumerate(num_legal):
        legal_actions[row, :count] = rng.permutation(4)[:count]
    return Positions(game.spec, planes, legal_actions, num_legal)


@pytest.fixture(params=["positions", "boards"])
def of_both_games(request) -> Positions:
    """Positions of chess, and boards of 2048."""
    found: Positions = request.getfixturevalue(request.param)
    return found


def overfit(network, positions: Positions, *, steps: int) -> list[float]:
    """Train on one batch of made-up moves and results; the loss of every step."""
    planes = positions.tensor().contiguous(memory_format=torch.channels_last)
    rows = torch.arange(len(planes))
    choice, result = rows % torch.from_numpy(positions.num_legal), rows % 3
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2, weight_decay=0.0)
    losses = []
    network.train()
    for _ in range(steps):
        output = network(planes)
        policy_loss = cross_entropy(positions.legal_logits(output.policy_logits_BA), choice)
        loss = policy_loss + cross_entropy(output.value_logits_BV, result)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.fixture(scope="session", name="overfit")
def overfit_fixture():
    return overfit


@pytest.fixture(scope="session")
def spec():
    return get_game("chess").spec


@pytest.fixture
def true_bfloat16(monkeypatch):
    """Triton's interpreter cuts what does not fit in bfloat16, and multiplies bits as integers."""
    interpreter = pytest.importorskip("triton.runtime.interpreter")
    language = pytest.importorskip("triton.language")
    builder = interpreter.InterpreterBuilder
    real_cast, real_dot = builder.cast_impl, builder.create_dot

    def cast(self, src, dst_type):
        if (src.dtype.scalar, dst_type.scalar) == (language.float32, language.bfloat16):
            bits = torch.from_numpy(np.ascontiguousarray(src.data)).bfloat16().view(torch.int16)
            return interpreter.TensorHandle(bits.numpy().view(np.uint16), language.bfloat16)
        return real_cast(self, src, dst_type)

    def dot(self, a, b, *rest):
        if a.dtype.scalar == language.bfloat16:
            a, b = (real_cast(self, each, language.float32) for each in (a, b))
        return real_dot(self, a, b, *rest)

    monkeypatch.setattr(builder, "cast_impl", cast)
    monkeypatch.setattr(builder, "create_dot", dot)
