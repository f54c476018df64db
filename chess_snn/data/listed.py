"""Which of many lists hold which actions, in one call a batch."""

import numpy as np

from chess_snn.jit import kernel
from chess_snn.types import BoolArray, Int16Array, Int32Array, Int64Array


@kernel
def has_unlisted(
    legal_actions: Int16Array, num_legal: Int32Array, offsets: Int64Array, entries: Int16Array
) -> BoolArray:
    """bool[k]: whether an action of run i of ``entries`` is missing from legal list i.

    Args:
        legal_actions: int16[>= k, M], lists of legal actions.
        num_legal: int32[>= k], their lengths.
        offsets: int64[k + 1], where each run begins and the last one ends.
        entries: int16[E], actions.
    """
    found = np.zeros(len(offsets) - 1, np.bool_)
    for i in range(len(found)):
        for j in range(offsets[i], offsets[i + 1]):
            is_listed = False
            for m in range(num_legal[i]):
                if legal_actions[i, m] == entries[j]:
                    is_listed = True
                    break
            if not is_listed:
                found[i] = True
                break
    return found
