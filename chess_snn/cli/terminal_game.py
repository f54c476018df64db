"""A game between a person at a terminal and a player: what each input does."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import chess
import chess.pgn
import numpy as np

from chess_snn.cli.drawing import draw_board
from chess_snn.cli.options import refuse_in_campaign
from chess_snn.data import write_text
from chess_snn.errors import EngineError, IllegalMoveError, UsageError
from chess_snn.evaluation import Player
from chess_snn.games.base import Game
from chess_snn.games.chess import move_of_action
from chess_snn.uci.position import Position

HELP: Final = """\
  a move          as people write it (Nf3, exd5, O-O, e8=Q) or as engines do (g1f3, e7e8q)
  hint            what your opponent would play in your place
  takeback        take your last move back, and the answer to it
  resign          give up
  save FILE.pgn   write the game up to now
  board           show the board again
  help            this
  quit            leave; so do Ctrl-C and the end of input
Draws by repetition, fifty moves and insufficient material are taken at once."""

_FIFTY_MOVES = 100


class TerminalGame:
    """A game up to now. It speaks through ``show``, a text at a time."""

    def __init__(
        self, game: Game, fen: str | None, human: chess.Color, opponent: Player,
        show: Callable[[str], None], *, ascii_only: bool, seed: int,
    ) -> None:
        """``seed`` decides what an opponent that draws its moves will draw.

        Raises:
            PositionError: the FEN is malformed or the position cannot occur.
        """
        self.board = Position(game, fen).board
        self._game, self._fen, self._human, self._opponent = game, fen, human, opponent
        self._show, self._ascii_only = show, ascii_only
        self._key = np.array([seed], np.uint64)
        self._resigned = False

    @property
    def is_over(self) -> bool:
        """Whether nobody moves any more."""
        return self._resigned or _ending(self.board) is not None

    @property
    def result(self) -> str:
        """As in PGN; ``*`` while the game goes on."""
        if self._resigned:
            return "0-1" if self._human == chess.WHITE else "1-0"
        if not self.is_over:
            return "*"
        if self.board.is_checkmate():
            return "0-1" if self.board.turn == chess.WHITE else "1-0"
        return "1/2-1/2"

    @property
    def prompt(self) -> str:
        """What is asked for now."""
        if self.is_over:
            return "save FILE.pgn, takeback or quit> "
        return f"{self.board.fullmove_number}{'.' if self.board.turn else '...'} your move> "

    def show_board(self) -> None:
        """The board, and how the game ended if it did."""
        self._show(draw_board(self.board, self._human, self._ascii_only))
        if self._resigned:
            self._show(f"You resigned. {self.result}")
        elif (ending := _ending(self.board)) is not None:
            self._show(f"The game is over: {ending}. {self.result}")
        elif self.board.is_check():
            self._show("Check.")

    def answer(self) -> None:
        """Let the opponent move where it is its turn, and show the board."""
        if not self.is_over and self.board.turn != self._human:
            move = self._choice()
            self._show(f"{self._opponent.name} plays {self.board.san(move)}")
            self.board.push(move)
        self.show_board()

    def obey(self, text: str) -> bool:
        """Do what a person typed; False when it was ``quit``.

        Raises:
            UsageError: it cannot be done, and why; nothing has changed.
        """
        word, _, argument = text.strip().partition(" ")
        if word == "quit":
            return False
        if word in _COMMANDS:
            _COMMANDS[word](self, argument.strip())
        elif text.strip():
            self._move(text.strip())
        return True

    def to_pgn(self) -> str:
        """The game up to now, with its players."""
        names = {self._human: "human", not self._human: self._opponent.name}
        record = chess.pgn.Game.from_board(self.board)
        record.headers.update({
            "Event": "chess-snn play", "Site": "?", "Round": "-",
            "Date": datetime.now(UTC).astimezone().strftime("%Y.%m.%d"),
            "White": names[chess.WHITE], "Black": names[chess.BLACK], "Result": self.result,
        })
        if self._resigned:
            record.headers["Termination"] = "resignation"
        return f"{record}\n"

    def _move(self, text: str) -> None:
        if self.is_over:
            raise UsageError(f"the game is over, so {text!r} cannot be played; try takeback")
        self.board.push(parse_move(self.board, text))
        try:
            self.answer()
        except UsageError:
            self.board.pop()
            raise

    def _hint(self, _argument: str) -> None:
        if self.is_over:
            raise UsageError("the game is over; there is nothing to hint at")
        self._show(f"{self._opponent.name} would play {self.board.san(self._choice())}")

    def _take_back(self, _argument: str) -> None:
        board = self.board.copy()
        self._resigned, was_resigned = False, self._resigned
        while board.move_stack:
            board.pop()
            if board.turn == self._human:
                self.board = board
                break
        else:
            if not was_resigned:
                raise UsageError("you have not moved yet; there is nothing to take back")
        self.show_board()

    def _resign(self, _argument: str) -> None:
        if self.is_over:
            raise UsageError("the game is over already")
        self._resigned = True
        self.show_board()

    def _save(self, argument: str) -> None:
        if not argument.endswith(".pgn"):
            raise UsageError("name a file that ends in .pgn: save game.pgn")
        try:
            path = Path(argument).expanduser()
            refuse_in_campaign(path, "file")
            write_text(path, self.to_pgn())
        except (OSError, ValueError, RuntimeError) as error:
            raise UsageError(f"cannot write {argument}: {error}; choose another file") from error
        self._show(f"written to {path}")

    def _choice(self) -> chess.Move:
        """What the opponent plays for the side to move.

        Raises:
            EngineError: the opponent is an engine that fails.
        """
        moves = tuple(move.uci() for move in self.board.move_stack)
        position = Position.after(self._game, self._fen, moves)
        plies = np.array([len(moves)], np.int32)
        action = self._opponent.choose(position.root, self._key, plies)[0]
        if action < 0:
            raise EngineError(
                f"{self._opponent.name} has no legal move to offer; try again, or quit"
            )
        return move_of_action(self.board, int(action))


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
    raise IllegalMoveError(f"{text!r} is no legal move and no command; help lists what there is")


def _ending(board: chess.Board) -> str | None:
    """Why the game is over, by the rules that matches are played by; None where it goes on."""
    if board.is_checkmate():
        return "checkmate"
    if board.is_insufficient_material():
        return "insufficient material"
    if not any(board.legal_moves):
        return "stalemate"
    if board.halfmove_clock >= _FIFTY_MOVES:
        return "fifty moves"
    if board.is_repetition(3):
        return "threefold repetition"
    return None


_COMMANDS: Final[dict[str, Callable[[TerminalGame, str], None]]] = {
    "hint": TerminalGame._hint,
    "takeback": TerminalGame._take_back,
    "resign": TerminalGame._resign,
    "save": TerminalGame._save,
    "board": lambda game, _: game.show_board(),
    "help": lambda game, _: game._show(HELP),
}
