"""The calibrated ladder: players of known strength, made, read, checked and climbed."""

from chess_snn.evaluation.ladder.available import AvailablePlayers, available_players
from chess_snn.evaluation.ladder.check import CheckedScore, check_results
from chess_snn.evaluation.ladder.climb import (
    RungScore,
    bracketing_rungs,
    distance_to_ladder,
    has_arrived,
    next_rung,
)
from chess_snn.evaluation.ladder.games_file import LadderGames, pack_games, unpack_games
from chess_snn.evaluation.ladder.ladder import (
    GAMES_FILE,
    LADDER_FILE,
    Ladder,
    Rung,
    read_ladder,
    shipped_games,
)
from chess_snn.evaluation.ladder.pair_results import PairResults
from chess_snn.evaluation.ladder.playing import (
    LadderPlan,
    play_ladder,
    programs_of,
    read_matches,
)
from chess_snn.evaluation.ladder.rate import (
    APPROXIMATE_ELO,
    BATCH_PAIRS,
    LadderRating,
    climb_ladder,
    rate_on_ladder,
    widened,
)
from chess_snn.evaluation.ladder.rungs import LADDER_PLAYERS, ladder_pairings, needs_engine

__all__ = [
    "APPROXIMATE_ELO",
    "BATCH_PAIRS",
    "GAMES_FILE",
    "LADDER_FILE",
    "LADDER_PLAYERS",
    "AvailablePlayers",
    "CheckedScore",
    "Ladder",
    "LadderGames",
    "LadderPlan",
    "LadderRating",
    "PairResults",
    "Rung",
    "RungScore",
    "available_players",
    "bracketing_rungs",
    "check_results",
    "climb_ladder",
    "distance_to_ladder",
    "has_arrived",
    "ladder_pairings",
    "needs_engine",
    "next_rung",
    "pack_games",
    "play_ladder",
    "programs_of",
    "rate_on_ladder",
    "read_ladder",
    "read_matches",
    "shipped_games",
    "unpack_games",
    "widened",
]
