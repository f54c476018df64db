"""``chess-snn verify`` and ``gc``: check and shrink a campaign."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from chess_snn.cli.console import console, print_json, print_message, table_of, work_bar
from chess_snn.cli.options import AsJsonOption, CampaignArgument
from chess_snn.cores import num_cores
from chess_snn.later import to_run
from chess_snn.settings import check_choice
from chess_snn.wording import counted, plural

if TYPE_CHECKING or to_run(__name__):
    from chess_snn.campaign import CampaignFolder, campaign_lock
    from chess_snn.campaign.integrity.gc import Disposable, dispose, find_disposable, sorts
    from chess_snn.campaign.integrity.rebuild import Repair, repair_campaign
    from chess_snn.campaign.integrity.verify import DAMAGE, STATE_WORDS, Findings, verify_campaign

EXIT_DAMAGED: Final = 1
_MIB: Final = 1 << 20


def verify_command(
    directory: CampaignArgument,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Quarantine what is corrupt; not while the campaign runs."),
    ] = False,
    as_json: AsJsonOption = False,
    workers: Annotated[int, typer.Option(help="Processes; 0 takes every core.")] = 0,
) -> None:
    """Check every byte, every game and every receipt of a campaign.

    Digests of all shards and checkpoints, all games replayed by the rules, values and policy
    targets within range, matches, and receipts against what they name. Only reads, so that the
    campaign may run meanwhile. Exits with 1 where anything is damaged.

    With --repair, corrupt artifacts are moved to quarantine/ in the campaign, each with the reason
    in a file beside it. Resuming the campaign then rebuilds what is needed from its inputs, or
    drops it from the replay window, and reports that.

    chess-snn verify campaigns/cpu-001 --repair
    """
    folder = CampaignFolder.open(directory)
    # Locked before: nothing may change between what is found and what is quarantined.
    with campaign_lock(folder) if repair else nullcontext():
        with work_bar(
            f"verifying {folder.name}", "shards and checkpoints", beside_json=as_json
        ) as on_progress:
            findings = verify_campaign(
                folder, num_workers=workers or num_cores(), on_progress=on_progress
            )
        repairs = repair_campaign(folder, findings) if repair else []
    if as_json:
        body = findings.to_json() | {
            "campaign": str(folder.path), "repairs": [asdict(entry) for entry in repairs]
        }
        print_json(body)
    else:
        _print_findings(folder, findings)
        _print_repairs(directory, findings, repairs, repair)
    if not findings.is_whole:
        raise typer.Exit(EXIT_DAMAGED)


def gc_command(
    directory: CampaignArgument,
    yes: Annotated[
        bool, typer.Option("--yes", help="Remove it; without this it is only shown.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Keep games, checkpoints, leftovers or quarantine. May be repeated."),
    ] = None,
    as_json: AsJsonOption = False,
) -> None:
    """Show what a campaign can do without; remove it with --yes.

    Games that are in no window of training to come; checkpoints that are no champion, not needed
    to resume, and in none of the last matches; leftovers of processes that died; corrupt
    data in quarantine. Of a finished campaign that is all games: keep them with --keep games.
    Receipts, plans and matches always stay, and what was removed is noted.

    chess-snn gc campaigns/cpu-001

    chess-snn gc campaigns/cpu-001 --keep games --yes
    """
    for sort in keep or []:
        check_choice("--keep", sort, sorts())
    folder = CampaignFolder.open(directory)
    with campaign_lock(folder) if yes else nullcontext():
        disposable = find_disposable(folder, keep or ())
        if yes and disposable:
            with work_bar(f"removing from {folder.name}", beside_json=as_json) as on_progress:
                dispose(folder, disposable, on_progress)
    if as_json:
        print_json({
            "campaign": str(folder.path),
            "is_removed": yes,
            "bytes": sum(entry.num_bytes for entry in disposable),
            "disposable": [
                {
                    "sort": entry.sort, "path": folder.name_of(entry.path),
                    "bytes": entry.num_bytes, "why": entry.why,
                }
                for entry in disposable
            ],
        })
        return
    if not disposable:
        print_message(f"{folder.path}: nothing may go")
        return
    groups: dict[tuple[str, str], list[Disposable]] = {}
    for entry in disposable:
        groups.setdefault((entry.sort, entry.why), []).append(entry)
    console.print(table_of(f"gc {folder.name}", groups.values(), {
        "what": lambda entries: entries[0].sort,
        "from": lambda entries: entries[0].path.name,
        "to": lambda entries: entries[-1].path.name,
        "why": lambda entries: entries[0].why,
        "how many": lambda entries: f"{len(entries):,}",
        "MiB": _mib,
    }, left=("what", "from", "to", "why")))
    print_message(
        f"{_mib(disposable)} MiB are free. What went is noted in removals/." if yes else
        f"{_mib(disposable)} MiB may go; nothing was removed. Remove it: "
        f"chess-snn gc {directory} --yes"
    )


def _print_findings(folder: CampaignFolder, findings: Findings) -> None:
    accounted = STATE_WORDS.keys() - DAMAGE
    console.print(table_of(f"verify {folder.name}", findings.kinds, {
        "": plural,
        "checked": lambda kind: f"{findings.checked[kind]:,}",
        "damaged": lambda kind: f"{findings.count(kind, DAMAGE):,}",
        "accounted for": lambda kind: f"{findings.count(kind, accounted):,}",
    }, left=("",)))
    print_message(
        f"{counted(findings.num_games, 'game')} of {counted(findings.num_positions, 'position')} "
        f"and {counted(findings.num_match_games, 'game')} of matches replayed, "
        f"{findings.num_bytes / _MIB:,.1f} MiB compared, in {findings.seconds:,.1f} s"
    )
    states = Counter(finding.state for finding in findings.found if not finding.is_damage)
    for state, count in states.items():
        print_message(f"{count:,} {STATE_WORDS[state]}")
    for finding in findings.damage:
        print_message(f"DAMAGED {finding.kind} {finding.path}: {finding.text}")


def _print_repairs(
    directory: Path, findings: Findings, repairs: list[Repair], was_repaired: bool
) -> None:
    for repair in repairs:
        verb = "REPAIRED" if repair.is_repaired else "NOT REPAIRED"
        print_message(f"{verb} {repair.path}: {repair.text}")
    if findings.is_whole:
        print_message("Everything is whole.")
    elif not was_repaired:
        print_message(
            f"Quarantine what is corrupt, and continue: chess-snn verify {directory} --repair"
        )
    elif all(repair.is_repaired for repair in repairs):
        print_message(f"The rest can be continued: chess-snn campaign resume {directory}")


def _mib(disposable: list[Disposable]) -> str:
    return f"{sum(entry.num_bytes for entry in disposable) / _MIB:,.1f}"
