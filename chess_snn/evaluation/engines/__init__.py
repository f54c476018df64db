"""Other people's engines as players: programs that speak UCI, asked from their own processes."""

from chess_snn.evaluation.engines.player import (
    ENGINE_FORMS,
    EnginePlayer,
    check_engine,
    find_engine,
    is_engine_name,
    make_engine_player,
)
from chess_snn.evaluation.engines.pool import EnginePool, EngineSettings, engine_identity
from chess_snn.evaluation.engines.teacher import DEFAULT_LINES, EngineTeacher, Lines

__all__ = [
    "DEFAULT_LINES",
    "ENGINE_FORMS",
    "EnginePlayer",
    "EnginePool",
    "EngineSettings",
    "EngineTeacher",
    "Lines",
    "check_engine",
    "engine_identity",
    "find_engine",
    "is_engine_name",
    "make_engine_player",
]
