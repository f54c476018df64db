"""The commands of a campaign: its preset, every setting that differs, and what was done later."""

import shlex
from collections.abc import Iterator

from chess_snn.campaign.configuration.loading import format_toml
from chess_snn.campaign.store.plans import EXTENSIONS, Length
from chess_snn.campaign.store.typed_json import numbered_files
from chess_snn.campaign.strength.champions import HandPromotion
from chess_snn.report.facts import CampaignFacts

_VALUE = "value"


def setting_text(value: object) -> str:
    """``value`` as ``--set`` takes it, in TOML."""
    return format_toml({_VALUE: value}).removeprefix(f"{_VALUE} = ").strip()


def repeat_commands(facts: CampaignFacts) -> list[str]:
    """Commands for a shell that do again what was done, as far as the folder says it.

    They are in the order in which they were given. When the campaign was stopped and resumed is not
    known. A ``#`` begins a remark.

    Raises:
        CorruptDataError: an extension is damaged.
    """
    folder, origin, recipe = facts.folder, facts.folder.origin, facts.recipe
    name = shlex.quote(f"campaigns/{folder.name}")
    lines = [*_checkout(facts)]
    if origin is not None and origin.forked_at is not None:
        lines += [
            "# The settings are those of the fork; --set those that differ from its parent's.",
            f"chess-snn campaign fork {shlex.quote(f'campaigns/{origin.campaign}')} "
            f"--at {origin.forked_at} --dir {name}",
        ]
    else:
        start = [f"chess-snn campaign start --preset {recipe.preset} --dir {name}"]
        if origin is not None:
            games = " --with-games" if origin.games else ""
            start.append(f"--from {shlex.quote(origin.reference)}{games}")
        start += [
            f"--set {shlex.quote(f'{setting}={setting_text(value)}')}"
            for setting, value in recipe.changes.items()
        ]
        lines.append(" \\\n    ".join(start))
    return [*lines, *_later(facts, name), *_clock(facts)]


def _checkout(facts: CampaignFacts) -> Iterator[str]:
    commit = str(facts.provenance.get("commit", ""))
    if commit:
        changed = "; files were changed there" if commit.endswith("+") else ""
        yield f"git checkout {commit.removesuffix('+')}    # of chess-snn{changed}"


def _later(facts: CampaignFacts, name: str) -> list[str]:
    """Extensions and champions chosen by hand; a fork takes its parent's choices along."""
    extensions = map(EXTENSIONS.read, numbered_files(facts.folder.extension))
    events = [
        *((each.created, _extend(each.length, name)) for each in extensions),
        *((choice.created, _promote(choice, name)) for choice in facts.by_hand
          if choice.created >= facts.created),
    ]
    return [command for _, command in sorted(events, key=lambda event: event[0])]


def _extend(length: Length, name: str) -> str:
    wanted = f"--hours {length.hours:g}" if length.hours else f"--iterations {length.iterations}"
    return f"chess-snn campaign extend {name} {wanted}\nchess-snn campaign resume {name}"


def _promote(choice: HandPromotion, name: str) -> str:
    return (
        f"chess-snn models promote {name}@{choice.generation} --why {shlex.quote(choice.why)}"
        f"    # after iteration {choice.num_finished - 1}"
    )


def _clock(facts: CampaignFacts) -> Iterator[str]:
    if facts.length.hours:
        yield (
            "# The clock decided when iterations began, so games differ on a faster or slower "
            f"machine; this one had run for {facts.elapsed_h:.2f} h."
            if facts.receipts else "# The clock decides when iterations begin."
        )
