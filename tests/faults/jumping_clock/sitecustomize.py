"""A wall clock that a test sets: Python imports this first where its folder is on PYTHONPATH.

``time.time`` and ``time.time_ns`` are off by as many seconds as the file JUMPING_CLOCK says, in
every process and at every call; the monotonic clock is left alone, as the system does. Each process
leaves an empty file PROCESS.SECONDS in the folder JUMPING_CLOCK_SEEN for every offset that it was
told the time with.
"""

import os
import time
from pathlib import Path

_file = Path(os.environ["JUMPING_CLOCK"])
_seen = Path(os.environ["JUMPING_CLOCK_SEEN"])
_marked: set[str] = set()
_time, _time_ns = time.time, time.time_ns


def _offset_s() -> int:
    offset_s = int(_file.read_text() or "0")
    mark = f"{os.getpid()}.{offset_s}"  # asked anew: a fork has a name of its own
    if mark not in _marked:
        _marked.add(mark)
        (_seen / mark).touch()
    return offset_s


time.time = lambda: _time() + _offset_s()
time.time_ns = lambda: _time_ns() + _offset_s() * 10**9
