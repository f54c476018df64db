"""Games by worker: adds up the events of each, beside what Dask knows of it."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from chess_snn.campaign.stages.warm_start import SUPERVISED
from chess_snn.campaign.viewing.live import WorkerProgress
from tasks.cluster.device_use import WorkerState

_RATE_S: Final = 60.0
"""Length of the window that paces are told from."""
_LEAST_S: Final = 1.0
"""Seconds that a pace is told from at least."""
_STAGES_OF_STEPS: Final = ("train", SUPERVISED)
"""They count steps; all others games."""


class WorkerBoard:
    """Keeps a tally of each worker; may be told by one thread and asked by another."""

    def __init__(
        self, states: Callable[[], Sequence[WorkerState]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Of the workers that ``states`` tells of; ``clock`` counts seconds."""
        self._states, self._clock = states, clock
        self._lock = threading.Lock()
        self._tallies: dict[str, _Tally] = {}

    def handle_event(self, body: Mapping[str, Any]) -> None:
        """Take what a worker sent: see :func:`tasks.remote.play_shard`."""
        with self._lock:
            tally = self._tallies.setdefault(str(body["sender"]), _Tally())
            tally.add(body, self._clock())

    def progress(self) -> list[WorkerProgress]:
        """Of all workers that are there, by name."""
        now_s = self._clock()
        with self._lock:
            return [
                self._tallies.get(state.name, _Tally()).progress(state, now_s)
                for state in sorted(self._states(), key=lambda state: state.name)
            ]


@dataclass(slots=True)
class _Tally:
    """What one worker has sent."""

    games: int = 0
    doing: str = ""
    heard_s: float = 0.0
    part: tuple[Any, ...] = ()
    done: int = 0
    """Of the part."""
    recent: deque[tuple[float, int]] = field(default_factory=deque)
    """Of the last minute: when, and how many games."""

    def add(self, body: Mapping[str, Any], now_s: float) -> None:
        part = (body["iteration"], body["stage"], body["part"])
        # A part that is begun again counts from its beginning.
        before = self.done if part == self.part and body["done"] >= self.done else 0
        self.part, self.done, self.heard_s = part, body["done"], now_s
        if body["stage"] not in _STAGES_OF_STEPS:
            self.games += body["done"] - before
            self.recent.append((now_s, body["done"] - before))
        name = body["stage"].replace("_", "-")
        self.doing = "" if body["done"] >= body["total"] else (
            f"iteration {part[0]} {name}, {part[2]}: {body['done']:,} of {body['total']:,}"
        )

    def progress(self, state: WorkerState, now_s: float) -> WorkerProgress:
        while self.recent and now_s - self.recent[0][0] > _RATE_S:
            self.recent.popleft()
        seconds = now_s - self.recent[0][0] if self.recent else 0.0
        # Those of the oldest entry came before the time that is counted.
        games = sum(number for _, number in self.recent) - (self.recent[0][1] if seconds else 0)
        return WorkerProgress(
            state.name, state.device, self.doing, self.games,
            games / seconds if seconds > _LEAST_S else 0.0,
            min(state.quiet_s, now_s - self.heard_s) if self.heard_s else state.quiet_s,
            state.cores, state.memory_bytes, state.gpu_share, state.gpu_memory_bytes,
            state.gpu_memory_total_bytes,
        )
