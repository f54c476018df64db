"""``chess-snn play``: a person against a network or another player, in a terminal."""

import io
import secrets
import sys
from contextlib import ExitStack
from typing import Annotated

import chess
import typer
from rich.console import RenderableType

from chess_snn.campaign.models.references import KNOWN_MODELS
from chess_snn.cli.console import console, print_message
from chess_snn.cli.keyboard import has_keyboard
from chess_snn.cli.options import NetworkDeviceOption, ThreadsOption
from chess_snn.cli.players import (
    ADVISER,
    START,
    Entrant,
    GameOption,
    find_entrant,
    game_of_players,
    newest_or_untrained,
    read_position,
)
from chess_snn.cli.solo_game import SoloGame, play_by_keys
from chess_snn.cli.terminal_game import TerminalGame
from chess_snn.config import check_choice, check_range
from chess_snn.devices import find_device
from chess_snn.errors import UsageError
from chess_snn.evaluation import KNOWN_PLAYERS, Player
from chess_snn.games import Game
from chess_snn.search import MAX_SIMULATIONS

_COLORS = {"white": chess.WHITE, "black": chess.BLACK}


def play_command(
    model: Annotated[
        str | None,
        typer.Option(help=f"Whom to play, or who gives hints: {', '.join(KNOWN_PLAYERS)}, or a "
                     "network."),
    ] = None,
    game_name: GameOption = "",
    simulations: Annotated[
        int, typer.Option(help="Of a network at each move; 0 plays its policy without search.")
    ] = 200,
    color: Annotated[str, typer.Option(help="Yours: white, black or random.")] = "white",
    fen: Annotated[
        str, typer.Option(help='Where to begin: a position as analyse takes it, or "startpos".')
    ] = START,
    seed: Annotated[
        int | None, typer.Option(help="Of chance and of random players; left out, any.")
    ] = None,
    ascii_only: Annotated[
        bool, typer.Option("--ascii", help="Letters and signs of ASCII alone.")
    ] = False,
    threads: ThreadsOption = 0,
    device: NetworkDeviceOption = "cpu",
) -> None:
    """Play a game against a network, or against any other player, in the terminal.

    Without --model the newest network in campaigns/ or $CHESS_SNN_HOME/campaigns plays. Type help
    during the game to see what can be typed.

    A game of one player, 2048, is played with the arrow keys; the player of --model gives hints and
    can play on.

    chess-snn play --model campaigns/cpu-001 --simulations 400 --color random

    chess-snn play --game 2048 --seed 7
    """
    check_range("--simulations", simulations, ge=0, le=MAX_SIMULATIONS)
    check_choice("--color", color, (*_COLORS, "random"))
    check_range("--threads", threads, ge=0, le=1024)
    if seed is not None:
        check_range("--seed", seed, ge=0, le=2**63 - 1)
    find_device(device)
    rules, entrant = _choose(game_name, model, simulations)
    seed = secrets.randbits(63) if seed is None else seed
    ascii_only = ascii_only or not _can_print_pieces()
    start = None if fen == START else fen
    with ExitStack() as pools:
        player = entrant.take_seat(rules, 1, threads or None, device, pools)
        try:
            if rules.spec.num_players == 1:
                if color != "white":
                    raise UsageError(f"--color is for two players, {rules.spec.name} has one")
                _play_alone(rules, start, player, seed, ascii_only)
            else:
                human = _COLORS[secrets.choice(tuple(_COLORS)) if color == "random" else color]
                _play_against(rules, start, human, player, seed, ascii_only)
        except (EOFError, KeyboardInterrupt):
            print_message("")


def _choose(game_name: str, model: str | None, simulations: int) -> tuple[Game, Entrant]:
    """What is played, and with whom."""
    game = game_of_players([] if model is None else [model], game_name)
    if model is None and game.spec.num_players != 1:
        return game, _newest(game, simulations)
    return game, find_entrant(game, model or ADVISER, simulations)


def _play_against(
    game: Game, start: str | None, human: chess.Color, opponent: Player, seed: int,
    ascii_only: bool,
) -> None:
    table = TerminalGame(
        game, start, human, opponent, print_message, ascii_only=ascii_only, seed=seed
    )
    side = "White" if human == chess.WHITE else "Black"
    print_message(f"You are {side}, against {opponent.name}. help lists what you can type.")
    table.answer()
    _converse(table)


def _play_alone(
    game: Game, start: str | None, adviser: Player, seed: int, ascii_only: bool
) -> None:
    table = SoloGame(
        game, None if start is None else read_position(game, start), adviser, _show,
        seed=seed, ascii_only=ascii_only,
    )
    print_message(f"{game.spec.name} with seed {seed}; hints come from {adviser.name}.")
    if has_keyboard() and console.is_terminal and not console.is_dumb_terminal:
        play_by_keys(table, console)
    else:
        print_message("help lists what you can type.")
        table.obey("board")
        _converse(table)


def _show(content: RenderableType) -> None:
    """Text as it stands, pictures as they are drawn."""
    if isinstance(content, str):
        print_message(content)
    else:
        console.print(content)


def _converse(table: TerminalGame | SoloGame) -> None:
    if isinstance(sys.stdin, io.TextIOWrapper):  # bytes that are no text are no move
        sys.stdin.reconfigure(errors="backslashreplace")
    while True:
        try:
            if not table.obey(input(table.prompt)):
                return
        except UsageError as error:
            print_message(str(error))


def _newest(game: Game, simulations: int) -> Entrant:
    model = newest_or_untrained(game.spec.name)
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
