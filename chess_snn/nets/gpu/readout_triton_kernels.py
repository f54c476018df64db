"""The readout of legal actions alone, in Triton; see :mod:`chess_snn.nets.model.readouts`.

Of thousands of actions a position has some thirty legal ones. A program reads those of one
position, ``BLOCK`` at a time: each is the product of a square's rates and a plane's weights.
"""

import triton
import triton.language as tl


@triton.jit
def read_legal(
    rates, weights, biases, target_weights, target_actions, legal_actions, num_legal, logits,
    CHANNELS: tl.constexpr, DEPTH: tl.constexpr, SQUARES: tl.constexpr, PLANES: tl.constexpr,
    COLUMNS: tl.constexpr, HAS_TARGET: tl.constexpr, BLOCK: tl.constexpr,
):
    """Fill ``logits`` float32[B, COLUMNS]; what is behind each list is -inf.

    ``rates`` float32[B, SQUARES, CHANNELS], ``weights`` and ``target_weights`` float32[PLANES,
    CHANNELS], ``biases`` float32[PLANES], ``target_actions`` int64[SQUARES * PLANES],
    ``legal_actions`` int16[B, COLUMNS], ``num_legal`` int32[B]. ``DEPTH`` is a power of two that
    is not below ``CHANNELS``.
    """
    position = tl.program_id(0).to(tl.int64)
    count = tl.load(num_legal + position)
    channel = tl.arange(0, DEPTH)
    used = (channel < CHANNELS)[None, :]
    rates += position * (SQUARES * CHANNELS)
    for first in tl.range(0, COLUMNS, BLOCK):
        column = first + tl.arange(0, BLOCK)
        is_legal = column < count
        action = tl.load(legal_actions + position * COLUMNS + column, mask=is_legal, other=0)
        action = action.to(tl.int32)
        plane = action % PLANES
        logit = tl.load(biases + plane, mask=is_legal, other=0.0)
        mask = is_legal[:, None] & used
        place = plane[:, None] * CHANNELS + channel[None, :]
        square = action // PLANES
        rate = tl.load(rates + square[:, None] * CHANNELS + channel[None, :], mask=mask, other=0.0)
        logit += tl.sum(rate * tl.load(weights + place, mask=mask, other=0.0), 1)
        if HAS_TARGET:
            target = tl.load(target_actions + action, mask=is_legal, other=0) // PLANES
            rate = tl.load(
                rates + target[:, None] * CHANNELS + channel[None, :], mask=mask, other=0.0
            )
            logit += tl.sum(rate * tl.load(target_weights + place, mask=mask, other=0.0), 1)
        tl.store(
            logits + position * COLUMNS + column, tl.where(is_legal, logit, float("-inf")),
            mask=column < COLUMNS,
        )
