"""Many concurrent games on one device, recorded for training."""

from typing import TYPE_CHECKING

from chess_snn.later import exports

if TYPE_CHECKING:
    from chess_snn.self_play.asked import AskedPositions, asked_positions
    from chess_snn.self_play.player import play_games
    from chess_snn.self_play.settings import SelfPlaySettings
    from chess_snn.self_play.statistics import PLY_LIMIT, SelfPlayStatistics, combine
else:
    __getattr__ = exports(__name__)
