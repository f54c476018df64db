"""What the log of a flow run says of our own errors: their sentence, without a traceback.

Prefect logs an exception with its traceback where a flow or task raised it, and once more on the
way out of the process. Our errors name the value, the place and the fix in one line; the traceback
of a mistake in a form says nothing more to the user who made it.
"""

import logging
from typing import Final

from chess_snn.errors import ChessSnnError

_LOGGERS: Final = ("prefect.flow_runs", "prefect.task_runs", "prefect.engine")


def log_sentences() -> None:
    """Log each error of ours as its sentence from now on, in this process."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_to_sentence)


def _to_sentence(record: logging.LogRecord) -> bool:
    """Leave out the traceback of an error of ours, and a record that has nothing else to say."""
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, ChessSnnError):
        return True
    record.exc_info = record.exc_text = None
    sentence = str(error)
    record.msg, record.args = record.getMessage().replace(repr(error), sentence), ()
    return sentence in record.msg
