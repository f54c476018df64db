"""The commands that repeat a campaign: its preset, every setting that differs, what came later."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from chess_snn.campaign.configuration.loading import (
    config_values,
    flat_values,
    format_toml,
    load_config,
    preset_names,
)
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.store.plans import S_PER_HOUR, campaign_length
from chess_snn.report.facts import CampaignFacts

_VALUE = "value"


@dataclass(frozen=True, slots=True)
class Recipe:
    """A preset and the settings that make a campaign of it."""

    preset: str
    """That with the fewest settings to change."""
    changes: dict[str, Any]
    """Values of these, by dotted names."""


def recipe_of(config: CampaignConfig) -> Recipe:
    """The shortest way to ``config``; the campaign may have been started in another way."""
    wanted = flat_values(config_values(config))
    recipes = []
    for preset in preset_names():
        values = flat_values(config_values(load_config(preset)))
        changes = {name: wanted[name] for name in wanted if values[name] != wanted[name]}
        recipes.append(Recipe(preset, changes))
    return min(recipes, key=lambda recipe: len(recipe.changes))


def setting_text(value: object) -> str:
    """``value`` as ``--set`` takes it, in TOML."""
    return format_toml({_VALUE: value}).removeprefix(f"{_VALUE} = ").strip()


def repeat_commands(facts: CampaignFacts) -> list[str]:
    """Commands for a shell that do again what was done, in order; a ``#`` begins a remark."""
    folder, origin = facts.folder, facts.folder.origin
    name = shlex.quote(f"campaigns/{folder.name}")
    recipe = recipe_of(folder.config)
    lines = [*_checkout(facts)]
    if origin is not None and origin.forked_at is not None:
        lines += [
            "# The settings are those of the fork; --set those that differ from its parent's.",
            f"chess-snn campaign fork {shlex.quote(origin.campaign)} --at {origin.forked_at} "
            f"--dir {name}",
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
    return [*lines, *_later(facts, name)]


def _checkout(facts: CampaignFacts) -> Iterator[str]:
    commit = str(facts.provenance.get("commit", ""))
    if commit:
        changed = "; files were changed there" if commit.endswith("+") else ""
        yield f"git checkout {commit.removesuffix('+')}    # of chess-snn{changed}"


def _later(facts: CampaignFacts, name: str) -> Iterator[str]:
    now, config = campaign_length(facts.folder), facts.folder.config.campaign
    if (now.iterations, now.hours) != (config.iterations, config.hours):
        length = f"--hours {now.hours:g}" if now.hours else f"--iterations {now.iterations}"
        yield f"chess-snn campaign extend {name} {length}"
        yield f"chess-snn campaign resume {name}"
    for choice in facts.by_hand:
        yield (
            f"chess-snn models promote {name}@{choice.generation} --why {shlex.quote(choice.why)}"
            f"    # after iteration {choice.num_finished - 1}"
        )
    if now.hours:
        yield (
            "# The clock decided when iterations began, so games differ on a faster or slower "
            f"machine; this one had run for {facts.receipts[-1].elapsed_s / S_PER_HOUR:.2f} h."
            if facts.receipts else "# The clock decides when iterations begin."
        )
