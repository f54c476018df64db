"""A check of actions that come from outside, before a kernel plays them."""

from chess_snn.jit import kernel
from chess_snn.types import Int16Array, Int32Array, Int64Array


@kernel
def find_illegal(
    legal_actions: Int16Array, num_legal: Int32Array, actions: Int16Array | Int64Array
) -> int:
    """The first row whose entry of ``actions``, a whole number each, is not in its list; or -1.

    Lists are int16[G, M], their lengths int32[G]; rows with an empty list are passed over.
    """
    for g in range(len(actions)):
        is_legal = num_legal[g] == 0
        for j in range(num_legal[g]):
            if legal_actions[g, j] == actions[g]:
                is_legal = True
                break
        if not is_legal:
            return g
    return -1
