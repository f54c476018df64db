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
    """A match of a network against a player that is not a network."""

    path: Path
    result: MatchResult
    generation: int
    """Generation of the network."""
    created: str
    """ISO 8601, UTC."""


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """A game that may be shown."""

    match: _Match
    number: int
    """Number in the match."""
    outcome: float
    """1 won, 0 lost; of one player, points."""

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
    """Data for the page's script: ``kind``, ``positions`` and ``moves``."""


@dataclass(frozen=True, slots=True)
class ChosenGames:
    """The games of a report."""

    best: list[ShownGame]
    """The best one first."""
    worst: list[ShownGame]
    """The worst one first."""


def chosen_games(facts: CampaignFacts) -> ChosenGames:
    """The best and the worst games; none where no match was played, or none was decisive.

    Raises:
        CorruptDataError: a match is damaged.
    """
    matches = list(_matches(facts))
    best, worst = (_extreme if facts.is_solo else _decisive)(facts, matches)
    replayed = {
        game.match.path: match_positions(facts.game, game.match.result) for game in best + worst
    }
    return ChosenGames(*(
        [_shown(facts, game, replayed[game.match.path]) for game in games]
        for games in (best, worst)
    ))


def _extreme(
    _facts: CampaignFacts, matches: Sequence[_Match]
) -> tuple[list[_Candidate], list[_Candidate]]:
    """The games of one player with the most and the fewest points."""
    found = {
        # All matches of an event have the same games, and the second of a seed is the opponent's.
        (match.result.player_a, key): _Candidate(match, 2 * k, float(match.result.points[2 * k]))
        for match in reversed(matches) for k, key in enumerate(match.result.opening_keys)
    }
    best = sorted(found.values(), key=lambda game: (-game.outcome, game.order))
    worst = sorted(found.values(), key=lambda game: (game.outcome, game.order))
    return best[:_NUM_GAMES], worst[: max(0, min(_NUM_GAMES, len(found) - _NUM_GAMES))]


def _decisive(
    facts: CampaignFacts, matches: Sequence[_Match]
) -> tuple[list[_Candidate], list[_Candidate]]:
    """The shortest wins against the strongest opponent that was beaten, the shortest losses."""
    rated = facts.rated.ratings.table if facts.rated else ()
    elos = {rating.player: rating.elo.value for rating in rated}
    newest = max((match.generation for match in matches), default=None)
    wins, losses = (
        _late([
            _Candidate(match, number, outcome)
            for match in matches
            for number, ending in enumerate(match.result.endings)
            if ending != FORFEIT_ENDING and match.result.scores_a[number] == outcome
        ], (facts.champion, newest))
        for outcome in (1, 0)
    )
    strength = [elos.get(game.match.result.player_b, 0.0) for game in wins]
    wins = [game for game, elo in zip(wins, strength, strict=True) if elo == max(strength)]
    best, worst = (
        sorted(games, key=lambda game: (game.plies, game.order)) for games in (wins, losses)
    )
    return best[:_NUM_GAMES], worst[:_NUM_GAMES]


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


def _shown(facts: CampaignFacts, game: _Candidate, match_states: UInt64Array) -> ShownGame:
    """The game, whose match has ``match_states`` of :func:`match_positions`."""
    match, result, spec = game.match, game.match.result, facts.game.spec
    rows = slice(*result.game_offsets[game.number : game.number + 2])
    played = game_positions(facts.game, match_states[rows], result.actions[rows])
    label = f"{match.path.parent.name}/{match.path.stem}"
    place = f"{label}, game {game.number + 1}"
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
        more={"Match": label}, states=match_states,
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
