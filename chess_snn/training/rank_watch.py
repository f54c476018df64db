"""Who is there, and who is not any more: ranks by name, whatever they wait for.

Collective operations of torch say that something timed out, not who kept it waiting, and NCCL's say
nothing at all. So every rank puts a sign of life into the store that the ranks met at, from a
thread: how often it did so, and how many exchanges it has begun. A rank whose signs stop is dead or
frozen; one that is behind the others for long hangs. The rank that notices names it.
"""

import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from torch.distributed import Store  # type: ignore[attr-defined]
from torch.distributed.elastic.multiprocessing.errors import get_error_handler

from chess_snn.errors import RankLostError

_PERIOD_S: Final = 1.0
_POLL_S: Final = 0.05
_SILENT_S: Final = 3.0
"""Signs of a rank that lives are at most two periods old when they are read, on an idle machine."""
EXIT_LOST: Final = 3
"""Exit code of a rank that found another one lost."""
_LEFT: Final = "left"
"""The last sign of a rank that has finished."""


@dataclass(frozen=True, slots=True)
class RankCard:
    """Which process a rank is."""

    rank: int
    host: str
    pid: int

    def __str__(self) -> str:
        """``rank 1 (process 4711 on node-b)``."""
        return f"rank {self.rank} (process {self.pid} on {self.host})"


def meet(store: Store, rank: int, size: int, timeout_s: float) -> list[RankCard]:
    """Wait for all ranks; their cards, in their order.

    Raises:
        RankLostError: some did not come within ``timeout_s`` seconds; names them.
    """
    store.set(_life_key(rank), "0 0")
    ours = {"rank": rank, "host": socket.gethostname(), "pid": os.getpid()}
    names = [f"rank {other}" for other in range(size)]
    texts = gather_texts(store, "card", rank, names, json.dumps(ours), timeout_s)
    return [RankCard(**json.loads(text)) for text in texts]


def gather_texts(
    store: Store, topic: str, rank: int, names: Sequence[object], text: str, timeout_s: float
) -> list[str]:
    """Tell the others ``text`` under ``topic``, a new one each time; what all told, in their order.

    Raises:
        RankLostError: some told nothing within ``timeout_s`` seconds; tells their ``names``.
    """
    size = len(names)
    store.set(f"{topic}/{rank}", text)
    deadline = time.monotonic() + timeout_s
    # Asked again and again, not waited for: a store has one connection, and a wait blocks it.
    missing = list(range(size))
    while missing := [other for other in missing if not store.check([f"{topic}/{other}"])]:
        if time.monotonic() > deadline:
            absent = ", ".join(str(names[other]) for other in missing)
            raise RankLostError(
                f"{absent} of {size} ranks did not come within {timeout_s:g} s, while others "
                f"waited ({topic}); look at its log, and whether its machine reaches that of rank 0"
            )
        time.sleep(_POLL_S)
    return [store.get(f"{topic}/{other}").decode() for other in range(size)]


def end_at_once(error: RankLostError) -> None:
    """Say so, to torch's agent too, and end this process as it stands."""
    get_error_handler().record_exception(error)
    sys.stderr.write(f"error: {error}\n")
    sys.stderr.flush()
    os._exit(EXIT_LOST)


class RankWatch:
    """Watches all ranks from a thread, for the length of a ``with`` block."""

    def __init__(
        self, store: Store, rank: int, cards: Sequence[RankCard], timeout_s: float,
        give_up: Callable[[RankLostError], None] = end_at_once,
    ) -> None:
        """Watch the ranks that met.

        Args:
            store: with a connection of its own.
            rank: this one.
            cards: of all ranks.
            timeout_s: how long a rank may be silent, or keep the others waiting.
            give_up: called once, from the thread, when a rank is lost; the main thread may be
                blocked in a collective operation for good.
        """
        self._store, self._rank, self._cards = store, rank, cards
        self._timeout_s, self._give_up = timeout_s, give_up
        self._num_begun = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rank-watch", daemon=True)
        now_s = time.monotonic()
        self._records = [_Record("0 0", now_s, now_s) for _ in cards]

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End; the others see that this rank has finished, where it has."""
        self._ended.set()
        self._thread.join()
        if error is None:
            with contextlib.suppress(RuntimeError):  # the rank that kept the store has finished too
                self._store.set(_life_key(self._rank), _LEFT)

    def begin_exchange(self) -> None:
        """Note that this rank is about to exchange something with the others."""
        self._num_begun += 1

    def lost_in_exchange(self, error: Exception) -> RankLostError:
        """Who is to blame for ``error`` of a collective operation; takes some seconds to tell."""
        time.sleep(_SILENT_S + _PERIOD_S)
        silent = self._late(lambda record, now_s: now_s - record.alive_s > _SILENT_S)
        if not silent:
            return RankLostError(
                f"exchange {self._num_begun} failed, though every rank is alive: {error}"
            )
        return RankLostError(f"{_names(silent)} died or froze in exchange {self._num_begun}")

    def wait_until_all_left(self) -> None:
        """Wait for the other ranks to finish, ``timeout_s`` seconds at the longest."""
        others = [_life_key(card.rank) for card in self._cards if card.rank != self._rank]
        deadline = time.monotonic() + self._timeout_s
        while time.monotonic() < deadline:
            if all(sign.decode() == _LEFT for sign in self._store.multi_get(others)):
                return
            time.sleep(_POLL_S)

    def _run(self) -> None:
        beats = 0
        while not self._ended.wait(_PERIOD_S):
            beats += 1
            try:
                self._store.set(_life_key(self._rank), f"{beats} {self._num_begun}")
                self._read_signs()
            except RuntimeError as error:  # as all errors of a store are
                self._give_up(RankLostError(
                    f"the store that ranks meet at does not answer any more ({error}); its host, "
                    "the first node, is down or cut off"
                ))
                return
            if late := self._late(self._keeps_waiting):
                self._give_up(RankLostError(
                    f"{_names(late)} kept the others waiting for {self._timeout_s:g} s in "
                    f"exchange {self._furthest()}: dead, frozen or cut off"
                ))
                return

    def _read_signs(self) -> None:
        signs = self._store.multi_get([_life_key(card.rank) for card in self._cards])
        now_s = time.monotonic()
        for record, sign in zip(self._records, signs, strict=True):
            record.note(sign.decode(), now_s)
        furthest = self._furthest()
        for record in self._records:
            record.compare(furthest, now_s)

    def _late(self, is_late: "Callable[[_Record, float], bool]") -> list[RankCard]:
        now_s = time.monotonic()
        pairs = zip(self._cards, self._records, strict=True)
        return [card for card, record in pairs if is_late(record, now_s)]

    def _keeps_waiting(self, record: "_Record", now_s: float) -> bool:
        if record.has_left:
            return False
        since_s = record.alive_s
        if record.behind_s is not None:
            since_s = min(since_s, max(record.behind_s, record.moved_s))
        return now_s - since_s > self._timeout_s

    def _furthest(self) -> int:
        return max(record.num_begun for record in self._records)


@dataclass(slots=True)
class _Record:
    """The signs of one rank."""

    sign: str
    alive_s: float
    """When a new sign was seen last."""
    moved_s: float
    """When it was seen last that it had begun another exchange."""
    num_begun: int = 0
    behind_s: float | None = None
    """When it was seen first that others had begun an exchange that it had not; None: none have."""

    @property
    def has_left(self) -> bool:
        return self.sign == _LEFT

    def note(self, sign: str, now_s: float) -> None:
        if sign == self.sign:
            return
        self.sign, self.alive_s = sign, now_s
        if not self.has_left and (num_begun := int(sign.split()[1])) != self.num_begun:
            self.num_begun, self.moved_s = num_begun, now_s

    def compare(self, furthest: int, now_s: float) -> None:
        if self.num_begun >= furthest:
            self.behind_s = None
        elif self.behind_s is None:
            self.behind_s = now_s


def _life_key(rank: int) -> str:
    return f"life/{rank}"


def _names(cards: Sequence[RankCard]) -> str:
    return ", ".join(map(str, cards))
