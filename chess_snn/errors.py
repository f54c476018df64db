"""The exceptions of chess-snn.

::

    ChessSnnError
     ├─ UsageError                what was asked for cannot be done; nothing was changed
     │   ├─ ConfigError           an unknown setting, or a value out of range
     │   ├─ PositionError         a malformed or impossible position (FEN)
     │   ├─ IllegalMoveError      a well-formed move that the position does not allow
     │   ├─ EngineError           an engine that is not installed, or cannot play
     │   ├─ RatingError           games from which the ratings asked for do not follow
     │   ├─ ClusterError          a scheduler or workers that cannot be had as asked
     │   └─ CampaignError         a campaign folder that cannot be used as asked
     │       └─ CampaignLockedError   another process is writing it
     ├─ StorageError              an object store that refuses, or does not answer
     ├─ CorruptDataError          bytes that do not match their manifest, or no manifest
     ├─ TrainingDivergedError     a loss or gradient that is not finite
     └─ RankLostError             a process that trained with others died, hung or never came

Every message names the value, the place and the way out, in one line. The command line prints
that line and exits with code 2; a traceback there is a bug.
"""


class ChessSnnError(Exception):
    """Base of every error this package raises on purpose."""


class UsageError(ChessSnnError):
    """What was asked for cannot be done; nothing was changed."""


class ConfigError(UsageError):
    """An unknown setting, or a value out of its range."""


class PositionError(UsageError):
    """A position that is malformed or cannot occur."""


class IllegalMoveError(UsageError):
    """A well-formed move that the position does not allow."""


class EngineError(UsageError):
    """An engine that is not installed, speaks no UCI, or fails whenever it is asked."""


class RatingError(UsageError):
    """Games from which the ratings asked for do not follow."""


class ClusterError(UsageError):
    """A scheduler or workers that cannot be had as asked."""


class CampaignError(UsageError):
    """A campaign folder that cannot be used as asked."""


class CampaignLockedError(CampaignError):
    """Another process is writing this campaign."""


class StorageError(ChessSnnError):
    """An object store that refuses, or does not answer; what is in the campaign folder is whole."""


class CorruptDataError(ChessSnnError):
    """Stored bytes do not match their manifest, or the manifest is missing."""


class TrainingDivergedError(ChessSnnError):
    """A loss or a gradient is not finite."""


class RankLostError(ChessSnnError):
    """A process that trained with others died, hung or never came; the same again may do better."""
