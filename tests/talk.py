"""A GUI's end of a conversation in this process."""

import threading

from chess_snn.games import get_game
from chess_snn.uci import Session

PATIENCE_S = 120
"""Far beyond what any answer takes, on a busy machine too."""


class Gui:
    def __init__(self, load_model, options):
        self.lines = []
        self._heard = threading.Condition()
        self.session = Session(get_game("chess"), load_model, self._hear, options)

    def _hear(self, line):
        assert "\n" not in line
        with self._heard:
            self.lines.append(line)
            self._heard.notify_all()

    def send(self, *lines):
        for line in lines:
            ready = self.lines.count("readyok")
            assert self.session.handle(line)
            if line == "isready":
                self.wait_for("readyok", ready + 1)

    def wait_for(self, start, count=1):
        """The lines that begin with ``start``, once there are ``count``."""
        def found():
            return [line for line in self.lines if line.startswith(start)]

        with self._heard:
            assert self._heard.wait_for(lambda: len(found()) >= count, PATIENCE_S), self.lines
            return found()

    def ask(self, *lines):
        """Everything heard from the first of ``lines`` to the next ``bestmove``; they hold a go."""
        del self.lines[:]
        self.send(*lines)
        self.wait_for("bestmove")
        return list(self.lines)

    def best(self, *lines):
        """The move of that ``bestmove``."""
        return self.ask(*lines)[-1].split()[1]

    def strings(self):
        return [line.removeprefix("info string ") for line in self.lines if "info string" in line]
