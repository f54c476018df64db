"""All rounds of a soak, until its minutes are over."""

import importlib.metadata
import platform
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from chess_snn.cores import num_cores

from .audit import Twin
from .campaigns import RECIPES, Recipe
from .disk import campaign_disk
from .journal import Journal
from .mlflow_server import MlflowServer
from .processes import MARK, RunningCampaign, end_all, wait_until_gone
from .report import CampaignRecord, SoakReport, table_of_checks, table_of_faults
from .round import GONE_S, POLL_S, Round, Site
from .schedule import planned_faults

SECONDS_A_MINUTE = 60.0


class UndisturbedFailedError(Exception):
    """A campaign that nobody disturbed did not end well."""


@dataclass(slots=True)
class Soak:
    """One soak, from the making of its twins to its report."""

    minutes: float
    """Of faults; what is undisturbed comes on top."""
    seed: int
    out: Path
    journal: Journal
    _mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    _twins: dict[Recipe, Twin] = field(default_factory=dict)
    _deadline: float = 0.0

    def run(self) -> SoakReport:
        """Do all of it; nothing of it is left running, however it ends."""
        began = time.monotonic()
        with ExitStack() as stack:
            stack.callback(end_all, self._mark)
            disk = stack.enter_context(campaign_disk(self.out / "disk"))
            report = self._new_report(disk.description)
            # Also where it was interrupted: what was seen until then has been seen.
            stack.callback(self._finish_report, report, began)
            self.journal.say(f"seed {self.seed}; campaigns lie on {disk.description}")
            mlflow = MlflowServer(self.out / "mlflow")
            stack.callback(mlflow.stop)
            site = Site(self.out, self.journal, disk, mlflow, self._mark)
            self._deadline = time.monotonic() + SECONDS_A_MINUTE * self.minutes
            while not report.campaigns or not self._is_over():
                self._one_campaign(site, report)
        return report

    def _one_campaign(self, site: Site, report: SoakReport) -> None:
        number = len(report.campaigns)
        recipe = RECIPES[number % len(RECIPES)]
        twin = self._twin(recipe)
        site.mlflow.wait()
        record = CampaignRecord(number, recipe.name, self.journal.elapsed_s)
        report.campaigns.append(record)
        self.journal.say(f"campaign {number} ({recipe.name}) begins")
        planned = planned_faults(self.seed, number, in_ranks=bool(recipe.training_ranks))
        Round(site, recipe, self.seed, record, planned, self._is_over).run(twin)
        report.write(self.out)

    def _is_over(self) -> bool:
        return time.monotonic() >= self._deadline

    def _twin(self, recipe: Recipe) -> Twin:
        """The undisturbed campaign of a recipe; its time is not counted."""
        if recipe not in self._twins:
            began = time.monotonic()
            self.journal.say(f"the undisturbed twin of {recipe.name} begins")
            self._twins[recipe] = self._run_undisturbed(recipe)
            took = time.monotonic() - began
            self._deadline += took
            self.journal.say(f"the twin is finished after {took:.0f} s")
        return self._twins[recipe]

    def _run_undisturbed(self, recipe: Recipe) -> Twin:
        home = self.out / f"twin-{recipe.name}"
        directory, terminal = home / "campaign", home / "terminal.log"
        home.mkdir()
        campaign = RunningCampaign(
            ["start", "--dir", str(directory), *recipe.options(self.seed)], terminal,
            # A store of its own.
            {MARK: self._mark, "CHESS_SNN_HOME": str(directory)},
        )
        while (code := campaign.exit_code()) is None:
            self.journal.progress(f"the undisturbed twin of {recipe.name} runs")
            time.sleep(POLL_S)
        wait_until_gone(self._mark, GONE_S)
        if code:
            raise UndisturbedFailedError(f"it ended with code {code}; see {terminal}")
        return Twin.of(directory)

    def _new_report(self, disk: str) -> SoakReport:
        machine = (
            f"{platform.machine()}, {num_cores()} cores, {platform.system()}, "
            f"Python {platform.python_version()}"
        )
        version = importlib.metadata.version("chess-snn")
        return SoakReport(self.seed, self.minutes, machine, disk, version)

    def _finish_report(self, report: SoakReport, began: float) -> None:
        report.seconds = time.monotonic() - began
        report.write(self.out)
        self.journal.show(table_of_faults(report.faults))
        self.journal.show(table_of_checks(report.campaigns))
        self.journal.say(report.verdict())
