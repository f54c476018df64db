"""Players, the matches between them, and what a score is worth."""

from chess_snn.evaluation.analysis import Analysis, analyse
from chess_snn.evaluation.comparison import Comparison, compare
from chess_snn.evaluation.conversion import Conversion, conversion_rate, won_positions
from chess_snn.evaluation.decreed import DECREED_RATINGS
from chess_snn.evaluation.dilution import DilutedPlayer, split_dilution
from chess_snn.evaluation.elo import elo_difference, logistic_score
from chess_snn.evaluation.engines import (
    EngineBudget,
    EnginePlayer,
    EngineSettings,
    find_engine,
)
from chess_snn.evaluation.forced_wins import forced_wins, num_solved, winning_actions
from chess_snn.evaluation.intervals import pair_interval, wilson_interval
from chess_snn.evaluation.match_pgn import PlayerFacts, check_pgn_game, match_pgn
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.matches import (
    DEFAULT_MAX_PLIES,
    default_max_plies,
    paired_games,
    play_match,
)
from chess_snn.evaluation.minimax import GreedyPlayer, MinimaxPlayer
from chess_snn.evaluation.named_players import (
    KNOWN_PLAYERS,
    check_player,
    is_player_name,
    make_player,
)
from chess_snn.evaluation.openings import (
    OpeningSource,
    book_openings,
    check_book,
    choose_openings,
    opening_keys,
    random_openings,
)
from chess_snn.evaluation.pairs import PAIR_SCORES, pair_counts
from chess_snn.evaluation.players import (
    FORFEIT,
    VOID,
    Player,
    ProgramFacts,
    RandomPlayer,
    SearchPlayer,
    program_of,
)
from chess_snn.evaluation.ratings import (
    Crosstable,
    Estimate,
    HeldOutCheck,
    RatedGame,
    Rating,
    Ratings,
    fit_ratings,
    held_out_check,
    match_games,
)
from chess_snn.evaluation.solo import (
    PointFigures,
    SoloGames,
    match_seeds,
    paired_difference,
    play_seeds,
    point_figures,
)
from chess_snn.evaluation.sprt import Elo, ErrorRate, SprtResult, SprtSettings, SprtState, sprt
from chess_snn.evaluation.superiority import likelihood_of_superiority

__all__ = [
    "DECREED_RATINGS",
    "DEFAULT_MAX_PLIES",
    "FORFEIT",
    "KNOWN_PLAYERS",
    "PAIR_SCORES",
    "VOID",
    "Analysis",
    "Comparison",
    "Conversion",
    "Crosstable",
    "DilutedPlayer",
    "Elo",
    "EngineBudget",
    "EnginePlayer",
    "EngineSettings",
    "ErrorRate",
    "Estimate",
    "GreedyPlayer",
    "HeldOutCheck",
    "MatchResult",
    "MinimaxPlayer",
    "OpeningSource",
    "Player",
    "PlayerFacts",
    "PointFigures",
    "ProgramFacts",
    "RandomPlayer",
    "RatedGame",
    "Rating",
    "Ratings",
    "SearchPlayer",
    "SoloGames",
    "SprtResult",
    "SprtSettings",
    "SprtState",
    "analyse",
    "book_openings",
    "check_book",
    "check_pgn_game",
    "check_player",
    "choose_openings",
    "compare",
    "conversion_rate",
    "default_max_plies",
    "elo_difference",
    "find_engine",
    "fit_ratings",
    "forced_wins",
    "held_out_check",
    "is_player_name",
    "likelihood_of_superiority",
    "logistic_score",
    "make_player",
    "match_games",
    "match_pgn",
    "match_seeds",
    "num_solved",
    "opening_keys",
    "pair_counts",
    "pair_interval",
    "paired_difference",
    "paired_games",
    "play_match",
    "play_seeds",
    "point_figures",
    "program_of",
    "random_openings",
    "split_dilution",
    "sprt",
    "wilson_interval",
    "winning_actions",
    "won_positions",
]
