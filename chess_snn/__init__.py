"""chess-snn: a spiking neural network learns chess by playing itself."""

import os
from importlib.metadata import PackageNotFoundError, version

# torch's threads spin while they wait for each other. Where another process wants the core they
# spin on, two threads train ten times slower than one; asleep, they lose next to nothing. OpenMP
# reads this when torch is loaded, so it stands here, before any module of ours loads torch.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

try:
    __version__ = version("chess-snn")
except PackageNotFoundError:  # a checkout on the path that was never installed
    __version__ = "0+uninstalled"
