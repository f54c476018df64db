"""Names and limits that the help of commands shows; nothing else is loaded for them."""

from enum import StrEnum
from pathlib import Path
from typing import Final

PRESETS: Final = tuple(sorted(
    path.stem for path in Path(__file__).parent.glob("campaign/configuration/presets/*.toml")
))
"""The presets that come with the package."""
GAME_NAMES: Final = ("chess", "2048")
"""Names that :func:`chess_snn.games.get_game` accepts."""
DEFAULT_GAME: Final = "chess"
"""Game of players that could play any, where neither a network nor an option names one."""
START: Final = "startpos"
"""Stands for the position in which a game begins; in 2048 for the one of seed 0."""
MAX_SIMULATIONS: Final = 100_000
"""Limit of a search."""
MOST_PLIES: Final = 100_000
"""The largest limit of any game, and the default of a game of one player."""
MAX_DEPTH: Final = 6
"""Deepest tree of minimax; each level multiplies the work by the number of legal actions."""
MAX_EXPECTIMAX_DEPTH: Final = 4
"""Deepest tree of expectimax; each level multiplies the work by some fifty."""
BATCH_PAIRS: Final = 5
"""Openings played in a row against one opponent of a ladder, each with both colours."""
APPROXIMATE_ELO: Final = 150.0
"""Points by which an engine of another version than the ladder's may differ from its rung, with
95 % confidence. Assumed, not measured."""
MOST_GAMES: Final = 2000
"""Games of a pairing: the book has 1,000 openings."""
LINES: Final = 4
"""Moves that get a share of the policy, of an engine that teaches."""
LINES_TEMPERATURE_CP: Final = 50.0
"""Centipawns by which a move must be worse to get 1/e of the better one's share."""
TIMEOUT_S: Final = 300.0
"""How long ranks that train together wait for one of them by default."""
ANSWER_S: Final = 10.0
"""An engine that has not moved after this many seconds counts as dead."""

ENGINE_FORMS: Final = ("stockfish@NODES", "stockfish:depth=N", "uci:ENGINE@NODES")
"""Forms of an engine's name; ``uci:ENGINE:depth=N`` too."""
PLAYER_NAMES: Final = ("random", "greedy", "minimax", "expectimax", "stockfish")
KNOWN_PLAYERS: Final = (
    "random", "greedy", f"minimax:N (N from 1 to {MAX_DEPTH})",
    f"expectimax:N (N from 1 to {MAX_EXPECTIMAX_DEPTH})", *ENGINE_FORMS,
    "PLAYER~P (P % of its moves are random)",
)
"""Forms of the players' names."""

WEIGHTS: Final = "weights.safetensors"
"""The file of a network in its folder."""
SHIPPED: Final = "shipped/"
"""Begins the name of a network that comes with this program."""
SHIPPED_FOLDER: Final = Path(__file__).parent / "networks"
"""Folder of shipped networks, exported models; the one that plays a game has the game's name."""
SHIPPED_MODELS: Final = tuple(
    SHIPPED + path.parent.name for path in sorted(SHIPPED_FOLDER.glob(f"*/{WEIGHTS}"))
)
"""Their names."""
SHIPPED_CHESS: Final = f"{SHIPPED}chess"
"""The network of chess that comes with this program."""
KNOWN_MODELS: Final = (
    "a campaign's folder (its newest generation), CAMPAIGN@GENERATION, CAMPAIGN@champion, an "
    f"exported model's or a checkpoint's folder, a {WEIGHTS}, models:/NAME@ALIAS or "
    "models:/NAME/VERSION of a registry, or one that comes with this program: "
    + ", ".join(SHIPPED_MODELS)
)
"""How a network is written."""


class Format(StrEnum):
    """Format of an exported network; any but the first is for other libraries."""

    SAFETENSORS = "safetensors"
    NIR = "nir"
    ONNX = "onnx"
