"""Players, the matches between them, and what a score is worth."""

from chess_snn.evaluation.analysis import Analysis, analyse
from chess_snn.evaluation.conversion import Conversion, conversion_rate, won_positions
from chess_snn.evaluation.elo import elo_difference
from chess_snn.evaluation.forced_wins import forced_wins, num_solved, winning_actions
from chess_snn.evaluation.intervals import wilson_interval
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.matches import DEFAULT_MAX_PLIES, play_match
from chess_snn.evaluation.minimax import GreedyPlayer, MinimaxPlayer
from chess_snn.evaluation.named_players import KNOWN_PLAYERS, make_player
from chess_snn.evaluation.openings import random_openings
from chess_snn.evaluation.players import Player, RandomPlayer, SearchPlayer

__all__ = [
    "DEFAULT_MAX_PLIES",
    "KNOWN_PLAYERS",
    "Analysis",
    "Conversion",
    "GreedyPlayer",
    "MatchResult",
    "MinimaxPlayer",
    "Player",
    "RandomPlayer",
    "SearchPlayer",
    "analyse",
    "conversion_rate",
    "elo_difference",
    "forced_wins",
    "make_player",
    "num_solved",
    "play_match",
    "random_openings",
    "wilson_interval",
    "winning_actions",
    "won_positions",
]
