"""Many concurrent games on one device, recorded for training."""

from chess_snn.self_play.player import play_games
from chess_snn.self_play.settings import SelfPlaySettings
from chess_snn.self_play.statistics import SelfPlayStatistics, combine

__all__ = ["SelfPlaySettings", "SelfPlayStatistics", "combine", "play_games"]
