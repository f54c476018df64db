"""chess-snn: a spiking neural network learns chess by playing itself."""

import os
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

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

try:
    __version__ = version("chess-snn")
except PackageNotFoundError:  # a checkout on the path that was never installed
    __version__ = "0+uninstalled"
