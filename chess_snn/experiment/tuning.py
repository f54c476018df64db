"""Search over settings: Optuna proposes trials, and each is a variant like any other.

A trial's value is its mean difference to the file's variant. One whose running figure is below the
median of the others, at the same share of the budget, is ended early. A journal in the folder
keeps what was proposed and found, so the same call goes on.
"""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from chess_snn.campaign import CampaignFolder, read_receipts
from chess_snn.campaign.store.plans import campaign_length
from chess_snn.campaign.store.receipts import num_finished_iterations
from chess_snn.errors import ConfigError
from chess_snn.experiment.judging import ExperimentRun
from chess_snn.experiment.runs import Run, Slot, find_slots
from chess_snn.extras import load_extra
from chess_snn.rng import derive_seed

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial, Trial

JOURNAL: Final = "trials.log"
_FIGURE: Final = "reference_policy_accuracy"
"""The running figure; without it, as in 2048 or on a dataset, no trial is ended early."""
_LOOKS: Final = 20
"""At the running figure, at equal shares of the budget."""
_FIRST_TRIALS: Final = 4
"""None of them is ended early."""


class Tuning:
    """The trials of one experiment, whose folder this process has begun to work in.

    Raises:
        ExtraError: Optuna is not installed.
        ConfigError: a range is none.
    """

    def __init__(self, work: ExperimentRun) -> None:
        self._work, self._optuna = work, load_extra("optuna", "tune")
        self._states = load_extra("optuna.trial", "tune").TrialState
        search = work.experiment.search
        self._ranges = {
            name: self._distribution(name, given) for name, given in search.ranges.items()
        }
        self._optuna.logging.set_verbosity(self._optuna.logging.WARNING)
        storages = load_extra("optuna.storages.journal", "tune")
        self._study = self._optuna.create_study(
            study_name=work.experiment.header.name, load_if_exists=True, direction="maximize",
            storage=self._optuna.storages.JournalStorage(
                storages.JournalFileBackend(str(work.out / JOURNAL))
            ),
            pruner=self._optuna.pruners.MedianPruner(n_startup_trials=_FIRST_TRIALS),
        )

    def run(self) -> None:
        """Run the trials that are missing, and judge all that were not ended early."""
        work = self._work
        firsts = work.make_all([work.experiment.first], work.experiment.header.seeds)
        slots = find_slots(work.experiment, firsts[0].config)
        side_by_side = max(1, len(slots) // len(firsts))
        work.finish(firsts, slots)
        for trial in self._study.get_trials(states=(self._states.COMPLETE,)):
            self._judge(self._runs_of(trial))
        while trials := self._next(side_by_side):
            self._run(trials, slots)
        best = self._study.best_trial
        work.say(
            f"The best is {_name(best)}, by {best.value:+.3f}: {best.params}. It was chosen by "
            "these games, which flatter it; compare it again, with other seeds."
        )

    def _distribution(self, name: str, given: Any) -> Any:
        kinds = self._optuna.distributions
        if isinstance(given, list):
            return kinds.CategoricalDistribution(given)
        whole = isinstance(given["low"], int) and isinstance(given["high"], int)
        try:
            return (kinds.IntDistribution if whole else kinds.FloatDistribution)(**given)
        except ValueError as error:
            raise ConfigError(f"search.ranges.{name} = {given} is no range: {error}") from error

    def _next(self, number: int) -> list["Trial"]:
        """As many trials: those that a killed process began, then new ones while there are any."""
        begun = self._study.get_trials(states=(self._states.RUNNING,))
        trials = [self._optuna.trial.Trial(self._study, trial._trial_id) for trial in begun]
        while len(trials) < number:
            asked = len(self._study.get_trials())
            if asked >= self._work.experiment.search.trials:
                break
            # The state of a sampler is not kept, so each proposal has a seed of its own.
            self._study.sampler = self._optuna.samplers.TPESampler(
                seed=derive_seed(0, "trial", asked) % 2**32
            )
            trials.append(self._study.ask(self._ranges))
        return trials

    def _runs_of(self, trial: "Trial | FrozenTrial") -> list[Run]:
        work = self._work
        work.experiment = work.experiment.with_variant(_name(trial), trial.params)
        return work.make_all([_name(trial)], work.experiment.header.seeds)

    def _run(self, trials: Sequence["Trial"], slots: Sequence[Slot]) -> None:
        """Run ``trials`` side by side, judge them, and tell Optuna."""
        work = self._work
        runs = {trial: self._runs_of(trial) for trial in trials}
        looks = {run.path: look for trial, own in runs.items()
                 for look in [_Look(trial, own[0])] for run in own}

        def run_one(run: Run, slot: Slot, should_stop: Callable[[], bool]) -> None:
            work.run_one(run, slot, lambda: should_stop() or looks[run.path].is_hopeless(run))

        for trial in trials:
            work.say(f"{_name(trial)}: {trial.params}")
        work.finish([run for own in runs.values() for run in own], slots, run_one)
        for trial, own in runs.items():
            if all(run.is_finished for run in own):
                self._study.tell(trial, self._judge(own))
                continue
            work.say(f"{_name(trial)} was ended early")
            self._study.tell(trial, state=self._states.PRUNED)
            for run in own:
                del work.runs[run.variant, run.seed]

    def _judge(self, runs: Sequence[Run]) -> float:
        """Return the mean difference to the file's variant, at the largest budget."""
        largest = max(self._work.experiment.judge.simulations)
        return fmean(
            match.difference[0] for run in runs for match in self._work.judge(run)
            if match.first_simulations == largest and not match.is_equal_time
        )


class _Look:
    """A look at the running figure of a trial's first seed, at equal shares of the budget."""

    def __init__(self, trial: "Trial", first: Run) -> None:
        self._trial, self._first = trial, first
        self._seen, self._is_hopeless = 0, False
        self._folder: CampaignFolder | None = None  # opened once, and asked many times a second

    def is_hopeless(self, run: Run) -> bool:
        """Whether the trial should end; each of its runs asks again and again."""
        if run is self._first and not run.start.dataset:
            folder = self._folder = self._folder or CampaignFolder.open(run.path)
            if (seen := num_finished_iterations(folder)) > self._seen:
                self._seen = seen
                share = read_receipts(folder)[-1].share_of(campaign_length(folder))
                figure = run.figures()[_FIGURE]
                if figure is not None and share < 1:
                    self._trial.report(figure, int(_LOOKS * share))
                    self._is_hopeless = bool(self._trial.should_prune())
        return self._is_hopeless


def _name(trial: "Trial | FrozenTrial") -> str:
    return f"trial-{trial.number}"
