"""Worth of each part of the recipe: campaigns of equal length, one switch off in each.

After a kill, the same command continues: finished campaigns are not run again, and an unfinished
one is resumed. Nothing else should run meanwhile.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Annotated, Final

import typer

from benchmarks.harness import Report, benchmark
from chess_snn.campaign import CampaignFolder, read_receipts
from chess_snn.campaign.strength.matches import read_final_matches

NO_RESTARTS: Final = tuple(
    f"self_play.{kind}_share_{when}=0"
    for kind in ("restart", "practice", "mismatch") for when in ("first", "last")
)
SWITCHES: Final[dict[str, tuple[str, ...]]] = {
    "nothing": (),
    "search": ("search.kind=policy", "training.policy_loss=advantage"),
    "restarts, practice and mismatches": NO_RESTARTS,
    "labels of truncated games": ("self_play.truncated_value_limit=0",),
    "surprise sampling": ("training.surprise_share=0",),
    "soft start": ("net.policy_gain=8",),
}
"""Settings over the preset, by what they switch off."""
MATCHES: Final = ("random-0", "random-64", "greedy-64")


def run(
    report: Report,
    out: Annotated[Path, typer.Option(help="Folder of the campaigns.")],
    hours: Annotated[float, typer.Option(help="Length of each.")] = 0.25,
    seed: Annotated[int, typer.Option(help="Seed of all.")] = 0,
    cores: Annotated[
        bool, typer.Option("--cores", help="One core each, as many at once as there are.")
    ] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Setting of all.")
    ] = None,
) -> None:
    """Campaigns of equal length, with one part of the recipe switched off in each.

    python -m benchmarks ablations --out ablations --cores
    """
    out.mkdir(parents=True, exist_ok=True)
    common = [f"campaign.hours={hours}", f"campaign.seed={seed}", *(settings or ())]
    free: SimpleQueue[int | None] = SimpleQueue()
    available: list[int | None] = [*sorted(os.sched_getaffinity(0))] if cores else [None]
    for core in available:
        free.put(core)

    def run_one(off: str) -> CampaignFolder:
        core = free.get()
        try:
            directory = out / off.replace(",", "").replace(" ", "-")
            command = _campaign_command(directory, [*common, *SWITCHES[off]])
            command = command if core is None else ["taskset", "-c", str(core), *command]
            report.progress(" ".join(command))
            with directory.with_suffix(".log").open("a") as log:
                subprocess.run(command, check=True, stdout=log, stderr=subprocess.STDOUT)
            return CampaignFolder.open(directory)
        finally:
            free.put(core)

    with ThreadPoolExecutor(len(available)) as pool:
        for off, folder in zip(SWITCHES, pool.map(run_one, SWITCHES), strict=True):
            _add(report, off, folder)
    report.note(f"{len(available)} at a time, {'one core' if cores else 'all cores'} each")


command = benchmark("ablations", run)


def _campaign_command(directory: Path, settings: list[str]) -> list[str]:
    program = [sys.executable, "-m", "chess_snn", "campaign"]
    if (directory / "campaign.toml").exists():
        return [*program, "resume", str(directory)]
    options = [part for setting in settings for part in ("--set", setting)]
    return [*program, "start", "--dir", str(directory), "--preset", "cpu", *options]


def _add(report: Report, off: str, folder: CampaignFolder) -> None:
    receipts = read_receipts(folder)
    matches = {match.name: match for match in read_final_matches(folder)}
    report.add(f"{off}: length", receipts[-1].elapsed_s / 3600, "hours")
    report.add(f"{off}: games", sum(receipt.statistics.games for receipt in receipts), "games")
    for name in MATCHES:
        report.add(f"{off}: {name}", matches[name].score, "score")
        report.add(f"{off}: {name}, low", matches[name].score_low, "score")
        report.add(f"{off}: {name}, high", matches[name].score_high, "score")
    for name, unit in (("ordinary_draw_rate", "share"), ("ordinary_plies_mean", "plies")):
        report.add(f"{off}: {name}", getattr(receipts[-1].statistics, name), unit)
