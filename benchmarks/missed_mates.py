"""How often a network without search takes a mate in one, and how often it stalemates instead.

It plays against random moves, half of the games with either colour, each from four random plies on.
"""

from typing import Annotated, Final

import numpy as np
import typer

from benchmarks.report import Report, benchmark
from chess_snn.cli.players import find_model
from chess_snn.games import get_game
from chess_snn.games.base import NO_ACTION, ONGOING
from chess_snn.games.sampling import random_legal_actions
from chess_snn.games.starts import random_starts
from chess_snn.nets import make_evaluator
from chess_snn.self_play.starts import game_streams

_FIRST_PLIES: Final = 4
_MOST_PLIES: Final = 200


def run(
    report: Report,
    model: Annotated[str, typer.Option(help="Campaign, model or file of the network.")],
    games: Annotated[int, typer.Option(help="How many, against random moves.")] = 2000,
    seed: Annotated[int, typer.Option(help="Of the games.")] = 0,
) -> None:
    """How often a network without search takes a mate in one.

    python -m benchmarks mates --model campaigns/cpu-001 --games 2000
    """
    game, chosen = get_game("chess"), find_model(model)
    keys = game_streams(seed, "missed_mates", games)
    batch = game.allocate(len(keys))
    starts = random_starts(game, keys, np.full(len(keys), _FIRST_PLIES, np.int32))
    game.reset(batch, np.arange(len(keys)), starts)
    ours = np.arange(len(keys)) % 2
    stalemate = game.spec.terminations.index("stalemate")
    met = taken = stalemates = missed_by_stalemate = 0
    with make_evaluator(chosen.load(game), precision=chosen.precision) as evaluator:
        for ply in range(_FIRST_PLIES, _MOST_PLIES):
            actions = random_legal_actions(batch, keys, np.full(len(keys), ply, np.int32))
            goes_on = batch.termination == ONGOING
            rows = np.flatnonzero(goes_on & (game.side_to_move(batch.state) == ours))
            mates = np.zeros(len(keys), bool)
            if len(rows):
                asked = batch.take(rows)
                lists = asked.legal_actions, asked.num_legal
                mates[rows] = game.winning_actions(asked.state, *lists) != NO_ACTION
                logits = evaluator.evaluate(game.planes(asked.state), *lists).legal_logits
                actions[rows] = asked.legal_actions[np.arange(len(rows)), logits.argmax(axis=1)]
            game.step(batch, actions)
            ended = np.zeros(len(keys), bool)
            ended[rows] = batch.termination[rows] == stalemate
            met += int(mates.sum())
            taken += int((mates & (batch.reward == 1)).sum())
            stalemates += int(ended.sum())
            missed_by_stalemate += int((mates & ended).sum())
    report.note(f"{chosen.label}, without search, {len(keys):,} games against random moves")
    report.add("mates in one", met, "positions")
    report.add("mates in one, taken", taken / max(met, 1), "share")
    report.add("stalemates", stalemates, "games")
    report.add(
        "stalemates with a mate in one", missed_by_stalemate / max(stalemates, 1), "share"
    )


command = benchmark("mates", run)
