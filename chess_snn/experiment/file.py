"""Files of experiments: what is compared, from which start, and with which budget.

::

    name = "batch size"
    question = "Do smaller batches learn more in the same time?"
    seeds = [1, 2, 3, 4]
    start = {preset = "cpu"}
    budget = {minutes = 10}

    [variants.baseline]

    [variants.small]
    "training.batch_size" = 128

    [judge]
    simulations = [64]
    games = 200

The first variant is the one that the others are compared with. Each variant and seed is a campaign,
or a network that is trained on a dataset.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from pydantic import Field
from pydantic_core import to_jsonable_python

from chess_snn.campaign import CampaignConfig, CampaignFolder, load_config, read_receipts
from chess_snn.campaign.configuration.loading import (
    Setting,
    changed_config,
    config_values,
    flat_values,
    read_toml,
)
from chess_snn.campaign.forking import fork_config
from chess_snn.campaign.machine.workers import config_here
from chess_snn.campaign.models.starting import find_start
from chess_snn.campaign.stages.dataset import fix_dataset
from chess_snn.campaign.store.plans import S_PER_HOUR
from chess_snn.errors import ConfigError
from chess_snn.known import BATCH_PAIRS, DEFAULT_GAME, MOST_GAMES
from chess_snn.search import MAX_SIMULATIONS
from chess_snn.settings import check_range, settings_class
from chess_snn.types import Json

_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}"
_MINUTES_PER_HOUR: Final = 60.0
_GROUPS: Final = ("start", "budget", "judge", "search")
_OWN: Final = ("name", "question", "seeds", "settings", "variants", *_GROUPS)


@settings_class("start")
class Start:
    """Where every run begins."""

    preset: str = "cpu"
    """Settings of all runs, which a fork does not need."""
    network: str = ""
    """Generation 0 of every run; empty begins with new weights."""
    fork: str = ""
    """Folder of a campaign that every run continues."""
    at: int = Field(default=0, ge=0)
    """The first iteration that a fork plays itself."""
    dataset: str = ""
    """Games to learn from: a campaign's folder, or `--out` of `games import` or `games label`."""

    def __post_init__(self) -> None:
        if sum(map(bool, (self.network, self.fork, self.dataset))) > 1:
            raise ConfigError("start has one of network, fork and dataset; leave out the others")


@settings_class("budget")
class Budget:
    """How long a run lasts: minutes, games, or epochs of a dataset."""

    minutes: float = Field(default=0.0, ge=0, le=1_000_000)
    """Running time of a campaign."""
    games: int = Field(default=0, ge=0)
    """Games of self-play, whole iterations of them."""
    epochs: int = Field(default=0, ge=0, le=10_000)
    """Passes over the dataset."""
    cores: int = Field(default=1, ge=1, le=1024)
    """Cores of a run; others run beside it on the other cores. With GPUs, each run has one."""

    def __post_init__(self) -> None:
        if sum(map(bool, (self.minutes, self.games, self.epochs))) != 1:
            raise ConfigError("budget has one of minutes, games and epochs; give one above 0")


@settings_class("judge")
class Judge:
    """How variants are compared."""

    simulations: tuple[int, ...] = Field(default=(64,), min_length=1, strict=False)
    """Budgets of a move, in matches, ratings and costs; 0 plays without search."""
    games: int = Field(default=200, ge=0, le=MOST_GAMES)
    """Games of each variant against the first one with the same seed; 0 plays none."""
    rating_games: int = Field(default=0, ge=0, le=MOST_GAMES)
    """Games of each run on the ladder."""
    cost: bool = False
    """Whether work, modelled energy and time of a move are measured."""
    equal_time: bool = False
    """Whether variants are also judged with as many simulations as take them as long as the first
    one takes for the largest budget."""

    def __post_init__(self) -> None:
        for simulations in self.simulations:
            check_range("judge.simulations", simulations, ge=0, le=MAX_SIMULATIONS)
        for name in ("games", "rating_games"):
            if getattr(self, name) % 2:
                raise ConfigError(
                    f"judge.{name} must be even, got {getattr(self, name)}: each opening is played "
                    f"with both colours; use {getattr(self, name) + 1}"
                )
        if self.rating_games:
            check_range("judge.rating_games", self.rating_games, ge=2 * BATCH_PAIRS)
        if self.equal_time and not max(self.simulations):
            raise ConfigError("judge.equal_time needs a budget above 0 in judge.simulations")


@settings_class("search")
class Search:
    """Ranges of settings, in place of all variants but the first."""

    trials: int = Field(default=20, ge=1, le=100_000)
    """Number of settings that are tried, those that are ended early among them."""
    ranges: dict[str, Any] = Field(default_factory=dict)
    """By setting: a list of values, or `low` and `high`, which may be `log`."""


@settings_class("")
class Header:
    """The question, and its seeds."""

    name: str
    """A few words."""
    question: str = ""
    """A sentence."""
    seeds: tuple[int, ...] = Field(default=(1, 2, 3, 4), min_length=1, strict=False)
    """Seeds of the runs; all variants have each."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A checked file."""

    header: Header
    start: Start
    budget: Budget
    judge: Judge
    search: Search
    variants: dict[str, Json]
    """Settings by dotted name, of each variant; those of all are among them."""

    @property
    def first(self) -> str:
        """The variant that the others are compared with."""
        return next(iter(self.variants))

    def config(self, variant: str, seed: int) -> CampaignConfig:
        """The configuration of one run.

        Raises:
            ChessSnnError: a setting is wrong, the start is missing, or the budget does not fit.
        """
        settings: list[Setting] = [*self.variants[variant].items(), ("campaign.seed", seed)]
        start, budget = self.start, self.budget
        if start.dataset:
            if not budget.epochs:
                raise ConfigError("a dataset needs budget.epochs, in place of minutes or games")
            settings += [("supervised.games", start.dataset), ("supervised.epochs", budget.epochs)]
            config = load_config(start.preset, None, settings)
            dataset = fix_dataset(config.supervised, config.campaign.game)
            return replace(config, supervised=dataset)
        if budget.epochs:
            raise ConfigError("budget.epochs is for a dataset; give minutes or games")
        if start.fork:
            parent = CampaignFolder.open(Path(start.fork))
            return fork_config(parent, start.at, [
                *settings, *self._length(changed_config(parent.config, settings), parent),
            ])
        begin = find_start(start.network) if start.network else None
        load = begin.load_config if begin else load_config
        config = load(start.preset, None, settings)
        return config_here(partial(
            load, start.preset, None, [*settings, *self._length(config)]
        ))

    def _length(
        self, config: CampaignConfig, parent: CampaignFolder | None = None
    ) -> list[Setting]:
        """The settings of a campaign's length."""
        before = [] if parent is None else read_receipts(parent)[: self.start.at]
        if minutes := self.budget.minutes:
            elapsed_s = before[-1].elapsed_s if before else 0.0
            return [("campaign.hours", elapsed_s / S_PER_HOUR + minutes / _MINUTES_PER_HOUR)]
        each = config.self_play.games_per_iteration
        iterations, rest = divmod(self.budget.games, each)
        if rest or not iterations:
            raise ConfigError(
                f"budget.games = {self.budget.games} is no number of iterations of {each} games; "
                f"use {(iterations + 1) * each}"
            )
        return [("campaign.hours", 0.0), ("campaign.iterations", len(before) + iterations)]

    @property
    def num_runs(self) -> int:
        """Runs in all, those of trials among them."""
        trials = self.search.trials if self.search.ranges else 0
        return len(self.header.seeds) * (len(self.variants) + trials)

    def with_variant(self, name: str, settings: Json) -> "Experiment":
        """The experiment with one more variant, the first with other ``settings``."""
        return replace(self, variants=self.variants | {name: self.variants[self.first] | settings})

    def to_json(self) -> Json:
        """Everything that results depend on, by name."""
        values: Json = to_jsonable_python(asdict(self))
        if not self.search.ranges:
            del values["search"]
        return values


def read_experiment(path: Path) -> Experiment:
    """Read the file ``path`` and check all of it that needs no run.

    Raises:
        ConfigError: it is no TOML, a name is unknown, a value out of range, or variants are alike.
        ChessSnnError: the start is missing or damaged.
    """
    body = read_toml(path)
    if unknown := body.keys() - {*_OWN}:
        raise ConfigError(f"{path}: unknown {min(unknown)!r}; known: {', '.join(_OWN)}")
    header = Header(**{name: body[name] for name in ("name", "question", "seeds") if name in body})
    start, budget, judge, search = (
        owner(**_table(body, name))
        for name, owner in zip(_GROUPS, (Start, Budget, Judge, Search), strict=True)
    )
    common = flat_values(_table(body, "settings"))
    variants = {
        name: common | flat_values(_table(body.get("variants", {}), name))
        for name in _table(body, "variants")
    }
    _check_names(variants, header.seeds, search)
    experiment = Experiment(header, start, budget, judge, search, variants)
    if search.ranges and not judge.games:
        raise ConfigError("[search] compares by matches; give judge.games above 0")
    for name, given in search.ranges.items():
        for value in _ends(name, given):
            experiment.with_variant("trial", {name: value}).config("trial", header.seeds[0])
    configs = {name: experiment.config(name, header.seeds[0]) for name in variants}
    game = configs[experiment.first].campaign.game
    if judge.rating_games and game != DEFAULT_GAME:
        raise ConfigError(f"judge.rating_games needs a ladder, and {game} has none; leave it out")
    for (name, config), (other, same) in combinations(configs.items(), 2):
        if config_values(config) == config_values(same):
            raise ConfigError(f"variants {name} and {other} do not differ; change a setting of one")
    return experiment


def _ends(name: str, given: Any) -> list[Any]:
    """Values of a range that show whether the setting may have them."""
    if isinstance(given, list) and given:
        return given
    if isinstance(given, dict) and {"low", "high"} <= given.keys() <= {"low", "high", "log"}:
        return [given["low"], given["high"]]
    raise ConfigError(
        f"search.ranges.{name} = {given!r} is no range; give a list of values, or low and high"
    )


def _table(body: Mapping[str, Any], name: str) -> Json:
    value = body.get(name, {})
    if not isinstance(value, dict):
        raise ConfigError(f"{name} is a table, such as [{name}], got {value!r}")
    return value


def _check_names(variants: Mapping[str, Json], seeds: tuple[int, ...], search: Search) -> None:
    if search.ranges and len(variants) != 1:
        raise ConfigError("[search] has one variant beside it, with which trials are compared")
    if len(variants) < 2 and not search.ranges:
        raise ConfigError("an experiment has two variants or more: [variants.NAME]")
    for name in variants:
        if not re.fullmatch(_NAME, name):
            raise ConfigError(
                f"variant {name!r}: a name has up to 40 letters, digits and the characters _.-"
            )
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"seeds = {list(seeds)} has one twice; leave one out")


TEMPLATE: Final = '''\
name = "batch size"
question = "Do smaller batches learn more in the same time?"
seeds = [1, 2, 3, 4]                # a claim needs four
start = {preset = "smoke"}          # or {preset = "cpu", network = "shipped/chess-small"},
                                    # {fork = "campaigns/cpu-001", at = 14}, {dataset = "labels/"}
budget = {minutes = 1.5, cores = 1} # of each run; or games, or epochs of a dataset

[settings]                          # of all variants, as `--set` takes them
"self_play.games_per_iteration" = 64
"evaluation.every" = 1000           # no evaluation beside the judge's

[variants.baseline]                 # the first one is what others are compared with

[variants.small]
"training.batch_size" = 64

[judge]
simulations = [16]
games = 100                         # of each variant against the first one, for each seed
rating_games = 0                    # of each run on the ladder
cost = false                        # spikes, modelled energy and time of a move
'''
"""A file to begin with."""
