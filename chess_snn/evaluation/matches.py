"""Plays a match: all its games at once, the two players in turns.

A player moves in every game in which it is to move. After its first turn that is every game that
goes on, so a search gets all of them in one batch.

A player that is another program may fail. Where it makes no legal move it loses the game; where it
does not answer the game is void and does not count.

Dimensions: n games of the match, G of them still going on, W words a state row.
"""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np

from chess_snn.errors import ConfigError, EngineError
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.openings import opening_keys
from chess_snn.evaluation.played_moves import MoveLog
from chess_snn.evaluation.players import FORFEIT, VOID, Player, choose_legal, program_of
from chess_snn.evaluation.solo import SoloGames, play_seeds, seed_keys
from chess_snn.games.base import NO_ACTION, ONGOING, Game, GameBatch, GameSpec
from chess_snn.known import MOST_PLIES
from chess_snn.rng import generator
from chess_snn.settings import check_range
from chess_snn.types import BoolArray, Int16Array, Int64Array, Progress, UInt64Array

DEFAULT_MAX_PLIES = 200
"""Half-moves after which a game of two players is truncated."""

_SEAT_A, _SEAT_B = 0, 1


def play_match(
    game: Game,
    player_a: Player,
    player_b: Player,
    openings: UInt64Array,
    *,
    seed: int,
    max_plies: int = DEFAULT_MAX_PLIES,
    on_progress: Progress | None = None,
) -> MatchResult:
    """Play every opening twice, once with each player as white.

    In a game of one player both play every seed instead: see
    :func:`chess_snn.evaluation.solo.play_seeds`.

    A player's random stream in a game depends on ``seed``, its name, the opening and its colour
    alone: neither on the opponent nor on being named first, so swapping a and b plays the same
    games.

    Args:
        game: that is played.
        player_a: whose score it is.
        player_b: the opponent.
        openings: uint64[n / 2, W], states of games that have not ended; in a game of one player
            uint64[n / 2], see :func:`chess_snn.evaluation.solo.match_seeds`.
        seed: of all random streams; in a game of one player they follow from ``openings``.
        max_plies: a game is truncated after this many half-moves and, with two players, scored as a
            draw.
        on_progress: called after every turn with games finished and games in all.

    Raises:
        ConfigError: the game, the names, the openings or ``max_plies`` cannot make a match.
        IllegalMoveError: a player of ours chose an action that is not legal.
        EngineError: an engine does not start, or all games are void.
    """
    check_range("evaluation.max_plies", max_plies, ge=1)
    if player_a.name == player_b.name:
        raise ConfigError(
            f"both players of the match are named {player_a.name!r}; give one another name"
        )
    if game.spec.num_players == 1:
        return _play_alone(game, player_a, player_b, openings, max_plies, on_progress)
    batch = _start(game, openings)
    result, log = _unplayed(game, player_a, player_b, openings), MoveLog()
    keys = _stream_keys(result, seed)
    live = np.arange(result.num_games)
    for seat in itertools.cycle((_SEAT_A, _SEAT_B)):
        player = (player_a, player_b)[seat]
        a_to_move = (game.side_to_move(batch.state) == 0) == result.a_is_white[live]
        rows = np.flatnonzero(a_to_move == (seat == _SEAT_A))
        games = live[rows]
        actions = np.full(len(live), NO_ACTION, dtype=np.int16)
        actions[rows] = choose_legal(
            game, player, batch.take(rows), keys[seat, games], result.plies[games]
        )
        is_played = actions[rows] >= 0
        log.add(games[is_played], actions[rows][is_played])
        game.step(batch, actions)
        result.plies[games[is_played]] += 1
        _record_ended(result, batch, live, seat)
        is_broken_off = _record_broken_off(result, actions, live, seat)
        goes_on = np.flatnonzero(
            (batch.num_legal > 0) & (result.plies[live] < max_plies) & ~is_broken_off
        )
        if len(goes_on) < len(live):
            batch, live = batch.take(goes_on), live[goes_on]
        if on_progress is not None:
            on_progress(result.num_games - len(live), result.num_games)
        if not len(live):
            break
    result = replace(result, actions=log.by_game(result.plies))
    return _with_programs(result, player_a, player_b)


def default_max_plies(spec: GameSpec) -> int:
    """Plies after which a game is truncated by default."""
    return MOST_PLIES if spec.num_players == 1 else DEFAULT_MAX_PLIES


def _play_alone(
    game: Game, player_a: Player, player_b: Player, seeds: UInt64Array, max_plies: int,
    on_progress: Progress | None,
) -> MatchResult:
    """Each player's games on ``seeds`` uint64[n / 2]."""
    a, b = (
        play_seeds(
            game, player, seeds, max_plies=max_plies,
            on_progress=on_progress and partial(report_after, on_progress, before, 2 * len(seeds)),
        )
        for player, before in ((player_a, 0), (player_b, len(seeds)))
    )
    return paired_games(game, seeds, (player_a.name, a), (player_b.name, b))


def paired_games(
    game: Game, seeds: UInt64Array, side_a: tuple[str, SoloGames], side_b: tuple[str, SoloGames]
) -> MatchResult:
    """The match of two players, by name and games, on ``seeds`` uint64[n / 2]."""
    (name_a, a), (name_b, b) = side_a, side_b
    pick = np.arange(2 * len(seeds)).reshape(2, -1).T.ravel()  # a's game 0, b's game 0, a's game 1
    plies = np.concatenate([a.plies, b.plies])
    actions = np.split(np.concatenate([a.actions, b.actions]), np.cumsum(plies)[:-1])
    return MatchResult(
        spec=game.spec, player_a=name_a, player_b=name_b,
        opening_keys=seed_keys(seeds),
        opening_positions=tuple(game.format_state(s) for s in game.initial_states(seeds)),
        scores_a=np.repeat(0.5 + 0.5 * np.sign(a.points - b.points), 2).astype(np.float32),
        terminations=np.concatenate([a.terminations, b.terminations])[pick],
        plies=plies[pick],
        actions=np.concatenate([actions[number] for number in pick]),
        points=np.concatenate([a.points, b.points])[pick],
        milestones=np.concatenate([a.milestones, b.milestones])[pick],
        seconds=(a.seconds, b.seconds),
    )


def report_after(on_progress: Progress, before: int, num_games: int, done: int, _: int) -> None:
    """Report ``done`` games of one player after ``before`` games of the other."""
    on_progress(before + done, num_games)


def _start(game: Game, openings: UInt64Array) -> GameBatch:
    """Every opening twice in a row, in a fresh batch."""
    check_range("evaluation.num_openings", len(openings), ge=1)
    num_games = 2 * len(openings)
    batch = game.allocate(num_games)
    game.reset(batch, np.arange(num_games), np.repeat(openings, 2, axis=0))
    ended = np.flatnonzero(batch.num_legal == 0)
    if len(ended):
        text = game.format_state(batch.state[ended[0]])
        raise ConfigError(f"opening {ended[0] // 2} has already ended: {text!r}; leave it out")
    return batch


def _unplayed(
    game: Game, player_a: Player, player_b: Player, openings: UInt64Array
) -> MatchResult:
    """The result before the first ply, scored as if every game were truncated."""
    num_games = 2 * len(openings)
    return MatchResult(
        spec=game.spec,
        player_a=player_a.name,
        player_b=player_b.name,
        opening_keys=opening_keys(game, openings),
        opening_positions=tuple(game.format_state(state) for state in openings),
        scores_a=np.full(num_games, 0.5, dtype=np.float32),
        terminations=np.full(num_games, ONGOING, dtype=np.uint8),
        plies=np.zeros(num_games, dtype=np.int32),
        actions=np.empty(0, dtype=np.int16),
    )


def _stream_keys(result: MatchResult, seed: int) -> UInt64Array:
    """uint64[2, n]: the random stream of each seat in each game."""
    keys = np.empty((2, result.num_games), dtype=np.uint64)
    for seat, name in ((_SEAT_A, result.player_a), (_SEAT_B, result.player_b)):
        stream = generator(seed, "match", name)
        # Each opening has the stream with black, then that with white.
        by_colour = stream.integers(0, 2**64, size=(result.num_games // 2, 2), dtype=np.uint64)
        keys[seat] = (by_colour[:, ::-1] if seat == _SEAT_A else by_colour).ravel()
    return keys


def _record_ended(result: MatchResult, batch: GameBatch, live: Int64Array, mover: int) -> None:
    """Write the rows of ``batch`` that ``mover``'s turn ended into their games, ``live[row]``."""
    ended = batch.num_legal == 0
    reward_a = batch.reward[ended] if mover == _SEAT_A else -batch.reward[ended]
    result.scores_a[live[ended]] = 0.5 + 0.5 * reward_a
    result.terminations[live[ended]] = batch.termination[ended]


def _record_broken_off(
    result: MatchResult, actions: Int16Array, live: Int64Array, mover: int
) -> BoolArray:
    """Score the games ``live[row]`` that ``mover`` did not go on with; bool[G], which they are."""
    is_forfeit: BoolArray = actions == FORFEIT
    is_void: BoolArray = actions == VOID
    result.scores_a[live[is_forfeit]] = 0.0 if mover == _SEAT_A else 1.0
    result.scores_a[live[is_void]] = np.nan
    return is_forfeit | is_void


def _with_programs(result: MatchResult, *players: Player) -> MatchResult:
    programs = {
        player.name: facts for player in players if (facts := program_of(player)) is not None
    }
    if not result.num_scored:
        faults = "; ".join(
            f"{name} ({facts.identity}) {facts.last_failure}"
            for name, facts in programs.items() if facts.last_failure is not None
        )
        raise EngineError(f"no game could be finished, all {result.num_games} are void: {faults}")
    return replace(result, programs=programs)
