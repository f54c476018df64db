"""A wall clock that a test sets: Python imports this first where its folder is on PYTHONPATH.

``time.time`` and ``time.time_ns`` are off by as many seconds as the file JUMPING_CLOCK says, in
every process and at every call; the monotonic clock is left alone, as the system does.
"""

import os
import time
from pathlib import Path

_file = Path(os.environ["JUMPING_CLOCK"])
_time, _time_ns = time.time, time.time_ns


def _offset_s() -> int:
    return int(_file.read_text() or "0")


time.time = lambda: _time() + _offset_s()
time.time_ns = lambda: _time_ns() + _offset_s() * 10**9
