"""A command on a terminal of its own."""

import codecs
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time


class Terminal:
    """``chess-snn`` with arguments, run in a folder, and what it has written so far."""

    def __init__(self, folder, *arguments):
        self.main, self.other = pty.openpty()
        termios.tcsetwinsize(self.other, (50, 100))
        self.modes = termios.tcgetattr(self.other)
        self.screen = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "chess_snn", *map(str, arguments)],
            stdin=self.other, stdout=self.other, stderr=self.other, cwd=folder,
            env=os.environ | {"TERM": "xterm-256color"}, start_new_session=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self.main)
        os.close(self.other)

    def wait_for(self, pattern):
        """Read until ``pattern`` has been written since the last wait."""
        end = time.monotonic() + 100
        while (found := re.search(pattern, self.screen)) is None:
            assert time.monotonic() < end, self.screen
            if select.select([self.main], [], [], 0.1)[0]:
                self.screen += self._decoder.decode(os.read(self.main, 1 << 16))
        self.screen = self.screen[found.end():]
        return found

    def press(self, keys):
        os.write(self.main, keys.encode())

    def interrupt(self):
        self._process.send_signal(signal.SIGINT)

    def end(self):
        """The exit code, once the terminal has been left as it was found."""
        while self._process.poll() is None:
            if select.select([self.main], [], [], 0.1)[0]:
                self.screen += self._decoder.decode(os.read(self.main, 1 << 16))
        assert termios.tcgetattr(self.other) == self.modes
        return self._process.returncode
