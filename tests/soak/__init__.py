"""A soak: campaigns under a random sequence of faults, and then the proof that nothing was lost.

    python -m tests.soak --minutes 30 --seed 1 --out soak-results

See docs/reliability.md. ``__main__`` runs one campaign after the other, ``campaign`` one of them
with its resumptions. ``faults`` plans and injects faults, ``audit`` proves that a finished campaign
is whole, ``processes`` starts and finds what faults act on, and ``report`` is what is kept.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # of the modules that tests share
