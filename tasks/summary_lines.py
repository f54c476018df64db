"""The line that each task writes into its own Prefect log when it ends."""

from collections.abc import Mapping, Sequence
from typing import Any

from chess_snn.campaign import Receipt
from chess_snn.campaign.store.match_facts import MatchFacts
from chess_snn.campaign.store.receipt_parts import EvaluationFacts, PromotionFacts, ShardFacts
from chess_snn.self_play import SelfPlayStatistics
from chess_snn.tasks.remote import Done
from chess_snn.wording import counted

_LOSSES = {"total_loss": "total", "policy_loss": "policy", "value_loss": "value"}
"""Names of a generation's metrics, and what they are called in the line."""


def was_played_now(done: Done[ShardFacts]) -> bool:
    """Whether the worker played the shard, rather than found it committed by an earlier run."""
    return done.seconds >= done.result.statistics.seconds


def shard_line(done: Done[ShardFacts]) -> str:
    """``vm/cpu-0 on a processor: 40 games (3 white wins, 34 draws, 3 black wins), …``."""
    played = done.result.statistics
    figures = (
        f"{counted(played.games, 'game')} ({outcomes_text(played)}), {played.plies_mean:.1f} plies "
        f"each, {played.games / played.seconds:.2f} games/s"
    )
    if not was_played_now(done):
        return f"{figures}; an earlier run had played them"
    return f"{_place(done)}: {figures}"


def outcomes_text(played: SelfPlayStatistics) -> str:
    """``3 white wins, 34 draws, 3 black wins``; with one player points, of ordinary games."""
    if played.num_players == 2:
        draws = played.games - played.white_wins - played.black_wins
        counts = {"white win": played.white_wins, "draw": draws, "black win": played.black_wins}
        return ", ".join(counted(count, what) for what, count in counts.items())
    if not played.ordinary_games:
        return "none from the start"
    return (
        f"{played.points_mean:,.0f} points on average, median {played.points_median:,.0f}, "
        f"{max(played.reached, key=int)} reached"
    )


def training_line(done: Done[Any], generation: int, figures: Mapping[str, float]) -> str:
    """``vm/cpu-0 on …: generation 3 after 120 steps, 1 rank, 1,800 samples/s; loss: total …``.

    ``figures`` has the ``steps``, ``ranks`` (1 where they are missing), pace and losses.
    """
    ranks = int(figures.get("ranks", 1))
    losses = ", ".join(
        f"{word} {figures[name]:.3f}" for name, word in _LOSSES.items() if name in figures
    )
    return (
        f"{_place(done)}: generation {generation} after "
        f"{counted(round(figures['steps']), 'step')}, {counted(ranks, 'rank')}, "
        f"{figures['samples_per_s']:,.0f} samples/s; loss: {losses}"
    )


def evaluation_line(facts: EvaluationFacts) -> str:
    """The matches, the won positions, and the Elo of the ladder test, if there was one."""
    won = [] if facts.conversion is None else [
        f"won positions converted: {facts.conversion.rate:.0%}"
    ]
    elo = None if facts.ladder_test is None else facts.ladder_test.elo
    ladder = [] if elo is None else [f"Elo on the ladder: {elo:.0f}"]
    return "; ".join([matches_line(facts.matches), *won, *ladder])


def matches_line(matches: Sequence[MatchFacts]) -> str:
    """``random 0.713 (0.641 to 0.775), greedy 0.150 (0.090 to 0.240)``; 95 % intervals.

    In a game of one player the points that were scored stand before.
    """
    own = [f"{match.points.a} points" for match in matches[:1] if match.points]
    scores = (f"{match.name} {match.score_text}" for match in matches)
    return ", ".join([*own, *scores])


def promotion_line(receipt: Receipt) -> str:
    """Say which generation is the champion after the iteration, and why."""
    played: PromotionFacts | None = receipt.promotion
    verdict = "" if played is None else f"; {played}"
    news = "is the new champion" if receipt.promoted else "stays the champion"
    return f"generation {receipt.champion} {news}{verdict}"


def _place(done: Done[Any]) -> str:
    return f"{done.worker} on {done.device}" if done.device else done.worker
