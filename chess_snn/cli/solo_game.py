"""A game of one player in the terminal: what is typed, and what each key does."""

import re
from collections.abc import Callable
from typing import Final

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from chess_snn.cli.drawing import draw_position
from chess_snn.cli.keyboard import Keyboard
from chess_snn.errors import UsageError
from chess_snn.evaluation import Player
from chess_snn.evaluation.solo import chance_words
from chess_snn.games.base import ONGOING, Game, GameBatch
from chess_snn.rng import derive_seed
from chess_snn.types import UInt64Array

HELP: Final = """\
  a move          left, up, right, down; also h k l j, or a w d s
  hint            what {adviser} would play
  auto [N]        let {adviser} play N moves, or to the end
  takeback        take the last move back
  board           show the board again
  help            this
  quit            leave; so do Ctrl-C and the end of input"""
KEYS_HELP: Final = "arrows, hjkl, wasd: move   t: hint   p: autoplay   u: take back   q: quit"

_MOVE_KEYS: Final = {
    "h": "left", "j": "down", "k": "up", "l": "right",
    "a": "left", "s": "down", "w": "up", "d": "right",
}
_OTHER_KEYS: Final = {
    "t": "hint", "?": "hint", "p": "auto", " ": "auto", "u": "takeback", "q": "quit",
}
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,9}", re.ASCII)
_PAUSE_S: Final = 0.05
"""Between moves of the autoplay, so that people can follow."""
_TALL_LINES: Final = 22
"""Of a terminal in which a tall board and the lines below it fit."""


class SoloGame:
    """A game up to now; ``show`` gets what is to be seen.

    The same seed and moves make the same game, and the one that evaluation plays on that seed:
    events are drawn by their ply, so that taking a move back and playing it again changes nothing.
    """

    def __init__(
        self, game: Game, start: UInt64Array | None, adviser: Player,
        show: Callable[[RenderableType], None], *, seed: int, ascii_only: bool,
    ) -> None:
        """Begin at ``start`` uint64[W], where no event is to come; None: where ``seed`` says."""
        self._game, self._adviser, self._show, self._ascii_only = game, adviser, show, ascii_only
        self._seed = np.array([seed], np.uint64)
        self._adviser_key = np.array([derive_seed(seed, "adviser")], np.uint64)
        states = game.initial_states(self._seed) if start is None else start[None]
        batch = game.allocate(1)
        game.reset(batch, np.zeros(1, np.int64), states)
        self._past: list[tuple[GameBatch, float]] = []
        self._batch, self._rewards = batch, 0.0

    @property
    def is_over(self) -> bool:
        """Whether no move is left."""
        return bool(self._batch.termination[0] != ONGOING)

    @property
    def points(self) -> float:
        """The score since the beginning."""
        return self._game.spec.score_unit * self._rewards

    @property
    def prompt(self) -> str:
        """What is asked for now."""
        return "takeback or quit> " if self.is_over else f"{len(self._past) + 1}. your move> "

    @property
    def status(self) -> str:
        """Score, milestone, moves, and whether the game is over."""
        spec, facts = self._game.spec, [f"score {self.points:,.0f}"]
        if spec.milestone_name:
            milestone = int(self._game.milestones(self._batch.state)[0])
            facts.append(f"{spec.milestone_name} {milestone:,}")
        facts.append(f"{len(self._past):,} moves")
        if self.is_over:
            ending = spec.terminations[self._batch.termination[0]].replace("_", " ")
            facts.append(f"the game is over: {ending}")
        return "   ".join(facts)

    def picture(self, *, tall: bool = False) -> RenderableType:
        """The board and the status below it."""
        board = draw_position(
            self._game, self._batch.state[0], tall=tall, ascii_only=self._ascii_only
        )
        return Group(board, Text(self.status))

    def obey(self, text: str) -> bool:
        """Do what a person typed; False when it was ``quit``.

        Raises:
            UsageError: it cannot be done, and why; nothing has changed.
        """
        text = text.strip().lower()
        word, _, argument = text.partition(" ")
        if word == "quit":
            return False
        if word == "hint":
            self._show(self.hint())
        elif word == "auto":
            self._play_on(argument.strip())
        elif word == "help":
            self._show(HELP.format(adviser=self._adviser.name))
        elif word:
            if word == "takeback":
                self.take_back()
            elif word != "board":
                self.play(text)
            self._show(self.picture())
        return True

    def play(self, text: str) -> None:
        """Play the move that ``text`` names, or the key of it.

        Raises:
            UsageError: it is none.
        """
        moves = {self._move_text(int(action)): int(action) for action in self._legal()}
        move = _MOVE_KEYS.get(text, text)
        if not moves:
            raise UsageError(f"the game is over, so {text!r} cannot be played; try takeback")
        if move not in moves:
            raise UsageError(f"{move!r} is no move here; there are {', '.join(moves)}, and help")
        self._step(moves[move])

    def hint(self) -> str:
        """What the adviser would play."""
        return f"{self._adviser.name} would play {self._move_text(self._advised())}"

    def play_advised(self) -> str:
        """Play the adviser's move; returns it."""
        action = self._advised()
        move = self._move_text(action)
        self._step(action)
        return move

    def take_back(self) -> None:
        """Take the last move back, and the event after it.

        Raises:
            UsageError: there is none.
        """
        if not self._past:
            raise UsageError("you have not moved yet; there is nothing to take back")
        self._batch, self._rewards = self._past.pop()

    def _play_on(self, argument: str) -> None:
        if argument and not _NUMBER.fullmatch(argument):
            raise UsageError(f"auto plays a number of moves, got {argument!r}; try auto 10")
        moves = [self.play_advised()]
        while not self.is_over and (not argument or len(moves) < int(argument)):
            moves.append(self.play_advised())
        self._show(f"{self._adviser.name} plays {' '.join(moves)}")
        self._show(self.picture())

    def _legal(self) -> list[int]:
        return list(map(int, self._batch.legal_actions[0, : self._batch.num_legal[0]]))

    def _move_text(self, action: int) -> str:
        return self._game.format_action(self._batch.state[0], action)

    def _advised(self) -> int:
        if self.is_over:
            raise UsageError("the game is over; there is nothing to play")
        plies = np.array([len(self._past)], np.int32)
        return int(self._adviser.choose(self._batch, self._adviser_key, plies)[0])

    def _step(self, action: int) -> None:
        after = self._batch.take(np.zeros(1, np.int64))
        chance = chance_words(self._seed, np.array([len(self._past)], np.int32))
        self._game.step(after, np.array([action], np.int16), chance)
        self._past.append((self._batch, self._rewards))
        self._batch, self._rewards = after, self._rewards + float(after.reward[0])


def play_by_keys(table: SoloGame, console: Console) -> None:
    """Play ``table`` in the terminal, a key a move, until ``q``.

    Raises:
        EOFError: the terminal is gone, or Ctrl-D was pressed.
    """
    note = ""
    with Keyboard() as keyboard, Live(console=console, auto_refresh=False) as live:

        def show(text: str) -> None:
            tall = console.height >= _TALL_LINES
            lines = Text(f"{text}\n{KEYS_HELP}")
            live.update(Group(table.picture(tall=tall), lines), refresh=True)

        while True:
            show(note)
            key = keyboard.read()
            command = _OTHER_KEYS.get(key, key)
            note = ""
            try:
                if command == "quit":
                    return
                if command == "hint":
                    note = table.hint()
                elif command == "takeback":
                    table.take_back()
                elif command == "auto":
                    table.play_advised()
                    while not table.is_over and not keyboard.read(_PAUSE_S):
                        show("any key stops")
                        table.play_advised()
                else:
                    table.play(key)
            except UsageError as error:
                note = str(error)
