"""Selection of the games of a PGN file by tags and results; moves are read later.

Speeds are those of Lichess: seconds of the initial time and 40 times the increment decide.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from chess_snn.errors import UsageError
from chess_snn.pgn.tokens import RESULT_TEXTS, UNKNOWN_RESULT
from chess_snn.settings import check_range

LIMIT: Final = "limit"
"""Under which good games count that came after ``--limit`` was reached."""
SPEEDS: Final[Mapping[str, float]] = {
    "ultrabullet": 30, "bullet": 180, "blitz": 480, "rapid": 1500, "classical": math.inf,
}
"""Seconds that a speed stays below."""
CORRESPONDENCE: Final = "correspondence"
"""A game without a clock: ``TimeControl`` is ``-``."""
RESULTS: Final = tuple(
    text for result, text in RESULT_TEXTS.items() if result != UNKNOWN_RESULT
)

_USUAL_MOVES: Final = 40
_PERIOD: Final = re.compile(r"(?:\d{1,3}/)?(\d{1,7})(?:\+(\d{1,5}))?")
"""Parts of a time control: moves, seconds, increment; colons divide periods."""
_ELO: Final = re.compile(r"\d{1,4}")
_TAG: Final = re.compile(
    rb'\[[ \t]*(WhiteElo|BlackElo|TimeControl)[ \t]*"([^"\r\n]*)"[ \t]*\]', re.IGNORECASE
)


def speed_of(time_control: str) -> str:
    """The speed that Lichess calls a game with this ``TimeControl``; empty where it says none."""
    if time_control == "-":
        return CORRESPONDENCE
    periods = [_PERIOD.fullmatch(period) for period in time_control.split(":")]
    seconds = 0
    for period in periods:
        if period is None:
            return ""
        seconds += int(period[1]) + _USUAL_MOVES * int(period[2] or 0)
    return next(speed for speed, limit in SPEEDS.items() if seconds < limit)


@dataclass(frozen=True, slots=True)
class Selection:
    """The wanted games; without arguments all of them. A game that does not say is not wanted."""

    min_elo: int | None = None
    """Least rating of both players."""
    time_controls: tuple[str, ...] = ()
    """Speeds, or values of ``TimeControl`` such as ``300+3``."""
    results: tuple[str, ...] = ()
    """Results among ``RESULTS``."""
    limit: int | None = None
    """Games to import at most: the first good ones."""

    def __post_init__(self) -> None:
        if self.min_elo is not None:
            check_range("--min-elo", self.min_elo, ge=0, le=9999)
        if self.limit is not None:
            check_range("--limit", self.limit, ge=1)
        for value in self.time_controls:
            if value not in (*SPEEDS, CORRESPONDENCE) and not speed_of(value):
                raise UsageError(
                    f"--time-control must be {', '.join([*SPEEDS, CORRESPONDENCE])}, or seconds "
                    f"such as 300+3, got {value!r}"
                )
        for value in self.results:
            if value not in RESULTS:
                raise UsageError(f"--result must be among {', '.join(RESULTS)}, got {value!r}")

    def __str__(self) -> str:
        """Options of ``games import``; empty where all games are wanted."""
        return " ".join(
            f"--{name} {value}" for name, value in self._options().items()
        )

    def option(self, name: str) -> str:
        """The option that left out the games that count under ``name``."""
        return f"--{name} {self._options()[name]}"

    def drops(self, tags: bytes, result: int) -> str:
        """The option that leaves out a game with these tag pairs and result; empty if none does."""
        found: dict[str, str] = {}
        if self.min_elo is not None or self.time_controls:
            for name, value in _TAG.findall(tags):
                found.setdefault(name.decode().lower(), value.decode("latin-1").strip())
        elos = [found.get("whiteelo", ""), found.get("blackelo", "")]
        if self.min_elo is not None and not all(map(self._is_strong, elos)):
            return "min-elo"
        if self.time_controls and not self._is_timed(found.get("timecontrol", "")):
            return "time-control"
        if self.results and RESULT_TEXTS.get(result) not in self.results:
            return "result"
        return ""

    def _is_strong(self, elo: str) -> bool:
        return bool(_ELO.fullmatch(elo)) and int(elo) >= (self.min_elo or 0)

    def _is_timed(self, time_control: str) -> bool:
        return not {time_control, speed_of(time_control)}.isdisjoint(self.time_controls)

    def _options(self) -> dict[str, str]:
        values = {
            "min-elo": self.min_elo, "time-control": ",".join(self.time_controls),
            "result": ",".join(self.results), LIMIT: self.limit,
        }
        return {name: str(value) for name, value in values.items() if value not in ("", None)}


EVERYTHING: Final = Selection()
