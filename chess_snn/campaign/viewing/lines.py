"""Events, iterations and matches as lines of text, the same in every place that shows them."""

import time
from collections.abc import Sequence
from typing import Final

from chess_snn.campaign.store.receipt_parts import VERDICT_NUMBERS, VERDICT_WORDS, Verdict
from chess_snn.campaign.viewing.events import (
    AlarmRaised,
    CampaignFinished,
    Event,
    IterationFinished,
    Message,
    StageProgress,
    WorkersProgress,
)
from chess_snn.campaign.viewing.results import result_row, score_column
from chess_snn.evaluation.solo import interval_text
from chess_snn.types import Json
from chess_snn.wording import counted

NOT_MEASURED: Final = ""
"""Shown where there is no figure."""
MOST_WORKERS: Final = 16
"""More workers are shown only as one line of all together."""

_PREFIXES: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ"),
                    (1e-9, "n"), (1e-12, "p"))
_JOULES: Final = 1e-12
"""In a picojoule."""
_STAGE_PERIOD_S: Final = 10.0
_WORKERS_PERIOD_S: Final = 60.0
_S_PER_MINUTE: Final = 60


def event_lines(event: Event) -> Sequence[str]:
    """What ``event`` says."""
    match event:
        case Message(text):
            return [text]
        case StageProgress():
            return [str(event)]
        case WorkersProgress(workers):
            each = map(str, workers if len(workers) <= MOST_WORKERS else ())
            return [str(event), *each] if workers else []
        case IterationFinished(receipt, length):
            return [iteration_line(result_row(receipt, length))]
        case AlarmRaised(alarm):
            return [f"ALARM {alarm}"]
        case CampaignFinished(length):
            return [f"the campaign is finished: {length}"]


class NowAndThen:
    """Chooses the events that a log shows: progress only now and then, everything else always."""

    def __init__(self) -> None:
        now_s = time.monotonic()
        self._next_stage_s: dict[tuple[int, str], float] = {}
        self._next_workers_s = now_s + _WORKERS_PERIOD_S

    def __call__(self, event: Event) -> bool:
        """Whether ``event`` is one of them."""
        now_s = time.monotonic()
        if isinstance(event, StageProgress):
            next_s = self._next_stage_s.setdefault(event.key, now_s + _STAGE_PERIOD_S)
            if event.has_ended:
                del self._next_stage_s[event.key]
            elif now_s < next_s:
                return False
            else:
                self._next_stage_s[event.key] = now_s + _STAGE_PERIOD_S
        elif isinstance(event, WorkersProgress):
            if now_s < self._next_workers_s:
                return False
            self._next_workers_s = now_s + _WORKERS_PERIOD_S
        return True


def figure(row: Json, name: str, form: str) -> str:
    """One figure of a row, formatted; :data:`NOT_MEASURED` where it is None."""
    value = row[name]
    return NOT_MEASURED if value is None else format(value, form)


def interval(row: Json, opponent: str) -> str:
    """Score against ``opponent`` and its 95 % interval: ``0.960 (0.805 to 0.993)``."""
    name = score_column(opponent)
    if row[name] is None:
        return NOT_MEASURED
    return f"{row[name]:.3f} ({row[name + '_low']:.3f} to {row[name + '_high']:.3f})"


def points_interval(row: Json) -> str:
    """Mean points of the evaluation and their 95 % interval: ``11,907 (11,267 to 12,548)``."""
    if row.get("points") is None:
        return NOT_MEASURED
    ends = {end: row[f"points_{end}"] for end in ("low", "high")}
    return interval_text({"mean": row["points"], **ends})


def elo_interval(row: Json, rating: str = "elo") -> str:
    """Elo above the random mover and its 95 % interval: ``312 (250 to 380)``; or its one bound.

    ``rating`` is ``elo`` by the campaign's own games, ``ladder_elo`` on the ladder's scale.
    """
    elo, low, high = (row.get(rating + end) for end in ("", "_low", "_high"))
    if elo is not None:
        ends = ("-inf" if low is None else f"{low:.0f}", "inf" if high is None else f"{high:.0f}")
        return f"{elo:.0f} ({ends[0]} to {ends[1]})"
    if low is not None:
        return f"above {low:.0f}"
    return NOT_MEASURED if high is None else f"below {high:.0f}"


def duration(seconds: float) -> str:
    """``3:05:09``, or ``5:09`` below an hour."""
    minutes, rest = divmod(round(seconds), _S_PER_MINUTE)
    hours, minutes = divmod(minutes, _S_PER_MINUTE)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def gating_text(row: Json) -> str:
    """The verdict of a row as :func:`verdict_text`; empty without games against the champion."""
    if row["promotion_verdict"] is None:
        return NOT_MEASURED
    verdicts = {number: verdict for verdict, number in VERDICT_NUMBERS.items()}
    return verdict_text(
        verdicts[row["promotion_verdict"]], row["promotion_elo_ahead"], row["promotion_score"],
        int(row["promotion_games"]),
    )


def verdict_text(verdict: Verdict, elo_ahead: float | None, score: float, games: int) -> str:
    """``accepted +13 Elo, 0.438 (64)``: by all games, and the score and games of the match."""
    elo = "" if elo_ahead is None else f" {elo_ahead:+.0f} Elo,"
    return f"{VERDICT_WORDS[verdict]}{elo} {score:.3f} ({games})"


def is_faulty(match: Json) -> bool:
    """Whether a game was forfeited, and so lost, or is void, and does not count."""
    return any(match.get(name, 0) for name in ("forfeits_a", "forfeits_b", "voided"))


def faults_text(match: Json) -> tuple[str, str]:
    """``1-0`` forfeits of the player and its opponent; games that are void."""
    forfeits = f"{match.get('forfeits_a', 0)}-{match.get('forfeits_b', 0)}"
    return forfeits, str(match.get("voided", 0))


def iteration_line(row: Json) -> str:
    """The figures of one iteration that matter."""
    score = "" if row["score"] is None else f", score {row['score']:.3f}"
    if elo_interval(row) != NOT_MEASURED:
        score += f", Elo by own games {elo_interval(row)}"
    if (ladder := elo_interval(row, "ladder_elo")) != NOT_MEASURED:
        score += f", Elo on the ladder {ladder}"
    if points_interval(row) != NOT_MEASURED:
        score = f", {points_interval(row)} points{score}"
    learnt = (
        f"{figure(row, 'self_play_points', ',.0f')} points on average"
        if row["draw_rate"] is None else
        f"draws {row['draw_rate']:.0%}, best moves "
        f"{figure(row, 'reference_policy_accuracy', '.1%')}"
    )
    pace = figure(row, "positions_per_s", ",.0f")
    pace = "" if pace == NOT_MEASURED else f"{pace} positions/s, "
    gating_match = f", against the champion {told}" if (told := gating_text(row)) else ""
    champion = ", new champion" if row["champion"] == row["generation"] else ""
    return (
        f"iteration {row['iteration']} ({row['progress']:.0%} of the campaign): "
        f"{counted(row['games'], 'game')}, {pace}"
        f"{learnt}{score}{gating_match}{champion}"
    )


def match_line(match: Json) -> str:
    """One match at the end of a campaign."""
    forfeits, void = faults_text(match)
    faults = f"; forfeits {forfeits}, {void} void" if is_faulty(match) else ""
    if "points" in match:
        own, ahead = (interval_text(match["points"][side]) for side in ("a", "ahead"))
        faults = f"; {own} points, ahead by {ahead}{faults}"
    return (
        f"{match['player_a']} against {match['player_b']}: "
        f"{match['wins']}-{match['draws']}-{match['losses']}, score {match['score']:.3f} "
        f"({match['score_low']:.3f} to {match['score_high']:.3f}){faults}"
    )


def ladder_test_line(ladder_test: Json) -> str:
    """Where a generation stands on the ladder, and what it scored on the rungs about it."""
    ends = (ladder_test["elo_low"], ladder_test["elo_high"])
    interval = " to ".join("unknown" if end is None else f"{end:.0f}" for end in ends)
    elo = "unknown" if ladder_test["elo"] is None else f"{ladder_test['elo']:.0f}"
    rungs = ", ".join(
        f"{rung['score']:.2f} against {rung['player']} ({rung['elo']:.0f})"
        for rung in ladder_test["rungs"] if rung["player"] in ladder_test["bracket"]
    )
    return (
        f"{ladder_test['player']} on the ladder: Elo {elo} ({interval}) by "
        f"{counted(ladder_test['num_games'], 'game')}; {rungs}"
    )


def si_text(value: float, unit: str = "") -> str:
    """Three digits with an SI prefix."""
    for factor, prefix in _PREFIXES:
        if value >= factor:
            scaled = value / factor
            digits = 2 if scaled < 10 else 1 if scaled < 100 else 0
            return f"{scaled:.{digits}f} {prefix}{unit}".rstrip()
    return f"0 {unit}".rstrip()


def joules_text(picojoules: float) -> str:
    """The same of an energy."""
    return si_text(picojoules * _JOULES, "J")
