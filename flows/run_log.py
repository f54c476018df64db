"""The log of a flow run: sentences of our own errors, and progress where it is wanted.

Prefect logs an exception with its traceback where a flow or task raised it, and once more on the
way out of the process. Our errors name the value, the place and the fix in one line; the traceback
of a mistake in a form says nothing more to the user who made it.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from prefect.logging.handlers import PrefectConsoleHandler
from prefect.runtime import deployment

from chess_snn.errors import ChessSnnError

_LOGGERS: Final = ("prefect.flow_runs", "prefect.task_runs", "prefect.engine")
_LEVELS: Final = ("PREFECT_LOGGING_LEVEL", "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL")
"""Variables by which a user asks for lines on the terminal."""


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


@contextmanager
def quiet_terminal() -> Iterator[None]:
    """Print nothing below a warning in the block, if Python code called the flow.

    The log of a worker keeps all lines, and so does a terminal whose user set a level of Prefect's.
    """
    handlers = [h for h in logging.getLogger().handlers if isinstance(h, PrefectConsoleHandler)]
    if deployment.id is not None or any(name in os.environ for name in _LEVELS):
        handlers = []
    before = [handler.level for handler in handlers]
    for handler in handlers:
        handler.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for handler, level in zip(handlers, before, strict=True):
            handler.setLevel(level)
