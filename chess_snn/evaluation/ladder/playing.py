"""The round-robin of a ladder: its pairings, and its games, which can be continued.

A part is some openings of one pairing. Every finished part is a file; parts that are there are not
played again, and the same plan plays the same games whenever it is interrupted. All pairings play
their first part before any plays its second: a run that ends early has something of each.
"""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chess_snn.config import check_range
from chess_snn.data import sweep_temporaries
from chess_snn.errors import ConfigError, UsageError
from chess_snn.evaluation.engines.player import is_engine_name
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.match_files import read_kept_match, write_match
from chess_snn.evaluation.match_result import MatchResult, identities_of
from chess_snn.evaluation.matches import DEFAULT_MAX_PLIES, play_match
from chess_snn.evaluation.named_players import make_player, split_dilution
from chess_snn.evaluation.openings import book_openings, check_book
from chess_snn.games import get_game
from chess_snn.games.base import Game
from chess_snn.rng import derive_seed
from chess_snn.types import Progress

LADDER_PLAYERS: Final = (
    "random",
    "stockfish:depth=1~90",
    "greedy~75",
    "stockfish:depth=1~75",
    "greedy~50",
    "minimax:2~50",
    "greedy~25",
    "stockfish:depth=1~50",
    "greedy",
    "minimax:2~25",
    "stockfish:depth=1~25",
    "minimax:3~25",
    "minimax:2",
    "minimax:3~10",
    "minimax:3",
    "stockfish:depth=1~10",
    "stockfish:depth=1",
    "stockfish@1",
    "stockfish@30",
    "stockfish@100",
    "stockfish@300",
    "stockfish@1000",
    "stockfish@2000",
    "stockfish@3000",
    "stockfish@5000",
    "stockfish@10000",
)
"""From the weakest to the strongest, as far as is known before they play."""

NEIGHBOURS: Final = 2
"""Every player meets this many of the next ones."""
LONG_LINK: Final = 4
"""Every second player also meets the one this many ranks above it."""
PART_PAIRS: Final = 10
"""Openings of a part."""
_NOT_IN_NAMES: Final = re.compile(r"[^\w.@~=-]")
_S_PER_MINUTE: Final = 60.0


def ladder_pairings(players: Sequence[str]) -> list[tuple[str, str]]:
    """The pairings, both players in the order of ``players``.

    Neighbours decide the ratings: between players far apart all games end one way, and say only
    that they are far apart. A few longer links hold the scale together, so that an error of one
    step does not add up with those of all the others.

    Raises:
        ConfigError: fewer than two players, or one twice.
    """
    if len(players) < 2:
        raise ConfigError(
            f"a ladder needs at least two players, got {', '.join(players) or 'none'}"
        )
    if len(set(players)) != len(players):
        raise ConfigError(f"the ladder names a player twice: {', '.join(players)}")
    steps = [
        (low, low + step)
        for low in range(len(players))
        for step in (*range(1, NEIGHBOURS + 1), LONG_LINK)
        if step <= NEIGHBOURS or low % 2 == 0
    ]
    return [(players[low], players[high]) for low, high in steps if high < len(players)]


def uses_engine(player: str) -> bool:
    """Whether another program must be installed for ``player`` to play."""
    return is_engine_name(split_dilution(player)[0])


@dataclass(frozen=True, slots=True)
class LadderPart:
    """Some openings of a pairing."""

    player_a: str
    player_b: str
    number: int
    """From 0, within the pairing."""
    openings: range
    """Places in the plan's list of openings."""

    @property
    def num_games(self) -> int:
        """Two an opening."""
        return 2 * len(self.openings)

    @property
    def file_name(self) -> str:
        """``greedy--minimax-2--0003.json``."""
        names = (_NOT_IN_NAMES.sub("-", name) for name in (self.player_a, self.player_b))
        return f"{'--'.join(names)}--{self.number:04d}.json"


@dataclass(frozen=True, slots=True)
class LadderPlan:
    """A round-robin, before any of it is played."""

    pairings: tuple[tuple[str, str], ...]
    """The pairings, see :func:`ladder_pairings`."""
    num_pairs: int
    """Openings of each pairing; both colours are played from each."""
    seed: int
    """Of the openings and of everything players draw."""
    max_plies: int = DEFAULT_MAX_PLIES
    """Games are truncated after this many half-moves, and count as drawn."""

    def __post_init__(self) -> None:
        check_range("--pairs", self.num_pairs, ge=1)
        check_book(get_game("chess"), self.num_pairs, "--pairs")
        check_range("--seed", self.seed, ge=0, le=2**63 - 1)
        check_range("--max-plies", self.max_plies, ge=1, le=10_000)

    @property
    def num_games(self) -> int:
        """Of the whole."""
        return sum(part.num_games for part in self.parts())

    def parts(self) -> Iterator[LadderPart]:
        """All parts, in the order in which they are played."""
        for first in range(0, self.num_pairs, PART_PAIRS):
            openings = range(first, min(first + PART_PAIRS, self.num_pairs))
            for player_a, player_b in self.pairings:
                yield LadderPart(player_a, player_b, first // PART_PAIRS, openings)


def play_ladder(
    folder: Path, plan: LadderPlan, engines: EngineSettings, *, minutes: float = 0.0,
    on_progress: Progress | None = None,
) -> bool:
    """Play what ``folder`` lacks of ``plan``.

    Args:
        folder: where parts are kept; made if it is missing.
        plan: what is to be played.
        engines: how engines are run; it does not change what they play.
        minutes: no part begins after this time; 0 plays all.
        on_progress: called often with games over and games in all.

    Returns:
        Whether all of the plan is played.

    Raises:
        ConfigError: a player is unknown.
        EngineError: an engine is not installed, or cannot play.
        UsageError: the folder holds parts of another plan.
    """
    game = get_game("chess")
    for name in {name for pairing in plan.pairings for name in pairing}:
        make_player(game, name, engines)  # raises before any game is played
    if folder.is_dir():
        sweep_temporaries(folder)
    deadline = time.monotonic() + _S_PER_MINUTE * minutes if minutes else None
    done, total = 0, plan.num_games
    for part in plan.parts():
        path = folder / part.file_name
        if _stored(game, path, plan, part) is None:
            if deadline is not None and time.monotonic() >= deadline:
                return False

            def tell(games: int, _of: int, before: int = done) -> None:
                if on_progress is not None:
                    on_progress(before + games, total)

            write_match(path, _play(game, plan, part, engines, tell), _conditions(plan))
        done += part.num_games
        if on_progress is not None:
            on_progress(done, total)
    return True


def read_matches(folder: Path, plan: LadderPlan) -> dict[tuple[str, str], MatchResult]:
    """The match of each pairing, as far as it has been played.

    Raises:
        UsageError: the folder holds parts of another plan; or two versions of one engine played.
        CorruptDataError: a part is damaged.
    """
    game = get_game("chess")
    parts: dict[tuple[str, str], list[MatchResult]] = {}
    for part in plan.parts():
        result = _stored(game, folder / part.file_name, plan, part)
        if result is not None:
            parts.setdefault((part.player_a, part.player_b), []).append(result)
    programs_of(result for results in parts.values() for result in results)
    return {pairing: MatchResult.joined(results) for pairing, results in parts.items()}


def programs_of(results: Iterable[MatchResult]) -> dict[str, str]:
    """What the program behind each player that is one calls itself.

    Raises:
        UsageError: it changed from one match to another: they are different players.
    """
    try:
        return identities_of(results)
    except UsageError as error:
        raise UsageError(f"{error}; make the ladder with one version, in a new folder") from error


def _play(
    game: Game, plan: LadderPlan, part: LadderPart, engines: EngineSettings,
    on_progress: Progress,
) -> MatchResult:
    player_a, player_b = (
        make_player(game, name, engines) for name in (part.player_a, part.player_b)
    )
    openings = book_openings(game, part.openings.stop, plan.seed)[part.openings.start :]
    # A stream per pairing: a player's luck is independent for each opponent.
    seed = derive_seed(plan.seed, "ladder", part.player_a, part.player_b, part.number)
    return play_match(
        game, player_a, player_b, openings, seed=seed, max_plies=plan.max_plies,
        on_progress=on_progress,
    )


def _conditions(plan: LadderPlan) -> dict[str, int]:
    """What must be equal in all parts that are counted together."""
    return {"seed": plan.seed, "max_plies": plan.max_plies}


def _stored(game: Game, path: Path, plan: LadderPlan, part: LadderPart) -> MatchResult | None:
    """The games of ``part``; None where they, or some of them, are still to be played."""
    result = read_kept_match(game, path, _conditions(plan))
    # A plan of fewer pairs may have ended within this part.
    is_whole = result is not None and len(result.opening_keys) == len(part.openings)
    return result if is_whole else None
