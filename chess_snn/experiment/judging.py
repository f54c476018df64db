"""An experiment from its file to its verdicts, part by part; a part that is done is kept.

::

    <out>/experiment.json              the file's content; another file is refused
    <out>/runs/NAME-SEED/              a campaign, or a network
    <out>/matches/, ratings/, costs/   the judge's work, a file each
    <out>/results.json, *.svg          what was found

Time is measured with one game at a time, as a network is played with: the median over some games of
the network against itself.
"""

import fcntl
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Final

from chess_snn import __version__, nets
from chess_snn.api.matches import play_match, player_of
from chess_snn.campaign.configuration.loading import first_difference
from chess_snn.campaign.models.model import Model
from chess_snn.cores import num_cores
from chess_snn.data import read_json, sweep_temporaries, utc_now, write_json
from chess_snn.data.formats import StoredFormat
from chess_snn.errors import UsageError
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.ladder.available import AvailablePlayers, available_players
from chess_snn.evaluation.ladder.ladder import read_ladder
from chess_snn.evaluation.match_files import read_kept_match, write_match
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.experiment.cost import cost_facts, measured_json
from chess_snn.experiment.file import Experiment
from chess_snn.experiment.rating import ENGINE_S, RatingGames
from chess_snn.experiment.runs import Run, RunOne, Slot, find_slots, run_all, run_on
from chess_snn.experiment.verdict import Verdict, over_seeds
from chess_snn.games import get_game
from chess_snn.joules import counters_if_installed
from chess_snn.search import MAX_SIMULATIONS
from chess_snn.self_play import AskedPositions, asked_positions
from chess_snn.types import Json, LogFn, Progress
from chess_snn.wording import counted

RESULTS: Final = "results.json"
FILE: Final = "experiment.json"
FORMAT: Final = StoredFormat("experiment", version=1)
COST_GAMES: Final = 8
"""Timed one after another."""
COST_POSITIONS: Final = 256
"""Counted on."""
_COST_PLIES: Final = 40
"""Most of a timed game."""
_NEAR_ENOUGH: Final = 0.1
"""Relative error of an equal time."""
_MOST_TRIES: Final = 3
_NORMAL: Final = 1.96

WorkBar = Callable[[str, str], AbstractContextManager[Progress]]
"""Shows the progress of one part: called with what is done, and in which unit."""


@dataclass(frozen=True, slots=True)
class Part:
    """One run with one budget of a move."""

    run: Run
    model: Model
    is_equal_time: bool
    """Whether its moves take as long as those of the first variant with the largest budget."""
    cost: Json | None
    """See :func:`chess_snn.experiment.cost.cost_facts`, and the seconds of a move and an
    evaluation."""
    played: dict[str, list[MatchResult]]
    """Its games on the ladder, by opponent; none where none were asked for."""


@dataclass(frozen=True, slots=True)
class HeadToHead:
    """A match of a run against the first variant with the same seed."""

    run: Run
    simulations: int
    first_simulations: int
    is_equal_time: bool
    result: MatchResult

    @property
    def difference(self) -> tuple[float, float]:
        """By how much it is better, with its standard error: score above one half, or points."""
        if self.result.is_solo:
            ahead = self.result.points_ahead()
            high = ahead["mean"] if ahead["high"] is None else ahead["high"]
            return ahead["mean"], (high - ahead["mean"]) / _NORMAL
        low, high = self.result.interval()
        return self.result.score - 0.5, (high - low) / (2 * _NORMAL)


@dataclass(frozen=True, slots=True)
class Question:
    """One variant against the first one, with one budget; the verdict is over seeds."""

    variant: str
    simulations: int
    """The first variant's, where both have as long."""
    is_equal_time: bool


@dataclass
class ExperimentRun:
    """The one process that works on an experiment."""

    experiment: Experiment
    out: Path
    say: LogFn
    work_bar: WorkBar
    until_decided: bool = False
    """Whether seeds are added one by one until every verdict is known."""
    race: bool = False
    """Whether variants that are worse get no more seeds."""
    run_one: RunOne = field(default_factory=lambda: run_on)
    """Does what is left of one run."""

    def __post_init__(self) -> None:
        if self.until_decided or self.race:
            if self.experiment.search.ranges:
                raise UsageError("[search] decides by itself; leave out --until-decided and --race")
            if not self.experiment.judge.games:
                raise UsageError(
                    "--until-decided and --race need matches; give judge.games above 0"
                )
        self.ladder = read_ladder()
        self.engines = EngineSettings(answer_s=ENGINE_S, start_s=ENGINE_S)
        self.runs: dict[tuple[str, int], Run] = {}
        self.parts: list[Part] = []
        self.matches: list[HeadToHead] = []

    @cached_property
    def available(self) -> AvailablePlayers:
        """Rungs that can be played here; engines are started to see it."""
        found = available_players(self.ladder, self.ladder.players, self.engines)
        if found.notice is not None:
            self.say(found.notice)
        return found

    def run(self) -> None:
        """Do what is missing, in a folder that :meth:`begin` has begun.

        Raises:
            UsageError: something cannot be written.
            CampaignError: a run failed.
            CorruptDataError: something that is there is damaged.
        """
        seeds = self.experiment.header.seeds
        one_by_one = self.until_decided or self.race
        variants = list(self.experiment.variants)
        for batch in [(seed,) for seed in seeds] if one_by_one else [seeds]:
            runs = self.make_all(variants, batch)
            self.finish(runs, find_slots(self.experiment, runs[0].config))
            for run in runs:
                self.judge(run)
            verdicts = self.verdicts()
            for question, verdict in verdicts.items():
                self.say(f"{question.variant}, {counted(verdict.num_seeds, 'seed')}: {verdict}")
            if self.race:
                worse = {q.variant for q, each in verdicts.items() if each.words == "worse"}
                variants = [name for name in variants if name not in worse]
            is_open = any(each.words == "not decided" for each in verdicts.values())
            if len(variants) == 1 or (self.until_decided and not is_open):
                break

    def make_all(self, variants: Sequence[str], seeds: Sequence[int]) -> list[Run]:
        """The runs of ``variants`` with ``seeds``; raises as :meth:`Experiment.config`.

        They come by seed: all variants of one share the load of the machine at the time.
        """
        return [self._make(variant, seed) for seed in seeds for variant in variants]

    def finish(
        self, runs: Sequence[Run], slots: Sequence[Slot], run_one: RunOne | None = None
    ) -> None:
        """Do what is left of ``runs``, by ``run_one`` in place of the experiment's own."""
        self.say(f"{counted(len(runs), 'run')}, {len(slots)} at a time")
        with self.work_bar(f"running {self.experiment.header.name}", "runs") as bar:
            run_all(runs, slots, self.say, bar, run_one or self.run_one)

    def judge(self, run: Run) -> list[HeadToHead]:
        """Play and measure what is missing of a finished run, and return its matches."""
        self.parts += self._parts(run)
        matches = self._matches(run)
        self.matches += matches
        return matches

    def verdicts(self) -> dict[Question, Verdict]:
        """The verdict on each variant so far, by budget."""
        looks = len(self.experiment.header.seeds) - 1 if self.until_decided or self.race else 1
        found: dict[Question, list[tuple[float, float]]] = {}
        for match in self.matches:
            question = Question(match.run.variant, match.first_simulations, match.is_equal_time)
            found.setdefault(question, []).append(match.difference)
        return {
            question: over_seeds(*zip(*pairs, strict=True), looks=max(looks, 1))
            for question, pairs in found.items()
        }

    @contextmanager
    def begin(self) -> Iterator[None]:
        """Be the only one at work in the folder, which is new or of the same file.

        Raises:
            UsageError: it holds something else, or another process works on it.
        """
        path, wanted = self.out / FILE, self.experiment.to_json()
        if not path.exists() and self.out.exists() and (
            not self.out.is_dir() or any(self.out.iterdir())
        ):
            raise UsageError(f"{self.out} exists, and holds no experiment; choose another --out")
        self.out.mkdir(parents=True, exist_ok=True)
        with (self.out / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"another process works on {self.out}; wait for it") from None
            if path.exists():
                body = read_json(path)
                FORMAT.check(body.get("schema"), path)
                if (difference := first_difference(body["experiment"], wanted)) is not None:
                    raise UsageError(
                        f"{self.out} is of an experiment with {difference}; choose another --out"
                    )
            else:
                write_json(path, {
                    "schema": FORMAT.version, "id": uuid.uuid4().hex, "version": __version__,
                    "created": utc_now(), "experiment": wanted,
                })
            for folder in (self.out, *self.out.iterdir()):
                if folder.is_dir():
                    sweep_temporaries(folder)  # of a killed process
            yield

    def _make(self, variant: str, seed: int) -> Run:
        if (variant, seed) not in self.runs:  # a configuration reads the start's files
            config = self.experiment.config(variant, seed)
            path = self.out / "runs" / f"{variant}-{seed}"
            self.runs[variant, seed] = Run(variant, seed, path, self.experiment.start, config)
        return self.runs[variant, seed]

    @property
    def seed(self) -> int:
        """Seed of openings and games."""
        return self.experiment.header.seeds[0]

    def _parts(self, run: Run) -> list[Part]:
        judge = self.experiment.judge
        if not (judge.cost or judge.rating_games):
            return []
        equal = self._equal_simulations(run) if judge.equal_time else None
        budgets = dict.fromkeys([*judge.simulations, *([] if equal is None else [equal])])
        return [
            Part(
                run, model, simulations == equal,
                self._cost(run, simulations) if judge.cost else None, self._play(model),
            )
            for simulations in budgets for model in [run.model(simulations)]
        ]

    def _play(self, model: Model) -> dict[str, list[MatchResult]]:
        number = self.experiment.judge.rating_games
        if not number:
            return {}
        games = RatingGames(
            self.out / "ratings", model, self.ladder.max_plies, self.seed, self.engines
        )
        with self.work_bar(f"rating {model.name}", "games over") as on_progress:
            return games.play(
                self.ladder, self.available.players, number, on_progress=on_progress
            )

    def _equal_simulations(self, run: Run) -> int:
        """Find the simulations that take as long as the largest budget of the first variant.

        Measurements on the way are kept, so the same number is found again.
        """
        largest = max(self.experiment.judge.simulations)
        first = self._make(self.experiment.first, run.seed)
        target_s = self._cost(first, largest)["seconds"]["move"]
        tried: dict[int, float] = {}
        wanted = largest
        for _ in range(_MOST_TRIES):
            tried[wanted] = self._cost(run, wanted)["seconds"]["move"]
            if abs(tried[wanted] / target_s - 1) < _NEAR_ENOUGH:
                break
            wanted = min(max(round(wanted * target_s / tried[wanted]), 1), MAX_SIMULATIONS)
            if wanted in tried:
                break
        return min(tried, key=lambda number: abs(tried[number] / target_s - 1))

    def _cost(self, run: Run, simulations: int) -> Json:
        """Measure once a network's work with a budget, and how long that takes."""
        path = self.out / "costs" / f"{run.name}-at-{simulations}.json"
        if not path.exists():
            write_json(path, self._measure(run.model(simulations), run.config.execution.device))
        return read_json(path)

    def _measure(self, model: Model, device: str) -> Json:
        game = get_game(model.game)
        network = model.load(game)
        with (
            nets.make_evaluator(
                network, device=device, precision=model.precision
            ) as evaluator,
            self.work_bar(f"timing {model.name}", "games") as on_progress,
        ):
            def play(number: int, plies: int) -> AskedPositions:
                return asked_positions(
                    game, evaluator, model.search, simulations=model.simulations, num_games=1,
                    num_positions=COST_POSITIONS // COST_GAMES, max_plies=plies,
                    seed=self.seed + number,
                )

            play(0, plies=2)  # compiles, and allocates
            energy = counters_if_installed()
            games, seconds = [], []
            for number in range(COST_GAMES):
                start = time.perf_counter()
                games.append(play(number, _COST_PLIES))
                seconds.append((time.perf_counter() - start) / games[-1].moves)
                on_progress(number + 1, COST_GAMES)
            joules = energy.lap() if energy is not None else None
        asked = AskedPositions.joined(games)
        move_s = median(seconds)
        return cost_facts(network, asked) | {
            "measured": None if joules is None else measured_json(joules, asked),
            "parameters": network.num_parameters, "threads": num_cores(),
            "seconds": {
                "move": move_s, "move_least": min(seconds), "move_most": max(seconds),
                "evaluation": move_s / asked.evaluations_per_move,
            },
        }

    def _matches(self, run: Run) -> list[HeadToHead]:
        """Against the first variant with the same seed, at each budget and in equal time."""
        judge, first = self.experiment.judge, self._make(self.experiment.first, run.seed)
        if not judge.games or run.variant == first.variant:
            return []
        pairings = [(budget, budget, False) for budget in judge.simulations]
        if judge.equal_time:
            pairings.append((self._equal_simulations(run), max(judge.simulations), True))
        return [
            HeadToHead(run, own, firsts, is_equal, self._match(run, own, first, firsts))
            for own, firsts, is_equal in pairings
        ]

    def _match(self, run: Run, own: int, first: Run, firsts: int) -> MatchResult:
        models, games = (run.model(own), first.model(firsts)), self.experiment.judge.games
        conditions = {
            "seed": run.seed, "games": games, "weights": [each.file_digest for each in models],
        }
        path = self.out / "matches" / f"{run.name}-at-{own}--{first.name}-at-{firsts}.json"
        kept = read_kept_match(get_game(models[0].game), path, conditions)
        if kept is not None:
            return kept
        device = run.config.execution.device
        with (
            player_of(models[0], device=device) as a, player_of(models[1], device=device) as b,
            self.work_bar(f"{a.name} against {b.name}", "games over") as bar,
        ):
            result = play_match(a, b, games=games, seed=run.seed, on_progress=bar).result
        write_match(path, result, conditions)
        return result
