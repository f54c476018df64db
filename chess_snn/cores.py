"""How many processor cores this program may use."""

import os


def num_cores() -> int:
    """Cores that this process may run on, >= 1; fewer than the machine's where it is bound."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
