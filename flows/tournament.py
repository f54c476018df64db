"""The tournament flow: generations of a campaign meet each other and fixed players."""

from collections.abc import Sequence
from itertools import combinations
from typing import Final

from prefect import flow, get_run_logger, unmapped
from prefect.artifacts import create_table_artifact
from prefect.task_runners import ThreadPoolTaskRunner

from chess_snn.campaign import CampaignFolder, campaign_lock, read_receipts
from chess_snn.campaign.stages.networks import game_of
from chess_snn.campaign.strength.match_schedule import ScheduledMatch, player_name
from chess_snn.campaign.strength.ratings import rate_campaign
from chess_snn.campaign.viewing.events import EVALUATION
from chess_snn.data import is_committed
from chess_snn.errors import ConfigError
from chess_snn.evaluation.named_players import make_player
from chess_snn.evaluation.openings import check_book
from chess_snn.types import Json
from chess_snn.wording import counted
from flows.cluster import watched_workers
from flows.context import one_run_a_folder, retried
from flows.listeners import log_lines, progress_artifact
from flows.parameters import Count, CountOrNone, absolute_path
from flows.run_log import log_sentences
from tasks import compute
from tasks.progress import ProgressBoard
from tasks.stages import play_match

DEFAULT_OPPONENTS: Final = ("random", "greedy")

_MATCHES_AT_ONCE: Final = 16
"""Threads that wait for matches; devices take parts of them one by one."""


@flow(
    name="tournament",
    flow_run_name="tournament-{directory}",
    task_runner=ThreadPoolTaskRunner(max_workers=_MATCHES_AT_ONCE),
)
def tournament(
    directory: str,
    generations: list[CountOrNone] | None = None,
    opponents: list[str] | None = None,
    simulations: CountOrNone = 64,
    openings: Count = 50,
) -> list[Json]:
    """Play a round: every two generations, and every generation against every fixed player.

    Results go to matches/tournament-… in the campaign's folder, where `chess-snn ratings` and
    `chess-snn games export --matches` find them. What was played before is not played again.

    Args:
        directory: the campaign folder, absolute. While a campaign runs, its tournament waits.
        generations: that take part, such as [0, 10, 20]; left out, the newest alone.
        opponents: such as "random", "greedy", "minimax:2" or "stockfish@1000"; left out, random
            and greedy.
        simulations: of a network at each move; 0 plays its policy without search.
        openings: of each match; each is played with both colours.

    Returns:
        The ratings of all players of the campaign, the strongest first.
    """
    log_sentences()
    folder = CampaignFolder.open(absolute_path("directory", directory))
    if opponents is None:
        opponents = list(DEFAULT_OPPONENTS)
    matches = plan_matches(folder, generations, opponents, simulations, openings)
    with one_run_a_folder(folder.campaign_id, get_run_logger()), campaign_lock(folder):
        _play_all(folder, matches)
    return _show_ratings(folder)


def plan_matches(
    folder: CampaignFolder, generations: Sequence[int] | None, opponents: Sequence[str],
    simulations: int, openings: int,
) -> list[ScheduledMatch]:
    """The matches of a round.

    Raises:
        ConfigError: a generation does not exist, there is nothing to play, or the book has not
            that many openings.
        UsageError: an opponent is not known, or its engine is not installed.
    """
    if folder.config.evaluation.openings == "book":
        check_book(game_of(folder), openings, "openings")
    newest = len(read_receipts(folder))
    chosen = sorted({newest} if generations is None else set(generations))
    for generation in chosen:
        if not is_committed(folder.checkpoint(generation)):
            raise ConfigError(
                f"{folder.path} has no generation {generation}; its newest is {newest}"
            )
    for opponent in opponents:
        make_player(game_of(folder), opponent)
    pairs: list[tuple[int, int | str]] = [
        *((newer, older) for older, newer in combinations(chosen, 2)),
        *((generation, opponent) for generation in chosen for opponent in dict.fromkeys(opponents)),
    ]
    if not pairs:
        raise ConfigError("a tournament needs two generations, or a generation and an opponent")
    return [
        ScheduledMatch(
            event=f"tournament-{openings:05d}",
            name=f"{player_name(generation, simulations)}-{player_name(opponent, simulations)}",
            generation=generation, opponent=opponent, simulations=simulations,
            num_openings=openings,
        )
        for generation, opponent in pairs
    ]


def _play_all(folder: CampaignFolder, matches: Sequence[ScheduledMatch]) -> None:
    board = ProgressBoard([log_lines(get_run_logger()), progress_artifact()])
    num_games = sum(match.num_games for match in matches)
    iteration = len(read_receipts(folder))
    games_each = counted(matches[0].num_games, "game")
    board.message(f"{counted(len(matches), 'match')} of {games_each} each")
    compute.start()
    with (
        watched_workers(folder, board),
        compute.stopped_by_errors(),
        board.stage(iteration, EVALUATION, "games", num_games),
    ):
        retried(play_match, folder.config).map(
            unmapped(folder), list(matches), unmapped(iteration)
        ).result()


def _show_ratings(folder: CampaignFolder) -> list[Json]:
    rated = rate_campaign(folder)
    rows = [] if rated is None else [rating.to_json() for rating in rated.ratings.table]
    if rated is not None and rated.notice is not None:
        get_run_logger().warning(rated.notice)
    create_table_artifact(rows, key="tournament-ratings", description=f"Elo in {folder.name}")
    return rows
