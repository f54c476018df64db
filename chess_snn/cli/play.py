"""``chess-snn play``: a person against a network or another player, in a terminal."""

from __future__ import annotations

import io
import secrets
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from chess_snn.cli.console import Keyboard, console, has_keyboard, print_message
from chess_snn.cli.options import (
    ADVISER,
    GameOption,
    NetworkDeviceOption,
    SimulationsOption,
    ThreadsOption,
    complete_player,
)
from chess_snn.errors import UsageError
from chess_snn.known import DEFAULT_GAME, KNOWN_PLAYERS, SHIPPED_CHESS, START
from chess_snn.later import to_run
from chess_snn.settings import check_choice

if TYPE_CHECKING or to_run(__name__):
    import numpy as np

    from chess_snn.api.matches import game_of, player
    from chess_snn.api.positions import read_state
    from chess_snn.cli.terminal_game import ChessGame, Show, TerminalGame

_SIDES: Final = {"white": 0, "black": 1}
_KEYS_HELP: Final = "arrows, hjkl, wasd: move   t: hint   p: autoplay   u: take back   q: quit"
_COMMAND_KEYS: Final = {"t": "hint", "?": "hint", "u": "takeback", "q": "quit"}
_AUTO_KEYS: Final = ("p", " ")
_PAUSE_S: Final = 0.05
"""Between moves of the autoplay, so that people can follow."""
_TALL_LINES: Final = 22
"""Height of a terminal that has room for a tall board and the lines below it."""


def play_command(
    model: Annotated[
        str | None,
        typer.Option(help=f"Whom to play, or who gives hints: {', '.join(KNOWN_PLAYERS)}, or a "
                     "network.", autocompletion=complete_player),
    ] = None,
    game_name: GameOption = "",
    simulations: SimulationsOption = 200,
    color: Annotated[str, typer.Option(help="Yours: white, black or random.")] = "white",
    fen: Annotated[
        str, typer.Option(help='Where to begin: a position as analyse takes it, or "startpos".')
    ] = START,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**63 - 1,
                                 help="Of chance and of random players; left out, any.")
    ] = None,
    ascii_only: Annotated[
        bool, typer.Option("--ascii", help="Letters and signs of ASCII alone.")
    ] = False,
    threads: ThreadsOption = 0,
    device: NetworkDeviceOption = "cpu",
) -> None:
    """Play a game against a network or another player.

    Without --model the network that comes with this program plays. Type help during the game to see
    what can be typed.

    A game of one player, 2048, is played with the arrow keys; the player of --model gives hints and
    can play on.

    chess-snn play --model campaigns/cpu-001 --simulations 400 --color random

    chess-snn play --game 2048 --seed 7
    """
    check_choice("--color", color, (*_SIDES, "random"))
    game = game_name or game_of([] if model is None else [model])
    opponent = player(
        model or (SHIPPED_CHESS if game == DEFAULT_GAME else ADVISER), game=game,
        simulations=simulations, device=device, threads=threads or None,
    )
    rules = opponent.rules
    seed = secrets.randbits(63) if seed is None else seed
    ascii_only = ascii_only or not console.encoding.startswith("utf")
    start = (
        rules.initial_states(np.array([seed], np.uint64))[0] if fen == START
        else read_state(rules, fen)
    )
    is_solo = rules.spec.num_players == 1
    if is_solo and color != "white":
        raise UsageError(f"--color is for two players, {rules.spec.name} has one")
    human = _SIDES[secrets.choice(tuple(_SIDES)) if color == "random" else color]
    with opponent:
        kind = ChessGame if rules.spec.name == "chess" else TerminalGame
        make_table = partial(
            kind, rules, start, opponent.seat(1), seed=seed, ascii_only=ascii_only, human=human
        )
        print_message(
            f"{rules.spec.name} with seed {seed}; hints come from {opponent.name}." if is_solo else
            f"You are {('White', 'Black')[human]}, against {opponent.name}."
        )
        try:
            if is_solo and has_keyboard() and console.is_terminal and not console.is_dumb_terminal:
                _play_by_keys(make_table)
            else:
                _converse(make_table(_show))
        except (EOFError, KeyboardInterrupt):
            print_message("")


def _show(content: RenderableType) -> None:
    """Print text as it is, and draw pictures."""
    if isinstance(content, str):
        print_message(content)
    else:
        console.print(content)


def _converse(table: TerminalGame) -> None:
    if isinstance(sys.stdin, io.TextIOWrapper):  # bytes that are no text are no move
        sys.stdin.reconfigure(errors="backslashreplace")
    print_message("help lists what you can type.")
    table.answer()
    while True:
        try:
            if not table.obey(input(table.prompt)):
                return
        except UsageError as error:
            print_message(str(error))


def _play_by_keys(make: Callable[[Show], TerminalGame]) -> None:
    """Play a game in the terminal, a key a move, until ``q``.

    Raises:
        EOFError: the terminal is gone, or Ctrl-D was pressed.
    """
    note = ""

    def keep_text(content: RenderableType) -> None:
        nonlocal note
        if isinstance(content, str):  # the board is drawn all the time
            note = content

    table = make(keep_text)
    with Keyboard() as keyboard, Live(console=console, auto_refresh=False) as live:

        def draw(text: str) -> None:
            tall = console.height >= _TALL_LINES
            lines = Text(f"{text}\n{_KEYS_HELP}")
            live.update(Group(table.picture(tall=tall), lines), refresh=True)

        while True:
            draw(note)
            key, note = keyboard.read(), ""
            try:
                if key in _AUTO_KEYS:
                    table.obey("auto 1")
                    while not table.is_over and not keyboard.read(_PAUSE_S):
                        draw("any key stops")
                        table.obey("auto 1")
                elif not table.obey(_COMMAND_KEYS.get(key, key)):
                    return
            except UsageError as error:
                note = str(error)
