"""The best and the worst games of a campaign's evaluation matches, for a board with step buttons.

Of two players, the best games are the shortest wins against the strongest opponent that was beaten,
the worst are the shortest losses. Of one player, they have the most and the fewest points. Games of
the champion and of the newest evaluated generation come first; those of other generations are
shown only where these have none.

Dimensions: n moves, R words of a position.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from chess_snn.campaign.strength.match_games import match_files, read_match
from chess_snn.campaign.strength.matches import is_gating_match
from chess_snn.data import play_actions, state_rows
from chess_snn.evaluation.match_files import match_pgn, match_positions
from chess_snn.evaluation.match_result import FORFEIT_ENDING, MatchResult
from chess_snn.report.facts import CampaignFacts
from chess_snn.types import Int16Array, Json, UInt64Array

_NUM_GAMES: Final = 3
"""Of the best, and of the worst."""
_MOVE_NUMBER: Final = re.compile(r"\d+\.+")
_CELLS: Final = 16
"""Of 2048; a cell has four bits of the board's word."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A game that may be shown."""

    path: Path
    """File of the match."""
    result: MatchResult
    number: int
    """In the match."""
    generation: int
    opponent: str
    """Empty in a game of one player."""
    outcome: float
    """1 won, 0 lost; of one player, points."""
    opponent_elo: float
    """0 where it is not known."""

    @property
    def plies(self) -> int:
        """Moves of both."""
        return int(self.result.plies[self.number])


@dataclass(frozen=True, slots=True, eq=False)
class ShownGame:
    """A game with everything the page shows of it."""

    title: str
    details: str
    pgn: str
    """Empty in a game that PGN cannot write."""
    states: UInt64Array
    """uint64[n + 1, R]: the positions, the last one at the end."""
    viewer: Json
    """For the page's script: ``kind``, ``positions`` and ``moves``."""


def chosen_games(facts: CampaignFacts) -> tuple[list[ShownGame], list[ShownGame]]:
    """The best and the worst games, the best of the best and the worst of the worst first.

    Raises:
        CorruptDataError: a match is damaged.
    """
    found = list(_candidates(facts))
    if facts.is_solo:
        best = sorted(found, key=lambda game: (-game.outcome, _order(game)))
        worst = sorted(found, key=lambda game: (game.outcome, _order(game)))
        chosen = best[:_NUM_GAMES], worst[: max(0, min(_NUM_GAMES, len(found) - _NUM_GAMES))]
    else:
        wins = _late(facts, [game for game in found if game.outcome == 1])
        losses = _late(facts, [game for game in found if game.outcome == 0])
        strongest = max((game.opponent_elo for game in wins), default=0.0)
        chosen = (
            sorted((game for game in wins if game.opponent_elo == strongest),
                   key=lambda game: (game.plies, _order(game)))[:_NUM_GAMES],
            sorted(losses, key=lambda game: (game.plies, _order(game)))[:_NUM_GAMES],
        )
    best_games, worst_games = ([_shown(facts, game) for game in games] for games in chosen)
    return best_games, worst_games


def _order(game: Candidate) -> tuple[int, str, int]:
    return -game.generation, game.path.as_posix(), game.number


def _late(facts: CampaignFacts, games: Sequence[Candidate]) -> list[Candidate]:
    """Those of the champion and the newest generation, if there are any; else all."""
    newest = max((game.generation for game in games), default=0)
    late = [game for game in games if game.generation in (facts.champion, newest)]
    return late or list(games)


def _candidates(facts: CampaignFacts) -> Iterator[Candidate]:
    """Decisive games of a network against players that are none; of one player, all its games."""
    elos = {
        rating.player: rating.elo.value for rating in facts.rated.ratings.table
    } if facts.rated else {}
    seen: set[tuple[str, str]] = set()
    for path in match_files(facts.folder):
        if is_gating_match(path.stem):
            continue
        result, body = read_match(facts.game.spec, path)
        if "generation" not in body["facts_a"] or "generation" in body["facts_b"]:
            continue
        generation = int(body["facts_a"]["generation"])
        endings = result.endings
        for number in range(result.num_games):
            if facts.is_solo:
                key = result.player_a, result.opening_keys[result.opening_index[number]]
                if not result.a_is_white[number] or key in seen:
                    continue
                seen.add(key)  # all matches of an event have the same games
                outcome = float(result.points[number])
            elif endings[number] == FORFEIT_ENDING or result.scores_a[number] not in (0, 1):
                continue
            else:
                outcome = float(result.scores_a[number])
            yield Candidate(
                path, result, number, generation, "" if facts.is_solo else result.player_b,
                outcome, elos.get(result.player_b, 0.0),
            )


def _shown(facts: CampaignFacts, game: Candidate) -> ShownGame:
    result, spec = game.result, facts.game.spec
    rows = slice(*result.game_offsets[game.number : game.number + 2])
    states = state_rows(spec, match_positions(facts.game, result)[rows])
    actions = result.actions[rows]
    end = play_actions(facts.game, states[-1:], actions[-1:]).state
    states = np.concatenate([states, end])
    place = f"{game.path.parent.name}/{game.path.stem}, game {game.number + 1}"
    ending = result.endings[game.number].replace("_", " ")
    if facts.is_solo:
        reached = f"{spec.milestone_name} {int(result.milestones[game.number]):,}"
        return ShownGame(
            f"{game.outcome:,.0f} points", f"{result.player_a}, {reached}, {game.plies:,} moves, "
            f"{ending}; {place}", "", states, _tiles(facts, states, actions),
        )
    (_, pgn), = match_pgn(
        facts.game, result, event=facts.folder.name, date=_created(game), numbers=[game.number],
        more={"Match": f"{game.path.parent.name}/{game.path.stem}"},
    )
    colour = "White" if result.a_is_white[game.number] else "Black"
    word = "Win" if game.outcome else "Loss"
    return ShownGame(
        f"{word} against {game.opponent} in {game.plies} plies",
        f"{result.player_a} has {colour}; {ending}; {place}", pgn, states,
        _board(facts, states, actions, pgn),
    )


def _created(game: Candidate) -> str:
    return str(read_match(game.result.spec, game.path)[1]["created"])


def _board(
    facts: CampaignFacts, states: UInt64Array, actions: Int16Array, pgn: str
) -> Json:
    """Positions as FEN, and the moves in both notations."""
    movetext = pgn.partition("\n\n")[2].split()[:-1]
    names = [word for word in movetext if not _MOVE_NUMBER.fullmatch(word)]
    return {
        "kind": "chess",
        "positions": [facts.game.format_state(state) for state in states],
        "moves": [
            [_numbered(state, facts, name), facts.game.format_action(state, int(action))]
            for state, action, name in zip(states[:-1], actions, names, strict=True)
        ],
    }


def _numbered(state: UInt64Array, facts: CampaignFacts, name: str) -> str:
    fields = facts.game.format_state(state).split()
    return f"{fields[5]}{'.' if fields[1] == 'w' else '…'} {name}"


def _tiles(facts: CampaignFacts, states: UInt64Array, actions: Int16Array) -> Json:
    """Positions of 2048 as a hexadecimal digit a cell, the exponents of the tiles."""
    return {
        "kind": "2048",
        "positions": [f"{int(state[0]):0{_CELLS}x}"[::-1] for state in states],
        "moves": [
            [f"{ply + 1}. {facts.game.format_action(state, int(action))}"]
            for ply, (state, action) in enumerate(zip(states[:-1], actions, strict=True))
        ],
    }
