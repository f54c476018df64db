"""Events, iterations and matches as lines of text, the same in every place that shows them."""

import time
from collections.abc import Sequence
from typing import Final

from chess_snn.campaign.store.match_facts import LadderTestFacts, MatchFacts
from chess_snn.campaign.store.receipts import Receipt
from chess_snn.campaign.viewing.events import (
    AlarmRaised,
    CampaignFinished,
    Event,
    IterationFinished,
    Message,
    StageProgress,
    WorkersProgress,
)
from chess_snn.campaign.viewing.figures import figure_text
from chess_snn.campaign.viewing.results import result_row
from chess_snn.types import Json
from chess_snn.wording import counted

MOST_WORKERS: Final = 16
"""More workers are shown only as one line of all together."""

_PREFIXES: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ"),
                    (1e-9, "n"), (1e-12, "p"))
_JOULES: Final = 1e-12
"""Joules in a picojoule."""
_STAGE_PERIOD_S: Final = 10.0
_WORKERS_PERIOD_S: Final = 60.0
_S_PER_MINUTE: Final = 60
_EVEN: Final = 0.5
"""Score of equals."""


def event_lines(event: Event) -> Sequence[str]:
    """Return the lines of ``event``."""
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
        """Return whether ``event`` is one of them."""
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


def duration(seconds: float) -> str:
    """``3:05:09``, or ``5:09`` below an hour."""
    minutes, rest = divmod(round(seconds), _S_PER_MINUTE)
    hours, minutes = divmod(minutes, _S_PER_MINUTE)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def iteration_line(row: Json) -> str:
    """The figures of one iteration that matter."""
    def told(name: str, before: str = "", after: str = "") -> str:
        text = figure_text(row, name)
        return f"{before}{text}{after}" if text else ""

    champion = "new champion" if row["champion"] == row["generation"] else ""
    parts = [
        counted(int(row["games"]), "game"), told("positions_per_s", after=" positions/s"),
        told("self_play_points", after=" points on average"), told("draw_rate", "draws "),
        told("reference_policy_accuracy", "best moves "), told("points", after=" points"),
        told("score", "score "), told("elo", "Elo by own games "),
        told("ladder_elo", "Elo on the ladder "),
        told("promotion_verdict", "against the champion "), champion,
    ]
    return (
        f"iteration {row['iteration']} ({row['progress']:.0%} of the campaign): "
        f"{', '.join(filter(None, parts))}"
    )


def learnt_lines(receipts: Sequence[Receipt]) -> list[str]:
    """A sentence on what the newest evaluated network does better than the first; none before."""
    evaluated = [receipt for receipt in receipts if receipt.matches]
    if not evaluated:
        return []
    first, newest = evaluated[0], evaluated[-1]
    before = {match.player_b: match for match in first.matches if first is not newest}
    told = "; ".join(_learnt(match, before.get(match.player_b)) for match in newest.matches)
    return [f"What it learnt: generation {newest.training.generation} {told}."]


def _learnt(match: MatchFacts, before: MatchFacts | None) -> str:
    """``beats random with 0.99 (0.71 at first)``."""
    def figure(of: MatchFacts) -> str:
        return f"{of.score:.2f}" if of.points is None else f"{of.points.a.mean:,.0f} points"

    verb = (
        "beats" if match.score_low > _EVEN else "loses to" if match.score_high < _EVEN
        else "is about level with"
    )
    at_first = "" if before is None else f" ({figure(before)} at first)"
    return f"{verb} {match.player_b} with {figure(match)}{at_first}"


def match_line(match: MatchFacts) -> str:
    """One match at the end of a campaign."""
    points = "" if match.points is None else (
        f"; {match.points.a} points, ahead by {match.points.ahead}"
    )
    faults = (
        f"; forfeits {match.forfeits_a}-{match.forfeits_b}, {match.voided} void"
        if match.is_faulty else ""
    )
    return (
        f"{match.player_a} against {match.player_b}: {match.wins}-{match.draws}-{match.losses}, "
        f"score {match.score_text}{points}{faults}"
    )


def ladder_test_line(ladder_test: LadderTestFacts) -> str:
    """Return a generation's place on the ladder, and its scores against the rungs near it."""
    ends = (ladder_test.elo_low, ladder_test.elo_high)
    interval = " to ".join("unknown" if end is None else f"{end:.0f}" for end in ends)
    elo = "unknown" if ladder_test.elo is None else f"{ladder_test.elo:.0f}"
    rungs = ", ".join(
        f"{rung.score:.2f} against {rung.player} ({rung.elo:.0f})"
        for rung in ladder_test.rungs if rung.player in ladder_test.bracket
    )
    return (
        f"{ladder_test.player} on the ladder: Elo {elo} ({interval}) by "
        f"{counted(ladder_test.num_games, 'game')}; {rungs}"
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
