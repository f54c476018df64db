"""Sequential halving as a table: which visit count the next simulation goes to.

Karnin, Koren & Somekh 2013, algorithm 1, as Danihelka et al. 2022 (algorithm 2) use it at the root:
all considered actions get equal visits, then the better half of them, and so on down to two.
"""

from functools import lru_cache

import numpy as np

from chess_snn.types import Int32Array


@lru_cache(maxsize=64)
def halving_table(most_considered: int, simulations: int) -> Int32Array:
    """int32[most_considered + 1, simulations]: row m is the plan for m considered actions.

    Entry t is the number of visits that an action must have had to be simulation t's choice; the
    best of those is taken. Row 0 is not used.
    """
    rows = [_plan(considered, simulations) for considered in range(most_considered + 1)]
    return np.array(rows, np.int32)


def _plan(considered: int, simulations: int) -> list[int]:
    if considered <= 1:
        return list(range(simulations))
    num_phases = (considered - 1).bit_length()
    plan: list[int] = []
    survivors, visits_so_far = considered, 0
    while len(plan) < simulations:
        rounds = max(1, simulations // (num_phases * survivors))
        for _ in range(rounds):
            plan += [visits_so_far] * survivors
            visits_so_far += 1
        survivors = max(2, survivors // 2)
    return plan[:simulations]
