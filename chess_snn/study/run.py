"""A study's work, part by part: each is kept when it is done, and found when the study goes on.

Time is measured with one game at a time, as a network is played with: the median over some games of
the network against itself. To compare networks in equal time, each gets as many simulations as take
it as long as the first one takes for the largest budget.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from statistics import median
from typing import Final

import numpy as np

from chess_snn import nets
from chess_snn.api.matches import player_of
from chess_snn.campaign.machine.training_launch import train_network
from chess_snn.campaign.models.model import Model
from chess_snn.data import read_json, sweep_temporaries, write_json
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.ladder.adaptive import LadderRating, rate_on_ladder
from chess_snn.evaluation.ladder.available import AvailablePlayers
from chess_snn.evaluation.ladder.ladder import Ladder
from chess_snn.evaluation.match_files import read_kept_match, write_match
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.matches import play_match
from chess_snn.evaluation.openings import book_openings
from chess_snn.evaluation.ratings.result import interval_text
from chess_snn.games import get_game
from chess_snn.search import MAX_SIMULATIONS
from chess_snn.self_play import AskedPositions, asked_positions
from chess_snn.study.cost import cost_facts
from chess_snn.study.plan import StudyPlan
from chess_snn.study.rating import RatingGames
from chess_snn.study.results import HeadToHead, Part, StudyResults
from chess_snn.study.variants import Variant
from chess_snn.training import WEIGHTS
from chess_snn.types import Json, LogFn, Progress

COST_GAMES: Final = 8
"""Timed one after another."""
COST_POSITIONS: Final = 256
"""Counted on."""
_COST_PLIES: Final = 40
"""Most of a timed game."""
_NEAR_ENOUGH: Final = 0.1
"""Relative error of an equal time."""
_MOST_TRIES: Final = 3

WorkBar = Callable[[str, str], AbstractContextManager[Progress]]
"""Shows the progress of one part: called with what is done, and in which unit."""


@dataclass(frozen=True, slots=True)
class StudyRun:
    """The one process that works on a study."""

    plan: StudyPlan
    ladder: Ladder
    available: AvailablePlayers
    """Rungs that can be played here."""
    engines: EngineSettings
    say: LogFn
    work_bar: WorkBar

    def run(self) -> StudyResults:
        """Do what is missing, and return all of it.

        Raises:
            UsageError: something cannot be written, or was made under other conditions.
            CorruptDataError: something that is there is damaged.
        """
        parts, matches = [], []
        self._sweep()
        for variant in self.plan.variants:
            self._train(variant)
            of_variant = self._parts(variant)
            parts += of_variant
            matches += self._matches(variant)
            for part in of_variant:
                (rated,) = self._rate([part])
                elo = rated.rating.elo
                self.say(
                    f"{part.model.name}: Elo {elo.value:.0f} "
                    f"({interval_text(elo.low, elo.high)}), "
                    f"{1000 * part.cost['seconds']['move']:.1f} ms a move"
                )
        return StudyResults(
            self.plan, self.ladder, tuple(parts), tuple(self._rate(parts)), tuple(matches)
        )

    def _rate(self, parts: Sequence[Part]) -> list[LadderRating]:
        played = {part.model.name: part.played for part in parts}
        return rate_on_ladder(self.ladder, played, self.available.approximate)

    def _train(self, variant: Variant) -> None:
        with self.work_bar(f"training {variant.name}", "steps") as on_progress:
            train_network(
                variant.training_config, self.plan.network(variant),
                num_threads=self.plan.threads, on_progress=on_progress,
            )

    def _parts(self, variant: Variant) -> list[Part]:
        request = self.plan.request
        equal = self._equal_simulations(variant) if self._has_equal_time else None
        budgets = [*request.simulations]
        if equal is not None and equal not in budgets:
            budgets.append(equal)
        return [
            Part(
                variant, model, simulations == equal, simulations in request.simulations,
                self._cost(variant, simulations), self._play(model),
            )
            for simulations in budgets
            for model in [self._model(variant, simulations)]
        ]

    @property
    def _has_equal_time(self) -> bool:
        """A policy without search has nothing to give up for time."""
        return self.plan.request.equal_time and max(self.plan.request.simulations) > 0

    def _play(self, model: Model) -> dict[str, list[MatchResult]]:
        request = self.plan.request
        games = RatingGames(
            self.plan.path / "ratings", model, self.ladder.max_plies, request.seed, self.engines
        )
        with self.work_bar(f"rating {model.name}", "games over") as on_progress:
            return games.play(
                self.ladder, self.available.players, request.rating_games,
                threads=self.plan.threads, device=request.device, on_progress=on_progress,
            )

    def _model(self, variant: Variant, simulations: int) -> Model:
        weights = self.plan.network(variant) / WEIGHTS
        return Model(
            variant.name, weights, "chess", config=variant.config, simulations=simulations
        )

    def _equal_simulations(self, variant: Variant) -> int:
        """Find the simulations that take as long as the largest budget of the first variant.

        Measurements on the way are kept, so the same number is found again.
        """
        largest, first = max(self.plan.request.simulations), self.plan.variants[0]
        target_s = self._cost(first, largest)["seconds"]["move"]
        tried: dict[int, float] = {}
        wanted = largest
        for _ in range(_MOST_TRIES):
            tried[wanted] = self._cost(variant, wanted)["seconds"]["move"]
            if abs(tried[wanted] / target_s - 1) < _NEAR_ENOUGH:
                break
            scaled = round(wanted * target_s / tried[wanted])
            wanted = min(max(scaled, 1), MAX_SIMULATIONS)
            if wanted in tried:
                break
        return min(tried, key=lambda number: abs(tried[number] / target_s - 1))

    def _cost(self, variant: Variant, simulations: int) -> Json:
        """Measure once a network's work with a budget, and how long that takes."""
        path = self.plan.path / "costs" / f"{variant.name}-at-{simulations}.json"
        if not path.exists():
            write_json(path, self._measure(self._model(variant, simulations)))
        return read_json(path)

    def _measure(self, model: Model) -> Json:
        game, request = get_game("chess"), self.plan.request
        network = model.load(game)
        with (
            nets.make_evaluator(
                network, device=request.device, precision=model.precision,
                num_threads=self.plan.threads,
            ) as evaluator,
            self.work_bar(f"timing {model.name}", "games") as on_progress,
        ):
            def play(number: int, plies: int) -> AskedPositions:
                return asked_positions(
                    game, evaluator, model.search, simulations=model.simulations, num_games=1,
                    num_positions=COST_POSITIONS // COST_GAMES, max_plies=plies,
                    seed=request.seed + number,
                )

            play(0, plies=2)  # compiles, and allocates
            games, seconds = [], []
            for number in range(COST_GAMES):
                start = time.perf_counter()
                games.append(play(number, _COST_PLIES))
                seconds.append((time.perf_counter() - start) / games[-1].moves)
                on_progress(number + 1, COST_GAMES)
        asked = AskedPositions(
            np.concatenate([each.planes for each in games]),
            sum(each.evaluations for each in games), sum(each.moves for each in games), len(games),
        )
        move_s = median(seconds)
        return cost_facts(network, asked) | {
            "parameters": network.num_parameters,
            "seconds": {
                "move": move_s, "move_least": min(seconds), "move_most": max(seconds),
                "evaluation": move_s / asked.evaluations_per_move,
            },
        }

    def _matches(self, variant: Variant) -> list[HeadToHead]:
        """Against the first variant, at each budget and in equal time."""
        request, first = self.plan.request, self.plan.variants[0]
        if not request.match_games or variant is first:
            return []
        pairings = {(budget, budget): False for budget in request.simulations}
        if self._has_equal_time:
            pairings[self._equal_simulations(variant), max(request.simulations)] = True
        return [
            HeadToHead(
                variant, own, firsts, is_equal, own == firsts,
                self._match(variant, own, first, firsts),
            )
            for (own, firsts), is_equal in pairings.items()
        ]

    def _match(
        self, variant: Variant, own: int, first: Variant, firsts: int
    ) -> MatchResult:
        game, request = get_game("chess"), self.plan.request
        models = self._model(variant, own), self._model(first, firsts)
        conditions = {
            "seed": request.seed, "max_plies": self.ladder.max_plies,
            "weights": [model.file_digest for model in models],
        }
        path = self.plan.path / "matches" / f"{variant.name}-at-{own}--first-at-{firsts}.json"
        if (kept := read_kept_match(game, path, conditions)) is not None:
            return kept
        with (
            player_of(models[0], device=request.device, threads=self.plan.threads) as a,
            player_of(models[1], device=request.device, threads=self.plan.threads) as b,
            self.work_bar(f"{a.name} against {b.name}", "games over") as bar,
        ):
            result = play_match(
                game, a.seat(request.match_games), b.seat(request.match_games),
                book_openings(game, request.match_games // 2, request.seed),
                seed=request.seed, max_plies=self.ladder.max_plies, on_progress=bar,
            )
        write_match(path, result, conditions)
        return result

    def _sweep(self) -> None:
        """Remove what a killed run left half-written."""
        for folder in (self.plan.path, *self.plan.path.iterdir()):
            if folder.is_dir():
                sweep_temporaries(folder)
