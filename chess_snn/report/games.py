"""The best and the worst games of a campaign's evaluation matches, for a board with step buttons.

Of two players, the best games are the shortest wins against the strongest opponent that was beaten,
the worst are the shortest losses. They are games of the champion and of the newest evaluated
generation; other generations take their place only where these won, or lost, none. Of one player,
they have the most and the fewest points of all generations.

Dimensions: m moves of a game, W words of a position.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chess_snn.campaign.strength.match_games import match_files, read_match
from chess_snn.campaign.strength.match_schedule import is_gating_match
from chess_snn.campaign.viewing.recorded_games import GamePositions, game_positions
from chess_snn.evaluation.match_files import match_pgn, match_positions
from chess_snn.evaluation.match_result import FORFEIT_ENDING, MatchResult
from chess_snn.report.facts import CampaignFacts
from chess_snn.types import Json, UInt64Array
from chess_snn.wording import counted

_NUM_GAMES: Final = 3
"""Number of the best games, and of the worst."""
_CELLS: Final = 16
"""Cells of 2048; a cell has four bits of the board's word."""


@dataclass(frozen=True, slots=True, eq=False)
class _Match:
    """A match of a network against a player that is none."""

    path: Path
    result: MatchResult
    generation: int
    """Generation of the network."""
    created: str
    """ISO 8601, UTC."""

    @property
    def label(self) -> str:
        """Its event and its name."""
        return f"{self.path.parent.name}/{self.path.stem}"


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """A game that may be shown."""

    match: _Match
    number: int
    """Number in the match."""
    outcome: float
    """1 won, 0 lost; of one player, points."""
    opponent_elo: float
    """0 where it is not known."""

    @property
    def plies(self) -> int:
        """Moves of both."""
        return int(self.match.result.plies[self.number])

    @property
    def order(self) -> tuple[int, str, int]:
        """Newer generations first."""
        return -self.match.generation, self.match.path.as_posix(), self.number


@dataclass(frozen=True, slots=True, eq=False)
class ShownGame:
    """A game with everything the page shows of it."""

    title: str
    details: str
    pgn: str
    """Empty in a game that PGN cannot write."""
    states: UInt64Array
    """uint64[m + 1, W]: the positions, the last one at the end."""
    viewer: Json
    """For the page's script: ``kind``, ``positions`` and ``moves``."""


def chosen_games(facts: CampaignFacts) -> tuple[list[ShownGame], list[ShownGame]]:
    """The best and the worst games, the best of the best and the worst of the worst first.

    Raises:
        CorruptDataError: a match is damaged.
    """
    matches = list(_matches(facts))
    found = list(_candidates(facts, matches))
    if facts.is_solo:
        best = sorted(found, key=lambda game: (-game.outcome, game.order))
        worst = sorted(found, key=lambda game: (game.outcome, game.order))
        chosen = best[:_NUM_GAMES], worst[: max(0, min(_NUM_GAMES, len(found) - _NUM_GAMES))]
    else:
        newest = max((match.generation for match in matches), default=None)
        wins, losses = (
            _late([game for game in found if game.outcome == outcome], (facts.champion, newest))
            for outcome in (1, 0)
        )
        strongest = max((game.opponent_elo for game in wins), default=0.0)
        wins = [game for game in wins if game.opponent_elo == strongest]
        best, worst = (
            sorted(games, key=lambda game: (game.plies, game.order)) for games in (wins, losses)
        )
        chosen = best[:_NUM_GAMES], worst[:_NUM_GAMES]
    replayed = {
        path: match_positions(facts.game, result)
        for path, result in {
            game.match.path: game.match.result for games in chosen for game in games
        }.items()
    }
    best_games, worst_games = (
        [_shown(facts, game, replayed[game.match.path]) for game in games] for games in chosen
    )
    return best_games, worst_games


def _late(games: list[_Candidate], generations: Sequence[int | None]) -> list[_Candidate]:
    """The games of these generations; all games if they have none."""
    return [game for game in games if game.match.generation in generations] or games


def _matches(facts: CampaignFacts) -> Iterator[_Match]:
    for path in match_files(facts.folder):
        if is_gating_match(path.stem):
            continue
        result, body = read_match(facts.game.spec, path)
        if "generation" in body["facts_a"] and "generation" not in body["facts_b"]:
            yield _Match(path, result, int(body["facts_a"]["generation"]), body["created"])


def _candidates(facts: CampaignFacts, matches: Sequence[_Match]) -> Iterator[_Candidate]:
    """Decisive games of the networks; of one player, all their games."""
    elos = {
        rating.player: rating.elo.value for rating in facts.rated.ratings.table
    } if facts.rated else {}
    seen: set[tuple[str, str]] = set()
    for match in matches:
        result = match.result
        endings = result.endings
        for number in range(result.num_games):
            if facts.is_solo:
                opening, is_second = divmod(number, 2)
                key = result.player_a, result.opening_keys[opening]
                if is_second or key in seen:  # the second game of a seed is the opponent's
                    continue
                seen.add(key)  # all matches of an event have the same games
                outcome = float(result.points[number])
            elif endings[number] == FORFEIT_ENDING or result.scores_a[number] not in (0, 1):
                continue
            else:
                outcome = float(result.scores_a[number])
            yield _Candidate(match, number, outcome, elos.get(result.player_b, 0.0))


def _shown(facts: CampaignFacts, game: _Candidate, match_states: UInt64Array) -> ShownGame:
    """The game, whose match has ``match_states`` of :func:`match_positions`."""
    match, result, spec = game.match, game.match.result, facts.game.spec
    rows = slice(*result.game_offsets[game.number : game.number + 2])
    played = game_positions(facts.game, match_states[rows], result.actions[rows])
    place = f"{match.label}, game {game.number + 1}"
    ending = result.endings[game.number].replace("_", " ")
    if facts.is_solo:
        reached = f"{spec.milestone_name} {int(result.milestones[game.number]):,}"
        return ShownGame(
            f"{game.outcome:,.0f} points",
            f"{result.player_a}, {reached}, {counted(game.plies, 'move')}, {ending}; {place}", "",
            played.states, _tiles(played),
        )
    (_, pgn), = match_pgn(
        facts.game, result, event=facts.folder.name, date=match.created, numbers=[game.number],
        more={"Match": match.label}, states=match_states,
    )
    colour = "White" if result.a_is_white[game.number] else "Black"
    word = "Win" if game.outcome else "Loss"
    return ShownGame(
        f"{word} against {result.player_b} in {counted(game.plies, 'ply')}",
        f"{result.player_a} has {colour}; {ending}; {place}", pgn, played.states, _board(played),
    )


def _board(played: GamePositions) -> Json:
    """Positions as FEN, and the moves in both notations."""
    moves = zip(played.positions[:-1], played.names, played.moves, strict=True)
    return {
        "kind": "chess",
        "positions": played.positions,
        "moves": [[_numbered(fen, name), uci] for fen, name, uci in moves],
    }


def _numbered(fen: str, name: str) -> str:
    fields = fen.split()
    return f"{fields[5]}{'.' if fields[1] == 'w' else '…'} {name}"


def _tiles(played: GamePositions) -> Json:
    """Positions of 2048 as a hexadecimal digit a cell, the exponents of the tiles."""
    return {
        "kind": "2048",
        "positions": [f"{int(state[0]):0{_CELLS}x}"[::-1] for state in played.states],
        "moves": [[f"{ply}. {name}"] for ply, name in enumerate(played.names, start=1)],
    }
