"""chess-snn: a spiking neural network learns chess by playing itself.

The names of ``__all__`` are the public interface; the errors are in :mod:`chess_snn.errors`. A name
is loaded when it is used first: importing the package loads neither torch nor numba.

>>> import chess, chess_snn
>>> net = chess_snn.load("chess")
>>> net.search(chess.Board("6k1/5ppp/8/8/8/8/8/K3R3 w - - 0 1"), simulations=32).move.uci()
'e1e8'
"""

import atexit
import gc
import os
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from chess_snn.later import exports

if TYPE_CHECKING:
    from chess_snn.api.answers import Analysis, Evaluation, Spikes
    from chess_snn.api.campaigns import Campaign, open_campaign, start_campaign
    from chess_snn.api.environment import Env, make_env, pettingzoo_env
    from chess_snn.api.matches import Match, Player, play_match, player
    from chess_snn.api.network import Net, load
else:
    __getattr__ = exports(__name__)

# torch's threads spin while they wait for each other. Where another process wants the core they
# spin on, two threads train ten times slower than one; asleep, they lose next to nothing. OpenMP
# reads this when torch is loaded, so it stands here, before any module of ours loads torch.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# On a processor of Intel, MKL may add a row's products in another order if the batch has another
# size, unless it is asked for strict reproducibility. A position's evaluation must not depend on
# what else is in its batch. MKL reads this at its first product of matrices.
with suppress(OSError), Path("/proc/cpuinfo").open("rb") as _facts:
    if b"GenuineIntel" in _facts.readline() + _facts.readline():
        os.environ.setdefault("MKL_CBWR", "AVX2,STRICT")

# While torch, Prefect and MLflow are imported, Python would look for cycles again and again, for a
# fifth of that time, and once more when the process ends, for a second or two.
gc.set_threshold(max(gc.get_threshold()[0], 10_000))
atexit.register(gc.freeze)

try:
    __version__ = version("chess-snn")
except PackageNotFoundError:  # a checkout on the path that was never installed
    __version__ = "0+uninstalled"

__all__ = [
    "Analysis",
    "Campaign",
    "Env",
    "Evaluation",
    "Match",
    "Net",
    "Player",
    "Spikes",
    "load",
    "make_env",
    "open_campaign",
    "pettingzoo_env",
    "play_match",
    "player",
    "start_campaign",
]


def __dir__() -> list[str]:
    """The public names, loaded or not, and what is loaded."""
    return sorted({*globals(), *__all__})
