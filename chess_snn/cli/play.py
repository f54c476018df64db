"""``chess-snn play``: a person against a network or another player, in a terminal."""

import io
import secrets
import sys
from contextlib import ExitStack
from typing import Annotated

import chess
import typer

from chess_snn.campaign.models.references import KNOWN_MODELS
from chess_snn.cli.console import print_message
from chess_snn.cli.devices import NetworkDeviceOption
from chess_snn.cli.models import newest_or_untrained
from chess_snn.cli.players import Entrant, find_entrant
from chess_snn.cli.terminal_game import TerminalGame
from chess_snn.config import check_choice, check_range
from chess_snn.devices import find_device
from chess_snn.errors import UsageError
from chess_snn.evaluation import KNOWN_PLAYERS
from chess_snn.games import get_game
from chess_snn.search import MAX_SIMULATIONS

_COLORS = {"white": chess.WHITE, "black": chess.BLACK}


def play_command(
    model: Annotated[
        str | None, typer.Option(help=f"Whom to play: {', '.join(KNOWN_PLAYERS)}, or a network.")
    ] = None,
    simulations: Annotated[
        int, typer.Option(help="Of a network at each move; 0 plays its policy without search.")
    ] = 200,
    color: Annotated[str, typer.Option(help="Yours: white, black or random.")] = "white",
    fen: Annotated[str, typer.Option(help='Where to begin: a FEN, or "startpos".')] = "startpos",
    ascii_only: Annotated[
        bool, typer.Option("--ascii", help="Pieces as letters, White's as capitals.")
    ] = False,
    threads: Annotated[int, typer.Option(help="Of a network; 0 takes what is of use.")] = 0,
    device: NetworkDeviceOption = "cpu",
) -> None:
    """Play a game against a network, or against any other player, in the terminal.

    Without --model the newest network in campaigns/ or $CHESS_SNN_HOME/campaigns plays. Type help
    during the game to see what can be typed.

    chess-snn play --model campaigns/cpu-001 --simulations 400 --color random
    """
    check_range("--simulations", simulations, ge=0, le=MAX_SIMULATIONS)
    check_choice("--color", color, (*_COLORS, "random"))
    check_range("--threads", threads, ge=0, le=1024)
    find_device(device)
    game = get_game("chess")
    entrant = _newest(simulations) if model is None else find_entrant(game, model, simulations)
    human = _COLORS[secrets.choice(tuple(_COLORS)) if color == "random" else color]
    with ExitStack() as pools:
        opponent = entrant.take_seat(game, 1, threads or None, device, pools)
        table = TerminalGame(
            game, None if fen == "startpos" else fen, human, opponent, print_message,
            ascii_only=ascii_only or not _can_print_pieces(), seed=secrets.randbits(63),
        )
        if isinstance(sys.stdin, io.TextIOWrapper):  # bytes that are no text are no move
            sys.stdin.reconfigure(errors="backslashreplace")
        side = "White" if human == chess.WHITE else "Black"
        print_message(f"You are {side}, against {opponent.name}. help lists what you can type.")
        try:
            table.answer()
            _converse(table)
        except (EOFError, KeyboardInterrupt):
            print_message("")


def _converse(table: TerminalGame) -> None:
    while True:
        try:
            if not table.obey(input(table.prompt)):
                return
        except UsageError as error:
            print_message(str(error))


def _newest(simulations: int) -> Entrant:
    model = newest_or_untrained()
    if model.weights is None:
        raise UsageError(
            f"no trained network was found; give one with --model: {KNOWN_MODELS}; or play one of "
            f"{', '.join(KNOWN_PLAYERS)}"
        )
    return Entrant(f"{model.label}:{simulations}", model, simulations)


def _can_print_pieces() -> bool:
    try:
        "♔♟".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
