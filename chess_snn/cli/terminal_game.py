"""A game of a person at a terminal, alone or against a player: what each line of input does."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import chess
import chess.pgn
import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from chess_snn.cli.drawing import draw_board, draw_position
from chess_snn.cli.options import refuse_in_campaign
from chess_snn.data import write_text
from chess_snn.errors import EngineError, IllegalMoveError, UsageError
from chess_snn.evaluation.players import Player
from chess_snn.evaluation.solo import chance_words
from chess_snn.games.base import ONGOING, Game, GameBatch
from chess_snn.games.chess import action_of_move, move_of_action, to_board
from chess_snn.rng import derive_seed
from chess_snn.types import UInt64Array
from chess_snn.wording import counted

_HELP: Final = """\
  hint            what {player} would play in your place
  auto [N]        let {player} play N moves, or to the end
  takeback        take your last move back, and the answer to it
  board           show the board again
  help            this
  quit            leave; so do Ctrl-C and the end of input"""
_MOVE_KEYS: Final = {
    "h": "left", "j": "down", "k": "up", "l": "right",
    "a": "left", "s": "down", "w": "up", "d": "right",
}
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,9}", re.ASCII)

Show = Callable[[RenderableType], None]
"""Gets what a person is to see."""


class TerminalGame:
    """A game up to now.

    The same seed and moves make the same game, and the one that evaluation plays on that seed:
    events are drawn by their ply, so that taking a move back and playing it again changes nothing.
    """

    _own_help = "  a move          left, up, right, down; also h k l j, or a w d s\n"
    """Help on the game's own moves and commands."""

    def __init__(
        self, game: Game, start: UInt64Array, player: Player, show: Show, *, seed: int,
        ascii_only: bool, human: int = 0,
    ) -> None:
        """Begin at ``start`` uint64[W]; ``player`` gives hints and is the opponent, if any.

        ``human`` is the person's side: 0 moves first.
        """
        self._game, self._player, self._show, self._ascii_only = game, player, show, ascii_only
        self._human = human
        self._seed = np.array([seed], np.uint64)
        key = derive_seed(seed, "adviser") if game.spec.num_players == 1 else seed
        self._player_key = np.array([key], np.uint64)
        batch = game.allocate(1)
        game.reset(batch, np.zeros(1, np.int64), start[None])
        self._positions: list[GameBatch] = [batch]
        """The start, and what followed each of the actions."""
        self._actions: list[int] = []

    @property
    def is_over(self) -> bool:
        """Whether no move is left."""
        return bool(self._now.termination[0] != ONGOING)

    @property
    def prompt(self) -> str:
        """The question that is asked now."""
        number = len(self._actions) // self._game.spec.num_players + 1
        return "takeback, help or quit> " if self.is_over else f"{number}. your move> "

    @property
    def status(self) -> str:
        """Score, milestone, moves, and whether the game is over."""
        spec = self._game.spec
        points = spec.score_unit * sum(float(batch.reward[0]) for batch in self._positions[1:])
        facts = [f"score {points:,.0f}"]
        if spec.milestone_name:
            milestone = int(self._game.milestones(self._now.state)[0])
            facts.append(f"{spec.milestone_name} {milestone:,}")
        facts.append(counted(len(self._actions), "move"))
        if self.is_over:
            facts.append(f"the game is over: {self._ending}")
        return "   ".join(facts)

    def picture(self, *, tall: bool = False) -> RenderableType:
        """The board and the status below it."""
        board = draw_position(
            self._game, self._now.state[0], tall=tall, ascii_only=self._ascii_only
        )
        return Group(board, Text(self.status))

    def answer(self) -> None:
        """Let the opponent move where it is its turn, and show the board."""
        if not (self.is_over or self._is_persons_turn(-1)):
            self._show(f"{self._player.name} plays {self._play_advised()}")
        self._show(self.picture())

    def obey(self, text: str) -> bool:
        """Do what a person typed; False when it was ``quit``.

        Raises:
            UsageError: it cannot be done, and why; nothing has changed.
        """
        word, _, argument = text.strip().partition(" ")
        match word:
            case "quit":
                return False
            case "hint":
                self._show(f"{self._player.name} would play {self._name_of(self._advised())}")
            case "auto":
                self._play_on(argument.strip())
            case "takeback":
                self._take_back()
                self._show(self.picture())
            case "help":
                self._show(self._own_help + _HELP.format(player=self._player.name))
            case "board":
                self._show(self.picture())
            case _ if word:
                self._move(text.strip())
        return True

    @property
    def _now(self) -> GameBatch:
        return self._positions[-1]

    @property
    def _ending(self) -> str:
        return self._game.spec.terminations[int(self._now.termination[0])].replace("_", " ")

    def _is_persons_turn(self, ply: int) -> bool:
        return int(self._game.side_to_move(self._positions[ply].state)[0]) == self._human

    def _move(self, text: str) -> None:
        if self.is_over:
            raise UsageError(f"the game is over, so {text!r} cannot be played; try takeback")
        self._step(self._parse(text))
        try:
            self.answer()
        except EngineError:
            self._undo()
            raise

    def _parse(self, text: str) -> int:
        """The legal action that ``text`` names."""
        legal = self._now.legal_actions[0, : self._now.num_legal[0]]
        moves = {self._name_of(int(action)): int(action) for action in legal}
        move = _MOVE_KEYS.get(text.lower(), text.lower())
        if move not in moves:
            raise UsageError(f"{move!r} is not a move here; there are {', '.join(moves)}, and help")
        return moves[move]

    def _name_of(self, action: int) -> str:
        """A legal action of this position, as people write it."""
        return self._game.format_action(self._now.state[0], action)

    def _play_on(self, argument: str) -> None:
        if argument and not _NUMBER.fullmatch(argument):
            raise UsageError(f"auto plays a number of moves, got {argument!r}; try auto 10")
        moves = [self._play_advised()]
        while not self.is_over and (not argument or len(moves) < int(argument)):
            moves.append(self._play_advised())
        self._show(f"{self._player.name} plays {' '.join(moves)}")
        self.answer()

    def _play_advised(self) -> str:
        """Play the player's move; returns it."""
        action = self._advised()
        move = self._name_of(action)
        self._step(action)
        return move

    def _advised(self) -> int:
        """The player's choice for the side to move.

        Raises:
            EngineError: the player is an engine that fails.
        """
        if self.is_over:
            raise UsageError("the game is over; there is nothing to play")
        plies = np.array([len(self._actions)], np.int32)
        action = int(self._player.choose(self._now, self._player_key, plies)[0])
        if action < 0:
            raise EngineError(f"{self._player.name} has no legal move to offer; try again, or quit")
        return action

    def _take_back(self) -> None:
        """Take the person's last move back, with the event or the answer after it."""
        starts = range(len(self._actions) - 1, -1, -1)
        last = next((ply for ply in starts if self._is_persons_turn(ply)), None)
        if last is None:
            raise UsageError("you have not moved yet; there is nothing to take back")
        while len(self._actions) > last:
            self._undo()

    def _step(self, action: int) -> None:
        after = self._now.take(np.zeros(1, np.int64))
        chance = chance_words(self._seed, np.array([len(self._actions)], np.int32))
        self._game.step(after, np.array([action], np.int16), chance)
        self._positions.append(after)
        self._actions.append(action)

    def _undo(self) -> None:
        self._positions.pop()
        self._actions.pop()


class ChessGame(TerminalGame):
    """Chess: moves and boards as people write them, resigning, and PGN."""

    _own_help = """\
  a move          as people write it (Nf3, exd5, O-O, e8=Q) or as engines do (g1f3, e7e8q);
                  repetition, fifty moves and insufficient material draw at once
  resign          give up
  save FILE.pgn   write the game up to now
"""
    _resigned = False

    @property
    def board(self) -> chess.Board:
        """The position, with the moves that led to it."""
        board = to_board(self._positions[0].state[0])
        for action in self._actions:
            board.push(move_of_action(board, action))
        return board

    @property
    def is_over(self) -> bool:
        """Whether the game is over."""
        return self._resigned or super().is_over

    @property
    def result(self) -> str:
        """The result as in PGN; ``*`` while the game goes on."""
        if self._resigned:
            return "1-0" if self._human else "0-1"
        # Every draw that may be claimed has been taken.
        return self.board.result(claim_draw=True) if self.is_over else "*"

    @property
    def status(self) -> str:
        """How the game ended if it did, or whether there is a check."""
        if self._resigned:
            return f"You resigned. {self.result}"
        if self.is_over:
            return f"The game is over: {self._ending}. {self.result}"
        return "Check." if self.board.is_check() else ""

    def picture(self, *, tall: bool = False) -> RenderableType:
        """The board, seen by the person's side, and the status below it."""
        del tall
        board = draw_board(self.board, self._human == 0, self._ascii_only)
        return Text("\n".join(filter(None, [board, self.status])))

    def _parse(self, text: str) -> int:
        return action_of_move(parse_move(self.board, text), self.board.turn)

    def _name_of(self, action: int) -> str:
        board = self.board
        return board.san(move_of_action(board, action))

    def obey(self, text: str) -> bool:
        """Obey as in every game; also ``resign`` and ``save FILE.pgn``."""
        word, _, argument = text.strip().partition(" ")
        if word == "resign":
            if self.is_over:
                raise UsageError("the game is over already")
            self._resigned = True
            self._show(self.picture())
        elif word == "save":
            self._save(argument.strip())
        else:
            return super().obey(text)
        return True

    def _take_back(self) -> None:
        """Take back the resignation, and the person's last move if there is one."""
        was_resigned, self._resigned = self._resigned, False
        try:
            super()._take_back()
        except UsageError:
            if not was_resigned:
                raise

    def _to_pgn(self) -> str:
        names = ["human", self._player.name]
        record = chess.pgn.Game.from_board(self.board)
        record.headers.update({
            "Event": "chess-snn play", "Site": "?", "Round": "-",
            "Date": datetime.now(UTC).astimezone().strftime("%Y.%m.%d"),
            "White": names[self._human], "Black": names[1 - self._human], "Result": self.result,
        })
        if self._resigned:
            record.headers["Termination"] = "resignation"
        return f"{record}\n"

    def _save(self, argument: str) -> None:
        if not argument.endswith(".pgn"):
            raise UsageError("name a file that ends in .pgn: save game.pgn")
        try:
            path = Path(argument).expanduser()
            refuse_in_campaign(path, "file")
            write_text(path, self._to_pgn())
        except (OSError, ValueError, RuntimeError) as error:
            raise UsageError(f"cannot write {argument}: {error}; choose another file") from error
        self._show(f"written to {path}")


def parse_move(board: chess.Board, text: str) -> chess.Move:
    """The legal move that ``text`` names in algebraic or UCI notation.

    Raises:
        IllegalMoveError: there is none, or there are several.
    """
    for parse in (board.parse_san, board.parse_uci):
        try:
            move = parse(text)
        except chess.AmbiguousMoveError as error:
            raise IllegalMoveError(
                f"{text!r} may mean several moves; name the square it comes from, as in Nbd2"
            ) from error
        except ValueError:
            continue
        if move:  # the null move is a move to python-chess
            return move
    raise IllegalMoveError(f"{text!r} is not a legal move or a command; help lists what there is")
