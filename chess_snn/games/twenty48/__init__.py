"""2048 as batched kernels over rows of ``uint64``."""

from chess_snn.games.twenty48.game import TWENTY48_SPEC, Twenty48Game
