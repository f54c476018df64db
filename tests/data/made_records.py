"""Records of made-up games: any legal shape, without the cost of play."""

import numpy as np
from hypothesis import strategies as st

from chess_snn.data import START_KINDS, GameRecords
from chess_snn.games import ONGOING

CHESS_ACTIONS = 4672
CHESS_TERMINATIONS = 6
CHESS_WORDS = 5


def make_records(rng, lengths, max_entries=4, words=CHESS_WORDS):
    """Games of ``lengths`` plies with random columns; targets of 1 to ``max_entries`` entries."""
    n, N = len(lengths), int(np.sum(lengths))
    entries = rng.integers(1, max_entries + 1, size=N)
    raw = rng.exponential(size=entries.sum()) + 1e-3
    sums = np.add.reduceat(raw, np.cumsum(entries) - entries)
    outcomes_white = rng.integers(-1, 2, size=n, dtype=np.int8)
    terminations = rng.integers(CHESS_TERMINATIONS, size=n, dtype=np.uint8)
    is_cut = (outcomes_white == 0) & (terminations == ONGOING)
    return GameRecords(
        states=rng.integers(2**64, size=(N, words), dtype=np.uint64),
        actions=rng.integers(CHESS_ACTIONS, size=N, dtype=np.int16),
        values_stm=rng.uniform(-1, 1, size=N).astype(np.float32),
        surprises=rng.exponential(size=N).astype(np.float32),
        target_offsets=np.concatenate([[0], np.cumsum(entries)]),
        target_actions=rng.integers(CHESS_ACTIONS, size=entries.sum(), dtype=np.int16),
        target_weights=(raw / np.repeat(sums, entries)).astype(np.float32),
        game_offsets=np.concatenate([[0], np.cumsum(lengths)]),
        outcomes_white=outcomes_white,
        terminations=terminations,
        cut_values_white=np.where(is_cut, rng.uniform(-1, 1, size=n), 0).astype(np.float32),
        start_kinds=rng.integers(len(START_KINDS), size=n, dtype=np.uint8),
    )


@st.composite
def any_records(draw):
    lengths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return make_records(rng, lengths, draw(st.sampled_from([1, 2, 40])), draw(st.integers(1, 7)))


def assert_same_records(actual, expected, exact=True):
    """``exact=False`` allows what float16 on the disk costs."""
    for name in (
        "states", "actions", "target_offsets", "target_actions", "game_offsets",
        "outcomes_white", "terminations", "start_kinds",
    ):
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name), name)
        assert getattr(actual, name).dtype == getattr(expected, name).dtype, name
    tolerance = {} if exact else {"rtol": 2e-3, "atol": 1e-7}
    compare = np.testing.assert_array_equal if exact else np.testing.assert_allclose
    for name in ("values_stm", "surprises", "target_weights", "cut_values_white"):
        compare(getattr(actual, name), getattr(expected, name), err_msg=name, **tolerance)
        assert getattr(actual, name).dtype == np.float32, name
