"""The versions of a registered model that the page lists."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from chess_snn.errors import ChessSnnError
from chess_snn.types import Json

ASK_AGAIN_S: Final = 30.0
"""So old may the registry's answer be: an alias moves."""


class RegisteredVersions:
    """Entries of the list of networks; ``ask`` returns addresses, all of ``game``.

    The registry is asked in a thread of its own: it may take seconds, and the page does not wait.
    """

    def __init__(self, ask: Callable[[], Sequence[str]], game: str) -> None:
        self._ask, self._game = ask, game
        self._found: list[Json] = []
        self._lock, self._asked_s = threading.Lock(), -ASK_AGAIN_S

    def entries(self) -> list[Json]:
        """What is known by now; an error is an entry without a ``model``."""
        with self._lock:
            if time.monotonic() - self._asked_s >= ASK_AGAIN_S:
                self._asked_s = time.monotonic()
                threading.Thread(target=self._look, daemon=True, name="registry").start()
        return list(self._found)

    def _look(self) -> None:
        try:
            found = [(address, address) for address in self._ask()]
        except ChessSnnError as error:
            found = [("", f"registry: {error}")]
        self._found = [{"model": m, "label": label, "game": self._game} for m, label in found]
