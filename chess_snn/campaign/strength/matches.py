"""The matches of a campaign, played part by part, and their results.

A match of many openings is played in parts, so that all workers have something to do. What is in a
part does not depend on who plays it; a part lies beside its match until all of them are there.
"""

from collections.abc import Hashable
from functools import partial
from pathlib import Path
from typing import Final

from chess_snn.campaign.stages.networks import evaluator_of, game_of
from chess_snn.campaign.store.folder import PART_MARK, CampaignFolder
from chess_snn.campaign.store.generations import read_generation
from chess_snn.campaign.store.match_facts import MatchFacts
from chess_snn.campaign.store.plans import next_plan
from chess_snn.campaign.store.receipts import num_finished_iterations, recorded_seconds
from chess_snn.campaign.store.typed_json import from_json
from chess_snn.campaign.strength.match_schedule import (
    LADDER_TEST,
    ScheduledMatch,
    final_matches,
    player_name,
)
from chess_snn.data import utc_now
from chess_snn.errors import CampaignError, CorruptDataError, UsageError
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.match_files import read_match_body, write_match
from chess_snn.evaluation.match_result import DETAILS, MatchResult, identities_of
from chess_snn.evaluation.matches import paired_games, play_match, report_after
from chess_snn.evaluation.named_players import make_player
from chess_snn.evaluation.openings import OPENING_PLIES, choose_openings
from chess_snn.evaluation.players import Player, SearchPlayer
from chess_snn.evaluation.solo import SoloGames, play_seeds
from chess_snn.failpoints import failpoint
from chess_snn.rng import derive_seed
from chess_snn.search import make_search
from chess_snn.types import Progress, UInt64Array

_BESIDE_FACTS = ("created", "facts_a", "facts_b", *DETAILS)

_MOST_GAMES_KEPT: Final = 4
"""Parts whose games in a game of one player are kept in memory."""
_games_kept: dict[Hashable, tuple[str, SoloGames]] = {}


def unplayed_parts(folder: CampaignFolder, match: ScheduledMatch) -> list[int]:
    """Return the parts of ``match`` that are still to be played."""
    if folder.match(match.event, match.name).exists():
        return []
    return [
        part for part in range(len(match.parts))
        if not folder.match_part(match.event, match.name, part).exists()
    ]


def play_match_part(
    directory: Path, match: ScheduledMatch, part: int, *, num_threads: int = 1,
    on_progress: Progress | None = None,
) -> None:
    """Play one part of ``match`` and keep it; one that is there already is left as it is."""
    folder = CampaignFolder.open(directory)
    path, openings = folder.match_part(match.event, match.name, part), match.parts[part]
    if path.exists():
        return
    game, settings = game_of(folder), folder.config.evaluation
    seed = derive_seed(folder.config.campaign.seed, *match.seed_path)
    states = choose_openings(
        game, settings.openings, openings.stop, num_plies=OPENING_PLIES, seed=seed,
        setting=f"match {match.event}/{match.name}",
    )[openings.start :]
    if game.spec.num_players == 1:
        side_a, side_b = (
            _games_alone(
                folder, player, match.simulations, states, num_threads,
                on_progress and partial(report_after, on_progress, before, 2 * len(states)),
            )
            for player, before in ((match.generation, 0), (match.opponent, len(states)))
        )
        result = paired_games(game, states, side_a, side_b)
    else:
        player, opponent = players_of(folder, match, 2 * len(openings), num_threads=num_threads)
        result = play_match(
            game, player, opponent, states,
            seed=derive_seed(seed, "part", part), max_plies=settings.max_plies,
            on_progress=on_progress,
        )
    failpoint("match.played")
    write_match(path, result)


def _games_alone(
    folder: CampaignFolder, player: int | str, simulations: int, seeds: UInt64Array,
    num_threads: int, on_progress: Progress | None,
) -> tuple[str, SoloGames]:
    """Name and games of one player; those it played last are kept for its other matches."""
    digest = (
        "" if isinstance(player, str)
        else str(read_generation(folder, player).meta["weights_digest"])
    )
    name = player_name(player, simulations)
    key = (folder.path, digest, name, seeds.tobytes(), num_threads)
    if key not in _games_kept:
        alone = _take_seat(folder, player, simulations, len(seeds), num_threads)
        games = play_seeds(
            game_of(folder), alone, seeds, max_plies=folder.config.evaluation.max_plies,
            on_progress=on_progress,
        )
        while len(_games_kept) >= _MOST_GAMES_KEPT:
            _games_kept.pop(next(iter(_games_kept)))
        _games_kept[key] = alone.name, games
    elif on_progress is not None:
        on_progress(len(seeds), len(seeds))
    return _games_kept[key]


def players_of(
    folder: CampaignFolder, match: ScheduledMatch, num_games: int, *, num_threads: int
) -> tuple[Player, Player]:
    """Both players of ``match``, for ``num_games`` at once."""
    player, opponent = (
        _take_seat(folder, each, match.simulations, num_games, num_threads)
        for each in (match.generation, match.opponent)
    )
    return player, opponent


def _take_seat(
    folder: CampaignFolder, player: int | str, simulations: int, num_games: int, num_threads: int
) -> Player:
    if isinstance(player, str):
        return make_player(game_of(folder), player, EngineSettings(processes=num_threads))
    evaluator = evaluator_of(folder, player, num_threads=num_threads)
    search = make_search(
        game_of(folder), evaluator, folder.config.search,
        simulations=simulations, num_games=num_games, in_play=True, keeps_trees=True,
    )
    return SearchPlayer(search, player_name(player, simulations))


def finish_match(directory: Path, match: ScheduledMatch) -> MatchFacts:
    """Put the parts of ``match`` together, all of which are played."""
    folder = CampaignFolder.open(directory)
    path = folder.match(match.event, match.name)
    parts = [folder.match_part(match.event, match.name, k) for k in range(len(match.parts))]
    if not path.exists():
        facts_a, facts_b = (
            {} if isinstance(player, str)
            else {"generation": player, "simulations": match.simulations}
            for player in (match.generation, match.opponent)
        )
        write_match(path, _put_together(folder, match, parts), {
            "name": match.name,
            "created": utc_now(),
            "facts_a": facts_a,
            "facts_b": facts_b,
        })
        failpoint("match.joined")
    for part in parts:
        part.unlink(missing_ok=True)
    return _read_facts(path)


def read_final_matches(folder: CampaignFolder) -> list[MatchFacts]:
    """Read the matches at the campaign's end; none before all of them are played."""
    return [_read_facts(path) for path in _final_paths(folder)]


def readable_final_matches(folder: CampaignFolder) -> tuple[list[MatchFacts], list[str]]:
    """Read as :func:`read_final_matches`, with a line for each match that cannot be read."""
    matches, faults = list[MatchFacts](), list[str]()
    for path in _final_paths(folder):
        try:
            matches.append(_read_facts(path))
        except CorruptDataError as error:
            faults.append(f"A match at the end of the campaign cannot be shown: {error}.")
    return matches, faults


def _final_paths(folder: CampaignFolder) -> list[Path]:
    """Files of the matches at the campaign's end; none before all are there."""
    paths = [folder.match(match.event, match.name) for match in final_matches(folder)]
    return paths if all(path.exists() for path in paths) else []


def is_finished(folder: CampaignFolder) -> bool:
    """Return whether every iteration has its receipt and the last matches are played.

    Raises:
        CorruptDataError: a receipt or plan is corrupt.
    """
    following = num_finished_iterations(folder)
    if folder.plan(following).exists():
        return False
    if next_plan(folder, following, recorded_seconds(folder)) is not None:
        return False
    return all(folder.match(m.event, m.name).exists() for m in final_matches(folder))


def _read_facts(path: Path) -> MatchFacts:
    body = {
        name: value for name, value in read_match_body(path).items() if name not in _BESIDE_FACTS
    }
    try:
        return from_json(MatchFacts, body)
    except ValueError as error:
        raise CorruptDataError(
            f"{path} is not a match ({error}); delete it, so that it is played again"
        ) from error


def _put_together(folder: CampaignFolder, match: ScheduledMatch, parts: list[Path]) -> MatchResult:
    """One result from the files of all parts, in which each engine was of one version."""
    # A ladder test chose its batches by earlier results, so all of it is played again.
    files = (
        f"whose names begin with {LADDER_TEST}" if match.name.startswith(LADDER_TEST)
        else f"with {PART_MARK} in their names"
    )
    hint = f"delete the files {files} beside it, so that all of it is played again"
    results = []
    for part in parts:
        try:
            results.append(MatchResult.from_json(game_of(folder).spec, read_match_body(part)))
        except CorruptDataError as error:
            raise CorruptDataError(f"{part}: {error}; {hint}") from error
    try:
        identities_of(results)
    except UsageError as error:
        raise CampaignError(f"in match {match.event}/{match.name} {error}; {hint}") from error
    return MatchResult.joined(results)
