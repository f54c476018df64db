"""What is settled about the games of one call before any of them begins.

Dimensions: n games, W words a state row.
"""

from dataclasses import dataclass, replace

from chess_snn.config import check_range
from chess_snn.games.base import Game
from chess_snn.games.starts import Chooser
from chess_snn.self_play.settings import SelfPlaySettings
from chess_snn.self_play.starts import Starts, draw_starts, game_streams
from chess_snn.types import UInt64Array


@dataclass(frozen=True, slots=True)
class GamePlan:
    """n games to be played, at one moment of the campaign."""

    starts: Starts
    """Where they begin."""
    action_keys: UInt64Array
    """uint64[n]: the stream of each game's searches."""
    chance_keys: UInt64Array
    """uint64[n]: the stream of its chance events."""
    max_plies: int
    """Most plies of a game."""
    material_share: float
    """Weight of material in the value of a truncated game."""

    def __len__(self) -> int:
        """Number of games, n."""
        return len(self.action_keys)

    def part(self, games: slice) -> "GamePlan":
        """The plan of ``games`` alone."""
        return replace(
            self,
            starts=self.starts.part(games),
            action_keys=self.action_keys[games],
            chance_keys=self.chance_keys[games],
        )


def plan_games(
    game: Game, settings: SelfPlaySettings, *, num_games: int, seed: int, progress: float,
    restarts: UInt64Array | None, policy: Chooser, first_game: int = 0,
) -> GamePlan:
    """Plan ``num_games`` games; arguments are those of :func:`chess_snn.self_play.play_games`.

    ``policy`` is the network's, without search; see :func:`draw_starts`.

    Raises:
        ConfigError: an argument is out of range, or a start cannot be drawn.
    """
    check_range("num_games", num_games, ge=1)
    check_range("first_game", first_game, ge=0)
    check_range("progress", progress, ge=0, le=1)
    return GamePlan(
        starts=draw_starts(
            game, settings, num_games=num_games, seed=seed, progress=progress, restarts=restarts,
            policy=policy, first_game=first_game,
        ),
        action_keys=game_streams(seed, "actions", num_games, first_game),
        chance_keys=game_streams(seed, "chance", num_games, first_game),
        max_plies=settings.max_plies(progress),
        material_share=settings.material_share(progress),
    )
