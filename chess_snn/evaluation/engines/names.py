"""Engines as text: ``stockfish@1000``, ``stockfish:depth=1``, ``uci:/path/to/engine@nodes=100``."""

import re
from typing import Final

from chess_snn.errors import ConfigError
from chess_snn.evaluation.engines.budget import EngineBudget
from chess_snn.evaluation.engines.installed import find_engine
from chess_snn.evaluation.engines.player import EnginePlayer, check_plays
from chess_snn.evaluation.engines.settings import EngineSettings
from chess_snn.games.base import Game

ENGINE_FORMS: Final = ("stockfish@NODES", "stockfish:depth=N", "uci:ENGINE@NODES")
"""How engines are written; ``uci:ENGINE:depth=N`` too."""

_ENGINE: Final = re.compile(r"(stockfish|uci)(?=[:@]|$)")
_BUDGET: Final = re.compile(
    r"(?P<engine>.+?)(?:[@:](?P<unit>nodes|depth)=|@)(?P<amount>[0-9]{1,12})"
)
_PROTOCOL: Final = "uci:"
_STOCKFISH: Final = "stockfish"


def is_engine_name(text: str) -> bool:
    """Whether ``text`` is meant to be an engine, if perhaps wrongly written."""
    return _ENGINE.match(text) is not None


def make_engine_player(game: Game, text: str, settings: EngineSettings) -> EnginePlayer:
    """The engine that ``text`` names; its processes start with its first move.

    Its name is the shortest way to write it: ``stockfish@nodes=100`` is called ``stockfish@100``.

    Raises:
        ConfigError: as :func:`check_engine`.
        EngineError: the engine is not installed.
    """
    check_engine(game, text)
    engine, budget = _parse(text)
    return EnginePlayer(
        game, find_engine(engine.removeprefix(_PROTOCOL)), budget,
        name=f"{engine}{budget.suffix}", settings=settings,
    )


def check_engine(game: Game, text: str) -> None:
    """Refuse what can be no engine on any machine; nobody looks whether it is on this one.

    Raises:
        ConfigError: no engine or no budget is named, or one out of range, or engines do not play
            the game.
    """
    _parse(text)
    check_plays(game, text)


def _parse(text: str) -> tuple[str, EngineBudget]:
    """(``stockfish`` or ``uci:PROGRAM``, budget)."""
    found = _BUDGET.fullmatch(text)
    if found is None:
        raise ConfigError(
            f"player {text!r} does not say how far the engine may look; write it as in "
            "stockfish@1000 (nodes) or stockfish:depth=8"
        )
    budget = EngineBudget("depth" if found["unit"] == "depth" else "nodes", int(found["amount"]))
    engine = found["engine"]
    is_known = engine == _STOCKFISH or engine.startswith(_PROTOCOL)
    if not (is_known and engine.removeprefix(_PROTOCOL)):
        raise ConfigError(f"player {text!r} names no engine; known: {', '.join(ENGINE_FORMS)}")
    return engine, budget
