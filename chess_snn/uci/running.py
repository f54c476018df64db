"""Work in a thread of its own, while the session goes on reading commands."""

import threading
import time
from collections.abc import Callable, Sequence

from chess_snn.errors import ChessSnnError
from chess_snn.types import LogFn


class Orders:
    """Orders of the GUI to the work: whether it may answer yet, and whether it must now."""

    def __init__(self, *, is_held: bool = False, can_be_hit: bool = False) -> None:
        self.is_held = is_held
        """True if it must not answer yet."""
        self.is_stopped = False
        """True if it must answer now."""
        self.released_s: float | None = None
        """``time.monotonic()`` of ``ponderhit``."""
        self._can_be_hit = can_be_hit
        self._changed = threading.Event()

    def stop(self) -> None:
        """Answer now."""
        self.is_stopped = True
        self._changed.set()

    def ponderhit(self) -> bool:
        """Answer when the work is done; its time begins now. False if nothing is pondered on."""
        is_hit, self._can_be_hit = self._can_be_hit, False
        if is_hit:
            self.released_s = time.monotonic()
            self.is_held = False
            self._changed.set()
        return is_hit

    def wait(self) -> None:
        """Wait while the answer is held."""
        while self.is_held and not self.is_stopped:
            self._changed.wait()


Work = Callable[[Orders], Sequence[str]]
"""Returns the lines that end it."""


class Running:
    """Work on its way. Its methods are for the thread that reads commands."""

    def __init__(self, work: Work, orders: Orders | None, tell: LogFn) -> None:
        """Begin at once; ``tell`` must not raise.

        Without ``orders`` only the GUI's ``stop`` ends the work early.
        """
        self._is_search = orders is not None
        self.orders = orders or Orders()
        self.answered = threading.Event()
        """Set when the last lines were sent, or are being sent now."""
        self._work, self._tell = work, tell
        self._thread = threading.Thread(target=self._run, name="search")
        self._thread.start()

    def end(self) -> None:
        """Stop a search, and wait for the last lines."""
        if self._is_search:
            self.orders.stop()
        self._thread.join()

    def _run(self) -> None:
        try:
            answer = self._work(self.orders)
        except ChessSnnError as error:
            answer = [f"info string {error}"]
        except Exception as error:  # noqa: BLE001 -- no command may end the session
            answer = [f"info string {type(error).__name__}: {error}"]
        self.orders.wait()
        self.answered.set()
        for line in answer:
            self._tell(line)
