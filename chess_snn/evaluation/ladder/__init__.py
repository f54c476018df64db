"""The calibrated ladder: players of known strength, made, read, checked and played."""

from chess_snn.evaluation.ladder.adaptive import (
    APPROXIMATE_ELO,
    BATCH_PAIRS,
    LadderRating,
    RungScore,
    bracketing_rungs,
    distance_to_ladder,
    has_arrived,
    next_rung,
    rate_on_ladder,
    run_ladder_test,
    widened,
)
from chess_snn.evaluation.ladder.check import (
    AvailablePlayers,
    available_players,
    num_same_games,
)
from chess_snn.evaluation.ladder.games_file import LadderGames, pack_games, unpack_games
from chess_snn.evaluation.ladder.ladder import (
    GAMES_FILE,
    LADDER_FILE,
    Ladder,
    PairResults,
    Rung,
    read_ladder,
    shipped_games,
)
from chess_snn.evaluation.ladder.playing import (
    LADDER_PLAYERS,
    LadderPlan,
    ladder_pairings,
    play_ladder,
    programs_of,
    read_matches,
    uses_engine,
)

__all__ = [
    "APPROXIMATE_ELO",
    "BATCH_PAIRS",
    "GAMES_FILE",
    "LADDER_FILE",
    "LADDER_PLAYERS",
    "AvailablePlayers",
    "Ladder",
    "LadderGames",
    "LadderPlan",
    "LadderRating",
    "PairResults",
    "Rung",
    "RungScore",
    "available_players",
    "bracketing_rungs",
    "distance_to_ladder",
    "has_arrived",
    "ladder_pairings",
    "next_rung",
    "num_same_games",
    "pack_games",
    "play_ladder",
    "programs_of",
    "rate_on_ladder",
    "read_ladder",
    "read_matches",
    "run_ladder_test",
    "shipped_games",
    "unpack_games",
    "uses_engine",
    "widened",
]
