"""Which device is at fault when work fails, and when it is to be left out.

A device that fails at once takes shard after shard from those that work. So a call that fails on
one device is tried on another; where it does well there, the first device gets a strike, and where
it fails there too, the fault is the call's own. A worker that dies over its work is a strike as
well. A success takes all strikes away.
"""

import threading
from dataclasses import dataclass, field
from typing import Final

STRIKES: Final = 3
"""In a row, after which a device is retired."""


@dataclass(slots=True)
class DeviceHealth:
    """Counts for the devices of one campaign; may be told by several threads."""

    retired: set[str] = field(default_factory=set)
    _strikes: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def succeeded(self, device: str) -> None:
        """Work was done on ``device``."""
        with self._lock:
            self._strikes.pop(device, None)

    def failed(self, device: str, others: set[str]) -> bool:
        """A failure that is the device's own; whether it is to be retired now.

        Args:
            device: that failed.
            others: devices that are there, with or without it; the last one is never retired.
        """
        with self._lock:
            if device in self.retired:
                return False
            self._strikes[device] = self._strikes.get(device, 0) + 1
            left = others - self.retired - {device}
            if self._strikes[device] < STRIKES or not left:
                return False
            self.retired.add(device)
            return True
