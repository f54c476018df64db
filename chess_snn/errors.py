"""The exceptions of chess-snn.

::

    ChessSnnError
     ├─ UsageError                what was asked for cannot be done; nothing was changed
     │   ├─ ConfigError           an unknown setting, or a value out of range
     │   ├─ PositionError         a malformed or impossible position (FEN)
     │   ├─ IllegalMoveError      a well-formed move that the position does not allow
     │   ├─ EngineError           an engine that is not installed, or cannot play
     │   ├─ RatingError           games from which the ratings asked for do not follow
     │   ├─ ExtraError            something that an extra of the package would install
     │   ├─ ClosedError           a network that was closed
     │   ├─ ClusterError          a scheduler or workers that are not available as configured
     │   └─ CampaignError         a campaign folder that cannot be used as asked
     │       ├─ CampaignLockedError   another process is writing it
     │       └─ RemovedError          something of it that was removed on purpose
     ├─ CorruptDataError          bytes that do not match their manifest, or no manifest
     │   ├─ DamagedFolderError    a committed folder is not what was committed; names it
     │   └─ UnknownVersionError   intact, and of a format that this program does not read
     ├─ BeyondRepairError         something damaged that cannot be made again from what is there
     ├─ TrainingDivergedError     a loss or gradient that is not finite
     ├─ RankLostError             a process that trained with others died, hung or never came
     ├─ WorkersLostError          several workers died that had the same work to do
     └─ MemoryExhaustedError      a worker whose memory, or whose device's, ran out

Every message names the value, the place and the fix, in one line. The command line prints
``error: MESSAGE [CODE]`` and exits with code 2; a traceback there is a bug.
"""

import re
from pathlib import Path
from typing import ClassVar, Final

_CREDENTIALS: Final = re.compile(r"(?<=://)[^/\s]+@")
"""``user:password@`` in an address."""


def without_credentials(text: str) -> str:
    """``text`` with ``***@`` for the user and password of every address in it."""
    return _CREDENTIALS.sub("***@", text)


def one_line(text: str) -> str:
    """``text`` with line feeds, and all else that a terminal would obey, written out."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def printable(text: str) -> str:
    """``text`` as :func:`one_line` writes it, in as many lines as it has."""
    return "\n".join(map(one_line, text.split("\n")))


class ChessSnnError(Exception):
    """Base of every error this package raises on purpose."""

    code: ClassVar[str] = "failed"
    """Names the kind of error for programs; it stays when the wording changes."""

    def __str__(self) -> str:
        """The message; messages are shown and logged, so no address in it has a password."""
        return without_credentials(str(self.args[0]) if self.args else "")


class UsageError(ChessSnnError):
    """A request that cannot be carried out; nothing was changed."""

    code = "usage"

    def __str__(self) -> str:
        """The message in one line, whatever was asked for."""
        return one_line(super().__str__())


class ConfigError(UsageError):
    """An unknown setting, or a value out of its range."""

    code = "config"


class PositionError(UsageError):
    """A position that is malformed or cannot occur."""

    code = "position"


class IllegalMoveError(UsageError):
    """A well-formed move that the position does not allow."""

    code = "illegal-move"


class EngineError(UsageError):
    """An engine that is not installed, speaks no UCI, or fails whenever it is asked."""

    code = "engine"


class RatingError(UsageError):
    """Games from which the ratings asked for do not follow."""

    code = "rating"


class ExtraError(UsageError):
    """Something is needed that an extra of the package installs."""

    code = "extra"


class ClosedError(UsageError):
    """A network was asked after it was closed."""

    code = "closed"


class ClusterError(UsageError):
    """A scheduler or workers that are not available as configured."""

    code = "cluster"


class CampaignError(UsageError):
    """A campaign folder that cannot be used as asked."""

    code = "campaign"


class CampaignLockedError(CampaignError):
    """Another process is writing this campaign."""

    code = "campaign.locked"


class RemovedError(CampaignError):
    """Something of a campaign that was removed on purpose."""

    code = "campaign.removed"


class CorruptDataError(ChessSnnError):
    """Stored bytes do not match their manifest, or the manifest is missing."""

    code = "corrupt"

    def __str__(self) -> str:
        """The message in one line, whatever was stored."""
        return one_line(super().__str__())


class DamagedFolderError(CorruptDataError):
    """A committed folder is not what was committed, or is missing."""

    code = "corrupt.folder"

    def __init__(self, message: str, folder: Path | None = None) -> None:
        """``folder`` is the damaged one; None where the error came as text from another process."""
        super().__init__(message)
        self.folder = folder

    def __reduce__(self) -> tuple[type, tuple[str, Path | None]]:
        """Lets a worker's error name its folder in the process that hears of it."""
        return type(self), (str(self.args[0]), self.folder)


class UnknownVersionError(CorruptDataError):
    """Stored data is intact, but of a version that this program does not read."""

    code = "corrupt.version"


class BeyondRepairError(ChessSnnError):
    """Something is damaged, and what it would be made from again is not there."""

    code = "corrupt.lost"


class TrainingDivergedError(ChessSnnError):
    """A loss or a gradient is not finite."""

    code = "training.diverged"


class RankLostError(ChessSnnError):
    """A process that trained with others died, hung or never came; the same again may do better."""

    code = "training.rank-lost"


class WorkersLostError(ChessSnnError):
    """Several workers died that had the same work to do: of it, or of something else."""

    code = "workers.lost"


class SchedulerLostError(ChessSnnError):
    """The connection to the Dask scheduler broke, and with it went whatever workers had to do."""

    code = "scheduler.lost"


class MemoryExhaustedError(ChessSnnError):
    """A worker's memory, or its device's, ran out; later there may be more."""

    code = "memory"
