"""Other people's engines as players: programs that speak UCI, asked from their own processes."""

from chess_snn.evaluation.engines.budget import EngineBudget
from chess_snn.evaluation.engines.installed import find_engine
from chess_snn.evaluation.engines.names import (
    ENGINE_FORMS,
    check_engine,
    is_engine_name,
    make_engine_player,
)
from chess_snn.evaluation.engines.player import EnginePlayer
from chess_snn.evaluation.engines.settings import EngineSettings

__all__ = [
    "ENGINE_FORMS",
    "EngineBudget",
    "EnginePlayer",
    "EngineSettings",
    "check_engine",
    "find_engine",
    "is_engine_name",
    "make_engine_player",
]
