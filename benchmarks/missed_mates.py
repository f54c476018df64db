"""How often a network without search takes a mate in one, and stalemates where there was one.

    python benchmarks/missed_mates.py --model campaigns/cpu-001 --games 2000

It plays against random moves, half of the games with either colour, each from four random plies on.
"""

import argparse

import numpy as np

from chess_snn.cli.models import find_model
from chess_snn.games import get_game
from chess_snn.games.base import NO_ACTION, ONGOING
from chess_snn.games.sampling import random_legal_actions
from chess_snn.games.starts import random_starts
from chess_snn.nets import make_evaluator
from chess_snn.self_play.starts import game_streams

FIRST_PLIES = 4
MOST_PLIES = 200


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--games", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    game, chosen = get_game("chess"), find_model(arguments.model)
    keys = game_streams(arguments.seed, "missed_mates", arguments.games)
    batch = game.allocate(len(keys))
    starts = random_starts(game, keys, np.full(len(keys), FIRST_PLIES, np.int32))
    game.reset(batch, np.arange(len(keys)), starts)
    ours = np.arange(len(keys)) % 2
    stalemate = game.spec.terminations.index("stalemate")
    met = taken = stalemates = missed_by_stalemate = 0
    with make_evaluator(chosen.load(game), precision=chosen.precision) as evaluator:
        for ply in range(FIRST_PLIES, MOST_PLIES):
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
    print(f"{chosen.label}, without search, {len(keys):,} games against random moves")
    print(f"mates in one: {taken:,} of {met:,} taken ({taken / max(met, 1):.1%})")
    print(f"stalemates: {stalemates:,}, where there was a mate in one {missed_by_stalemate:,} "
          f"({missed_by_stalemate / max(stalemates, 1):.1%})")


if __name__ == "__main__":
    main()
