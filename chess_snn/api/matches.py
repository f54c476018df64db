"""Players and matches: networks, engines and simple programs against each other."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Final, Self

import numpy as np

from chess_snn.api.network import Net
from chess_snn.api.positions import Move, Position, Positions, moves_at, read_positions
from chess_snn.campaign.models.model import Model
from chess_snn.campaign.models.references import find_model
from chess_snn.errors import EngineError, UsageError
from chess_snn.evaluation import players as array_players
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.match_files import match_pgn
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.matches import default_max_plies
from chess_snn.evaluation.matches import play_match as play_games
from chess_snn.evaluation.named_players import DilutedPlayer, is_player_name, make_player
from chess_snn.evaluation.openings import choose_openings
from chess_snn.evaluation.players import SearchPlayer
from chess_snn.games import get_game
from chess_snn.games.base import Game
from chess_snn.known import DEFAULT_GAME
from chess_snn.search import make_search
from chess_snn.types import Closeable, Json, Progress, UInt64Array

_OPENINGS: Final = re.compile(r"book|random(?::(?P<plies>\d{1,3}))?")
_OPENING_PLIES: Final = 4
"""Plies of a random opening."""


def player(
    name: str, *, game: str | None = None, simulations: int = 64, device: str = "cpu",
    threads: int | None = None, answer_s: float = EngineSettings().answer_s,
) -> "Player":
    """The player that ``name`` stands for.

    >>> import chess, chess_snn
    >>> chess_snn.player("minimax:2").move(chess.Board("6k1/5ppp/8/8/8/8/8/K3R3 w - - 0 1"))
    Move.from_uci('e1e8')

    Args:
        name: ``random``, ``greedy``, ``minimax:2``, ``expectimax:2`` (2048), ``stockfish@100`` (an
            engine that looks at 100 nodes), ``stockfish:depth=1``, ``uci:/path/to/engine@100``, or
            a network as :func:`chess_snn.load` takes it, perhaps with simulations of its own:
            ``chess:32``. Behind ``~25`` 25 % of its moves are random.
        game: that it is to play; by default the network's, else chess.
        simulations: of a network at each move; 0 plays its policy.
        device: of a network.
        threads: of a network, or processes of an engine; None takes what is of use.
        answer_s: seconds that an engine may take for a move.

    Raises:
        UsageError: there is no such player, or it plays another game.
        EngineError: the engine is not installed.
    """
    if not is_player_name(name):
        return player_of(
            find_model(name, game=game, simulations=simulations), device=device, threads=threads
        )
    rules, engines = get_game(game or DEFAULT_GAME), EngineSettings(threads or 0, answer_s=answer_s)
    return Player(rules, make_player(rules, name).name, lambda _: make_player(rules, name, engines))


def player_of(model: Model, *, device: str = "cpu", threads: int | None = None) -> "Player":
    """``model``, loaded, as a player with the simulations that it names.

    Raises:
        CorruptDataError: its file is damaged.
    """
    return Player.of_network(Net(model, device=device, threads=threads), model, owns=True)


class Player(Closeable):
    """A network with its search, an engine, or a simple program, ready to play.

    :func:`chess_snn.player` and :meth:`chess_snn.Net.player` make it. A player of the former closes
    its network at the end of a ``with`` block, or by :meth:`close`.
    """

    def __init__(
        self, rules: Game, name: str, seat: Callable[[int], array_players.Player],
        model: Model | None = None, close: Callable[[], None] = lambda: None,
    ) -> None:
        """``seat`` makes the player for so many games at once."""
        self.rules, self.name, self.seat, self._close = rules, name, seat, close
        self.model = model
        """The network, if it is one."""
        self._seat: array_players.Player | None = None

    @classmethod
    def of_network(cls, net: Net, model: Model, *, owns: bool = False) -> Self:
        """``net`` played as ``model`` says; a player that ``owns`` it closes it."""

        def seat(num_games: int) -> array_players.Player:
            search = make_search(
                net.rules, net.evaluator, model.search, simulations=model.simulations,
                num_games=num_games, in_play=True, keeps_trees=True,
            )
            undiluted = SearchPlayer(search, replace(model, random_percent=None).name)
            percent = model.random_percent
            return undiluted if percent is None else DilutedPlayer(undiluted, percent)

        return cls(net.rules, model.name, seat, model, net.close if owns else lambda: None)

    @property
    def game(self) -> str:
        """``chess`` or ``2048``."""
        return self.rules.spec.name

    def __repr__(self) -> str:
        """Name and game."""
        return f"<Player {self.name}: {self.game}>"

    def move(self, position: Position, *, seed: int = 0) -> Move:
        """Its move in ``position``; ``seed`` decides what it plays at random.

        Raises:
            PositionError: the position is of another game or variant, impossible, or over.
            EngineError: an engine does not answer with a legal move.
            ClosedError: its network was closed.
        """
        batch = read_positions(self.rules, [position])
        if self._seat is None:
            self._seat = self.seat(1)
        key, ply = np.array([seed], np.uint64), np.zeros(1, np.int32)
        action = int(self._seat.choose(batch, key, ply)[0])
        if action < 0:
            raise EngineError(f"{self.name} has no legal move to offer; ask again, or another one")
        return moves_at(self.rules, batch.state[0], [action])[0]

    def close(self) -> None:
        """End the threads of a network that the player made for itself."""
        self._close()


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """A match of a against b that was played; scores are a's."""

    result: MatchResult
    """All games: counts, scores, endings, moves."""
    settings: Json
    """Settings that decide the match: ``seed``, ``opening_source`` and ``max_plies``."""
    facts: tuple[Json, Json]
    """Facts about a and b as networks."""
    seconds: float
    """Wall clock of the playing."""

    @property
    def score(self) -> float:
        """Mean score of a, in [0, 1]; a truncated game counts half."""
        return self.result.score

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the score, from pairs of games on one opening."""
        return self.result.interval()

    def __str__(self) -> str:
        """``0.931 (0.883 to 0.962)``."""
        low, high = self.interval
        return f"{self.score:.3f} ({low:.3f} to {high:.3f})"

    def pgn(self) -> Iterator[str]:
        """Each game as PGN, an empty line behind it.

        Raises:
            UsageError: the match was not one of chess.
        """
        return games_pgn(self.result, self.facts, self.settings["seed"])


def play_match(
    a: Player | str, b: Player | str, *, games: int = 200,
    openings: str | Positions = "", seed: int = 0, max_plies: int | None = None,
    on_progress: Progress | None = None,
) -> Match:
    """Let ``a`` and ``b`` play each opening with both colours; in 2048, each seed.

    >>> import chess_snn
    >>> match = chess_snn.play_match("minimax:2", "random", games=4, max_plies=60)
    >>> match.score, match.result.num_games
    (0.75, 4)

    Args:
        a: a player, or its name as :func:`chess_snn.player` takes it.
        b: its opponent.
        games: even; two of each opening.
        openings: ``book`` (the default in chess), ``random`` or ``random:6``, after 6 random plies;
            or a list of positions, each of which is played twice, whatever ``games`` is.
        seed: of openings, games and random players.
        max_plies: longer games are truncated; by default 200, and 100,000 in 2048.
        on_progress: called with games over and games in all.

    Raises:
        UsageError: the players play different games, or an argument is out of range.
        PositionError: an opening is malformed, impossible or over.
        EngineError: an engine does not start, or answers in no game.
    """
    with ExitStack() as owned:
        first, second = _opponents(a, b, owned)
        rules = first.rules
        limit = default_max_plies(rules.spec) if max_plies is None else max_plies
        default = "book" if rules.spec.num_players == 2 else "random"
        source = default if openings == "" else openings
        starts = _starts(rules, source, games, seed)
        num_games, start = 2 * len(starts), perf_counter()
        result = play_games(
            rules, first.seat(num_games), second.seat(num_games), starts, seed=seed,
            max_plies=limit, on_progress=on_progress,
        )
    settings = {
        "seed": seed, "max_plies": limit,
        "opening_source": source if isinstance(source, str) else "given",
    }
    facts = first.model.game_facts if first.model else {}, (
        second.model.game_facts if second.model else {}
    )
    return Match(result, settings, facts, perf_counter() - start)


def games_pgn(result: MatchResult, facts: tuple[Json, Json], seed: int) -> Iterator[str]:
    """Every game of ``result`` as PGN, with what is known of its players."""
    texts = match_pgn(
        get_game(result.spec.name), result, event=f"{result.player_a} against {result.player_b}",
        date=datetime.now(UTC).isoformat(), facts=facts, more={"Seed": str(seed)},
    )
    return (text for _, text in texts)


def _opponents(a: Player | str, b: Player | str, owned: ExitStack) -> tuple[Player, Player]:
    """Both players, of the same game; ``owned`` closes those that are made here."""
    games = {each.game for each in (a, b) if isinstance(each, Player)}
    if len(games) > 1:
        raise UsageError(
            f"{getattr(a, 'name', a)} and {getattr(b, 'name', b)} play different games, "
            f"{' and '.join(sorted(games))}; give players of one game"
        )
    game = next(iter(games), None) or game_of([each for each in (a, b) if isinstance(each, str)])
    first, second = (
        each if isinstance(each, Player) else owned.enter_context(player(each, game=game))
        for each in (a, b)
    )
    return first, second


def game_of(names: Sequence[str]) -> str:
    """The game of the first network among ``names`` of players; chess without one.

    Raises:
        UsageError: there is no such network.
    """
    for name in names:
        if not is_player_name(name):
            return find_model(name, simulations=0).game
    return DEFAULT_GAME


def _starts(rules: Game, source: str | Positions, games: int, seed: int) -> UInt64Array:
    """Openings as :func:`chess_snn.evaluation.matches.play_match` takes them."""
    if not isinstance(source, str):
        if rules.spec.num_players == 1:
            raise UsageError(f"matches of {rules.spec.name} begin at seeds; leave openings out")
        return read_positions(rules, source).state
    if games % 2:
        raise UsageError(
            f"games must be even, got {games}: each opening is played with both colours; use "
            f"{games + 1}"
        )
    found = _OPENINGS.fullmatch(source)
    if found is None:
        raise UsageError(f"openings must be book, random or random:N, got {source!r}")
    return choose_openings(
        rules, "book" if source == "book" else "random", games // 2,
        num_plies=int(found["plies"] or _OPENING_PLIES), seed=seed, setting="games",
    )
