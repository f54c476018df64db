"""What the GUI wants of a running search; written by one thread, read by the other."""

import threading
import time


class Orders:
    """May the search answer, and must it?"""

    def __init__(self, held: bool) -> None:
        self.is_held = held
        """Whether it must not answer yet."""
        self.is_stopped = False
        """Whether it must answer now."""
        self.released_s: float | None = None
        """``time.monotonic()`` of ``ponderhit``."""
        self._changed = threading.Event()

    def stop(self) -> None:
        """Answer now."""
        self.is_stopped = True
        self._changed.set()

    def release(self) -> None:
        """Answer when the search is done; its time begins now."""
        self.released_s = time.monotonic()
        self.is_held = False
        self._changed.set()

    def wait(self) -> None:
        """Wait while the search is held."""
        while self.is_held and not self.is_stopped:
            self._changed.wait()
