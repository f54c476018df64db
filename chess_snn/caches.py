"""The folder of everything that can be computed again, and may be deleted at any time."""

import os
from pathlib import Path


def cache_root() -> Path:
    """``$CHESS_SNN_CACHE``, else ``$XDG_CACHE_HOME/chess-snn``, else ``~/.cache/chess-snn``.

    Compiled kernels, measurements of this machine, an empty database.
    """
    if explicit := os.environ.get("CHESS_SNN_CACHE"):
        return Path(explicit)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "chess-snn"
