"""Other people's engines as players: programs that speak UCI, asked from their own processes."""

from typing import TYPE_CHECKING

from chess_snn.later import exports

if TYPE_CHECKING:
    from chess_snn.evaluation.engines.process import Candidate, EngineFailureError, EngineProcess
else:
    __getattr__ = exports(__name__)
