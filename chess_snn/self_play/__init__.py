"""Many concurrent games on one device, recorded for training."""

from chess_snn.self_play.asked import AskedPositions, asked_positions
from chess_snn.self_play.player import play_games
from chess_snn.self_play.settings import SelfPlaySettings
from chess_snn.self_play.statistics import PLY_LIMIT, SelfPlayStatistics, combine

__all__ = [
    "PLY_LIMIT",
    "AskedPositions",
    "SelfPlaySettings",
    "SelfPlayStatistics",
    "asked_positions",
    "combine",
    "play_games",
]
