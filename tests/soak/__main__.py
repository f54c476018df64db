"""``python -m tests.soak``: see docs/reliability.md."""

import argparse
import signal
import sys
from pathlib import Path

from . import __doc__ as description

EXIT_LOST, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 1, 2, 130


def main(arguments: list[str] | None = None) -> int:
    """Soak; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit code 0: faults were injected and nothing was lost. 1: something was lost, or "
               "nothing injected. 2: it could not begin. 130: it was interrupted.",
    )
    parser.add_argument("--minutes", type=float, default=30.0,
                        help="how long faults are injected; the undisturbed twins and the end of "
                             "the last campaign come on top (default %(default)g)")
    parser.add_argument("--seed", type=int, default=1,
                        help="of the schedule and the campaigns (default %(default)d)")
    parser.add_argument("--out", type=Path, default=Path("soak-results"),
                        help="new folder for log, report and what is kept of campaigns that lost "
                             "something (default %(default)s)")
    options = parser.parse_args(arguments)
    if options.minutes <= 0:
        parser.error(f"--minutes must be above 0, got {options.minutes:g}")
    if options.seed < 0:
        parser.error(f"--seed must be at least 0, got {options.seed}")
    return _soak(options.minutes, options.seed, options.out.absolute())


def _soak(minutes: float, seed: int, out: Path) -> int:
    # What a shell's background jobs inherit; the campaigns would, and Ctrl-C is one of the faults.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        out.mkdir(parents=True)
    except OSError as error:
        return _refuse(f"--out {out}: {error.strerror}; name a folder that is not there yet")
    # After the arguments were looked at: this loads torch and MLflow.
    from .journal import LOG, Journal  # noqa: PLC0415
    from .report import REPORT  # noqa: PLC0415
    from .soak import Soak, UndisturbedFailedError  # noqa: PLC0415

    try:
        with Journal(out) as journal:
            report = Soak(minutes, seed, out, journal).run()
            journal.say(f"log: {out / LOG}; report: {out / REPORT}")
    except UndisturbedFailedError as error:
        return _refuse(f"a campaign fails without any fault: {error}")
    except KeyboardInterrupt:
        print(f"interrupted; what was seen until then is in {out}", file=sys.stderr)
        return EXIT_INTERRUPTED
    return 0 if report.is_whole else EXIT_LOST


def _refuse(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return EXIT_BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
