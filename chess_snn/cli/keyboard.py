"""Single keys from a terminal, read at once and without Enter."""

import os
import re
import select
import sys
import termios
import tty
from typing import Final, Self

_ARROWS: Final = {"A": "up", "B": "down", "C": "right", "D": "left"}
_ARROW: Final = re.compile(r"\x1b[\[O](?P<arrow>[A-D])")
_SEQUENCE: Final = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]")
"""Any other key that a terminal writes as several characters."""
_END: Final = "\x04"
"""Ctrl-D."""
_ESCAPE: Final = "\x1b"
_ESCAPE_S: Final = 0.05
"""After which the first character of an arrow is a key of its own."""
_MOST_AT_ONCE: Final = 1024


def has_keyboard() -> bool:
    """Whether standard input is a terminal whose keys this process may read.

    The terminal stops a process in the background that reads them.
    """
    if not sys.stdin.isatty():
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # not the terminal that controls this process: it has no background
        return True


class Keyboard:
    """Keys of the terminal behind standard input; Ctrl-C still raises KeyboardInterrupt.

    Inside the block the terminal hands keys over at once and does not echo them; it is as it was
    afterwards, whatever ends the block.
    """

    def __init__(self) -> None:
        self._file = sys.stdin.fileno()
        self._pending = ""

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._file)
        tty.setcbreak(self._file)
        return self

    def __exit__(self, *error: object) -> None:
        termios.tcsetattr(self._file, termios.TCSADRAIN, self._before)

    def read(self, timeout_s: float | None = None) -> str:
        """The next key: a character, or ``left``, ``up``, ``right``, ``down``.

        Empty where none comes within ``timeout_s`` seconds (None: wait for one).

        Raises:
            EOFError: the input has ended, or Ctrl-D was pressed.
        """
        if not self._pending:
            if not select.select([self._file], [], [], timeout_s)[0]:
                return ""
            typed = os.read(self._file, _MOST_AT_ONCE)
            if not typed:
                raise EOFError
            self._pending = typed.decode("utf-8", "replace")
            if self._pending == _ESCAPE and select.select([self._file], [], [], _ESCAPE_S)[0]:
                self._pending += os.read(self._file, _MOST_AT_ONCE).decode("utf-8", "replace")
        found = _ARROW.match(self._pending) or _SEQUENCE.match(self._pending)
        length = 1 if found is None else found.end()
        key, self._pending = self._pending[:length], self._pending[length:]
        if key == _END:
            raise EOFError
        arrow = _ARROW.fullmatch(key)
        return key if arrow is None else _ARROWS[arrow["arrow"]]
