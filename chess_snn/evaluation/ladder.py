"""One player against several opponents from the same openings."""

from collections.abc import Callable, Sequence

from chess_snn.errors import ConfigError
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.matches import DEFAULT_MAX_PLIES, play_match
from chess_snn.evaluation.players import Player
from chess_snn.games.base import Game
from chess_snn.types import UInt64Array


def evaluate_against(
    game: Game,
    player: Player,
    opponents: Sequence[Player],
    openings: UInt64Array,
    *,
    seed: int,
    max_plies: int = DEFAULT_MAX_PLIES,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[MatchResult]:
    """A match of ``player`` against each of ``opponents``, in their order.

    The player draws the same random numbers against every opponent, so that differences between
    the matches come from the opponents.

    Args:
        game: what they play.
        player: the a of every match.
        opponents: the b of each match.
        openings: uint64[n, W]; each is played twice against each opponent.
        seed: of all random streams.
        max_plies: cap on half-moves a game.
        on_progress: called with games finished and games in all, over all matches.

    Raises:
        ConfigError: as in :func:`chess_snn.evaluation.matches.play_match`.
    """
    games_per_match = 2 * len(openings)
    results: list[MatchResult] = []
    for opponent in opponents:
        games_before = len(results) * games_per_match

        def report(finished: int, _num_games: int, games_before: int = games_before) -> None:
            if on_progress is not None:
                on_progress(games_before + finished, len(opponents) * games_per_match)

        results.append(
            play_match(
                game, player, opponent, openings,
                seed=seed, max_plies=max_plies, on_progress=report,
            )
        )
    return results


def mean_score(results: Sequence[MatchResult]) -> float:
    """Mean over the matches of a's score, each opponent counting the same, in [0, 1].

    Raises:
        ConfigError: there is no match.
    """
    if not results:
        raise ConfigError("no match was played; name at least one opponent")
    return sum(result.score for result in results) / len(results)
