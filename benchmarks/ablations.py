"""What each part of the recipe is worth: campaigns of equal length, one switch off at a time.

    python benchmarks/ablations.py --out ablations                  # six campaigns of 15 minutes
    python benchmarks/ablations.py --out ablations --cores          # each on one core, side by side

Prints a row a campaign for docs/experiments.md. Killed and started again, it goes on: a campaign
that has ended is not run again, and one under way is resumed. Nothing else should run meanwhile.
"""

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from chess_snn.campaign import CampaignFolder, read_receipts
from chess_snn.campaign.strength.matches import read_final_matches
from chess_snn.cores import num_cores

NO_RESTARTS = tuple(
    f"self_play.{kind}_share_{when}=0"
    for kind in ("restart", "practice", "mismatch") for when in ("first", "last")
)
SWITCHES: Final = {
    "nothing": (),
    "search": ("search.kind=policy", "training.policy_loss=advantage"),
    "restarts, practice and mismatches": NO_RESTARTS,
    "labels of cut games": ("self_play.cut_value_limit=0",),
    "surprise sampling": ("training.surprise_share=0",),
    "soft start": ("net.policy_gain=8",),
}
"""Settings over the preset, by what they switch off."""
MATCHES: Final = ("random-0", "random-64", "greedy-64")
COLUMNS: Final = (
    "switched off", "seed", "hours", "games", *MATCHES, "ordinary draws", "ordinary plies",
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One campaign."""

    off: str
    directory: Path
    settings: tuple[str, ...]

    def run(self, core: int | None) -> None:
        """Start it, or go on with it; on one core where one is given."""
        program = [sys.executable, "-m", "chess_snn", "campaign"]
        if (self.directory / "campaign.toml").exists():
            command = [*program, "resume", str(self.directory)]
        else:
            options = [part for setting in self.settings for part in ("--set", setting)]
            command = [*program, "start", "--dir", str(self.directory), "--preset", "cpu", *options]
        if core is not None:
            command = ["taskset", "-c", str(core), *command]
        print(" ".join(command), flush=True)
        with (self.directory.with_suffix(".log")).open("a") as log:
            subprocess.run(command, check=True, stdout=log, stderr=subprocess.STDOUT)

    def row(self) -> list[str]:
        """Its row, under ``COLUMNS``."""
        folder = CampaignFolder.open(self.directory)
        receipts = read_receipts(folder)
        last = receipts[-1].metrics()
        scores = {match["name"]: match for match in read_final_matches(folder)}
        games = sum(int(receipt.metrics()["self_play/games"]) for receipt in receipts)
        return [
            self.off, str(folder.config.campaign.seed), f"{receipts[-1].elapsed_s / 3600:.2f}",
            f"{games:,}",
            *(
                "{score:.3f} ({score_low:.3f} to {score_high:.3f})".format_map(scores[name])
                for name in MATCHES
            ),
            f"{last['self_play/ordinary_draw_rate']:.2f}",
            f"{last['self_play/ordinary_plies_mean']:.0f}",
        ]


def main() -> None:
    """Run what has not been run, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the campaigns")
    parser.add_argument("--hours", type=float, default=0.25, help="of each [%(default)s]")
    parser.add_argument("--seed", type=int, default=0, help="of all [%(default)s]")
    parser.add_argument("--cores", action="store_true", help="one core each, as many as there are")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="setting of all of them")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    common = (f"campaign.hours={arguments.hours}", f"campaign.seed={arguments.seed}")
    trials = [
        Trial(off, arguments.out / off.replace(",", "").replace(" ", "-"),
              (*common, *arguments.set, *settings))
        for off, settings in SWITCHES.items()
    ]
    run_all(trials, sorted(os.sched_getaffinity(0)) if arguments.cores else [None])
    print("| " + " | ".join(COLUMNS) + " |")
    print("| " + " | ".join("---" for _ in COLUMNS) + " |")
    for trial in trials:
        print("| " + " | ".join(trial.row()) + " |")
    print(f"{num_cores()} cores, {'one a campaign' if arguments.cores else 'all for each'}")


def run_all(trials: list[Trial], cores: list[int | None]) -> None:
    """Run ``trials``, as many at once as there are ``cores``; None is all of the machine."""
    free: SimpleQueue[int | None] = SimpleQueue()
    for core in cores:
        free.put(core)

    def run(trial: Trial) -> None:
        core = free.get()
        try:
            trial.run(core)
        finally:
            free.put(core)

    with ThreadPoolExecutor(len(cores)) as pool:
        list(pool.map(run, trials))


if __name__ == "__main__":
    main()
