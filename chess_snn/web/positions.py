"""Games from a browser: their moves checked, and their positions as JSON.

Draws by repetition, fifty moves and insufficient material end a game at once, as in
``chess-snn play``; earlier ones in the list of moves are passed over, since people may play on.
"""

import io
from typing import Final

import chess
import chess.pgn
import numpy as np

from chess_snn.errors import IllegalMoveError, PositionError, UsageError
from chess_snn.evaluation.solo import chance_words
from chess_snn.games import get_game
from chess_snn.games.base import ONGOING, Game, GameBatch
from chess_snn.games.chess import from_board
from chess_snn.games.chess.notation import parse_fen
from chess_snn.types import Int16Array, Json
from chess_snn.uci.position import FIFTY_MOVES_CLOCK, Position
from chess_snn.web.protocol import MAX_NAME, MAX_PLIES, ChessGame, ExportRequest, TilesGame

CHESS: Final[Game] = get_game("chess")
TILES: Final[Game] = get_game("2048")
_RESULTS: Final = ("1-0", "0-1", "1/2-1/2")


def chess_position(game: ChessGame) -> Position:
    """Return the position that the moves of ``game`` lead to.

    Raises:
        PositionError: the FEN is malformed or the position cannot occur.
        IllegalMoveError: names the first move that is malformed or illegal.
    """
    return Position.after(CHESS, game.start, game.moves)


def ending(board: chess.Board) -> tuple[str, str] | None:
    """Why the game is over and its result as in PGN; None while it goes on."""
    if board.is_checkmate():
        return "checkmate", "0-1" if board.turn == chess.WHITE else "1-0"
    reasons = (
        ("stalemate", board.is_stalemate()),
        ("insufficient material", board.is_insufficient_material()),
        ("threefold repetition", board.is_repetition(3)),
        ("fifty moves", board.halfmove_clock >= FIFTY_MOVES_CLOCK),
    )
    return next(((reason, "1/2-1/2") for reason, holds in reasons if holds), None)


def describe_chess(game: ChessGame) -> Json:
    """The position after the moves, what is legal there, and all moves as people write them.

    Raises:
        UsageError: as :func:`chess_position`.
    """
    position = chess_position(game)
    board, over = position.board, ending(position.board)
    replay, sans = board.root(), []
    for move in board.move_stack:
        sans.append(replay.san(move))
        replay.push(move)
    return {
        "kind": "chess",
        "fen": board.fen(),
        "turn": "white" if board.turn == chess.WHITE else "black",
        "san": sans,
        "last": board.move_stack[-1].uci() if board.move_stack else None,
        "check": _checked_king(board),
        "legal": [] if over else [
            {"uci": move.uci(), "san": board.san(move)} for move in board.legal_moves
        ],
        "over": None if over is None else {"reason": over[0], "result": over[1]},
    }


def _checked_king(board: chess.Board) -> str | None:
    king = board.king(board.turn)
    return chess.square_name(king) if king is not None and board.is_check() else None


def tiles_row(game: TilesGame) -> tuple[GameBatch, float]:
    """The one row after the moves of ``game``, and the points that they won.

    Raises:
        PositionError: the board is malformed, or a tile is still to come.
        IllegalMoveError: a move changes nothing.
    """
    seed = np.array([game.seed], np.uint64)
    row = TILES.allocate(1)
    if game.start is None:
        state = TILES.initial_states(seed)[0]
    else:
        state = TILES.parse_state(game.start)
        if TILES.event_probabilities(state[None]).any():
            raise PositionError(f"a tile is still to come in {game.start!r}; give a later board")
    TILES.reset(row, np.zeros(1, np.int64), state[None])
    points = 0.0
    for number, move in enumerate(game.moves):
        actions = np.array([TILES.parse_action(row.state[0], move)], np.int16)
        if not row.lists(actions)[0]:
            board = TILES.format_state(row.state[0])
            raise IllegalMoveError(f"move {move!r} changes nothing in {board!r}")
        TILES.step(row, actions, chance_words(seed, np.array([game.ply + number], np.int32)))
        points += TILES.spec.score_unit * float(row.reward[0])
    return row, points


def legal_of(row: GameBatch) -> Int16Array:
    """int16[n]: the legal actions of the one row."""
    legal: Int16Array = row.legal_actions[0, : row.num_legal[0]]
    return legal


def describe_tiles(game: TilesGame) -> Json:
    """The board after the moves, the points that they won, and the moves possible there.

    Raises:
        UsageError: as :func:`tiles_row`.
    """
    row, points = tiles_row(game)
    state = row.state[0]
    return {
        "kind": "2048",
        "board": TILES.format_state(state),
        "ply": game.ply + len(game.moves),
        "points": points,
        "largest": int(TILES.milestones(row.state)[0]),
        "legal": [TILES.format_action(state, int(action)) for action in legal_of(row)],
        "over": bool(row.termination[0] != ONGOING),
    }


def import_game(text: str) -> Json:
    """The first game of a PGN, or the position of a FEN: its start, moves, players and result.

    The names are empty where they are not known.

    Raises:
        UsageError: there is no game, a move is illegal, or the game is too long.
    """
    stripped = text.strip()
    if not stripped:
        raise UsageError("there is nothing to import; paste a PGN or a FEN")
    try:
        board = parse_fen(stripped)
    except PositionError:
        pass  # a PGN then
    else:
        from_board(board)  # refuses a position that cannot occur
        return {"start": board.fen(), "moves": [], "white": "", "black": "", "result": "*"}
    record = chess.pgn.read_game(io.StringIO(stripped))
    if record is None or (not record.variations and "FEN" not in record.headers):
        raise UsageError("this is neither a FEN nor a PGN with a game")
    if record.errors:
        raise UsageError(f"the PGN cannot be read: {record.errors[0]}")
    moves = [move.uci() for move in record.mainline_moves()]
    if len(moves) > MAX_PLIES:
        raise UsageError(f"the game has {len(moves):,} plies; the page shows at most {MAX_PLIES:,}")
    game = ChessGame(kind="chess", start=record.headers.get("FEN"), moves=tuple(moves))
    chess_position(game)
    result = record.headers.get("Result", "*")
    return {
        "start": game.start, "moves": moves, "white": _name(record, "White"),
        "black": _name(record, "Black"), "result": result if result in _RESULTS else "*",
    }


def _name(record: chess.pgn.Game, tag: str) -> str:
    name = record.headers.get(tag, "?")
    return "" if name == "?" else name[:MAX_NAME]


def export_game(request: ExportRequest, date: str) -> str:
    """The game as PGN, played on ``date`` (``2026.01.31``); the rules decide a result of ``*``.

    Raises:
        UsageError: as :func:`chess_position`.
    """
    board = chess_position(request.game).board
    over, record = ending(board), chess.pgn.Game.from_board(board)
    record.headers.update({
        "Event": "chess-snn web", "Site": "?", "Date": date, "Round": "-",
        "White": request.white or "?", "Black": request.black or "?",
        "Result": over[1] if over and request.result == "*" else request.result,
    })
    return f"{record}\n"
