"""``python -m tests.soak``: see docs/reliability.md."""

import argparse
import os
import platform
import signal
import sys
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from chess_snn.cores import num_cores

from . import __doc__ as description
from .campaign import GONE_S, POLL_S, RANKS, DisturbedCampaign, Site, start_arguments
from .faults import campaign_disk, planned_faults
from .processes import MARK, MlflowServer, RunningCampaign, end_all, wait_until_gone
from .report import LOG, REPORT, CampaignRecord, Journal, SoakReport

EXIT_LOST, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 1, 2, 130


class UndisturbedFailedError(Exception):
    """A campaign without faults did not end well."""


@dataclass(slots=True)
class Soak:
    """All campaigns of one soak."""

    site: Site
    report: SoakReport
    _references: dict[str, Path] = field(default_factory=dict)
    _deadline: float = 0.0

    def run(self) -> None:
        """Disturb one campaign after the other, until the minutes are over."""
        self._deadline = time.monotonic() + 60.0 * self.report.minutes
        while not self.report.campaigns or not self._is_over():
            number, seed = len(self.report.campaigns), self.report.seed
            recipe = list(RANKS)[number % len(RANKS)]
            reference = self._reference(recipe)
            self.site.mlflow.wait()
            record = CampaignRecord(number, recipe)
            self.report.campaigns.append(record)
            self.site.journal.say(f"campaign {number} ({recipe}) begins")
            planned = planned_faults(seed, number, RANKS[recipe] > 0, self.site.has_disk)
            DisturbedCampaign(self.site, record, planned, self._is_over).run(seed, reference)
            self.report.write(self.site.out)

    def _is_over(self) -> bool:
        return time.monotonic() >= self._deadline

    def _reference(self, recipe: str) -> Path:
        """The undisturbed campaign of a recipe; its time is not counted."""
        if recipe not in self._references:
            began = time.monotonic()
            self._references[recipe] = self._run_undisturbed(recipe)
            self._deadline += time.monotonic() - began
        return self._references[recipe]

    def _run_undisturbed(self, recipe: str) -> Path:
        home = self.site.out / f"reference-{recipe}"
        directory, terminal = home / "campaign", home / "terminal.log"
        home.mkdir()
        campaign = RunningCampaign(
            start_arguments(directory, recipe, self.report.seed), terminal,
            {MARK: self.site.mark, "CHESS_SNN_HOME": str(directory)},  # a tracking store of its own
        )
        while (code := campaign.exit_code()) is None:
            self.site.journal.progress(f"the undisturbed reference of {recipe} runs")
            time.sleep(POLL_S)
        wait_until_gone(self.site.mark, GONE_S)
        if code:
            raise UndisturbedFailedError(f"it ended with code {code}; see {terminal}")
        return directory


def soak(minutes: float, seed: int, out: Path) -> SoakReport:
    """Do all of it; nothing of it is left running, however it ends."""
    journal, began, mark = Journal(out), time.monotonic(), uuid.uuid4().hex
    with ExitStack() as stack:
        stack.callback(end_all, mark)
        has_disk = stack.enter_context(campaign_disk(out / "disk"))
        machine = f"{platform.platform()}, {num_cores()} cores, Python {platform.python_version()}"
        report = SoakReport(seed, minutes, machine, has_disk)

        def finish_report() -> None:
            report.seconds = time.monotonic() - began
            report.write(out)
            journal.say(report.verdict())
            journal.say(f"log: {out / LOG}; report: {out / REPORT}")

        stack.callback(finish_report)  # also after Ctrl-C
        mlflow = MlflowServer(out / "mlflow")
        stack.callback(mlflow.kill)
        journal.say(f"seed {seed}; {'' if has_disk else 'without root, so '}the disk is "
                    f"{'filled too' if has_disk else 'not filled'}")
        Soak(Site(out, journal, out / "disk", has_disk, mlflow, mark), report).run()
    return report


def main() -> int:
    """Soak; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit code 0: faults were injected and nothing was lost. 1: something was lost, or "
               "nothing injected. 2: it could not begin. 130: it was interrupted.",
    )
    parser.add_argument("--minutes", type=float, default=30.0,
                        help="how long faults are injected; the undisturbed references and the end "
                             "of the last campaign come on top (default %(default)g)")
    parser.add_argument("--seed", type=int, default=1,
                        help="of the faults and the campaigns (default %(default)d)")
    parser.add_argument("--out", type=Path, default=Path("soak-results"),
                        help="new folder for log, report and what is kept of campaigns that lost "
                             "something (default %(default)s)")
    options = parser.parse_args()
    if options.minutes <= 0 or options.seed < 0:
        parser.error("--minutes must be above 0, and --seed at least 0")
    # A shell's background jobs ignore Ctrl-C, and so would the campaigns; it is one of the faults.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for name in [name for name in os.environ if name.startswith(("PREFECT", "MLFLOW"))]:
        del os.environ[name]
    out = options.out.absolute()
    try:
        out.mkdir(parents=True)
        report = soak(options.minutes, options.seed, out)
    except FileExistsError:
        print(f"error: --out {out} exists; name a new folder", file=sys.stderr)
        return EXIT_BAD_INPUT
    except UndisturbedFailedError as error:
        print(f"error: a campaign fails without any fault: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        print(f"interrupted; what was seen until then is in {out}", file=sys.stderr)
        return EXIT_INTERRUPTED
    return 0 if report.is_whole else EXIT_LOST


if __name__ == "__main__":
    sys.exit(main())
