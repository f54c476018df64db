"""The Universal Chess Interface: a network as an engine for chess programs.

::

    session = Session(get_game("chess"), load, tell=print, options=Options(model="runs/a"))
    session.run(sys.stdin)

A session reads commands in the thread that runs it; each ``go`` searches in a thread of its own.
"""

from typing import TYPE_CHECKING

from chess_snn.later import exports

if TYPE_CHECKING:
    from chess_snn.uci.options import Options
    from chess_snn.uci.session import Session
else:
    __getattr__ = exports(__name__)
