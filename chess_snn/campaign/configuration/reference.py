"""The reference of all settings in docs/configuration.md, written from the settings themselves.

A setting's sentence is the docstring under its field; its bounds are those that
``__post_init__`` checks. After a change of settings::

    python -m chess_snn.campaign.configuration.reference docs/configuration.md
"""

import ast
import inspect
import itertools
import json
import sys
import textwrap
from collections.abc import Collection
from dataclasses import fields
from pathlib import Path
from typing import Final, get_type_hints
from unittest import mock

from chess_snn.campaign.configuration.loading import config_values
from chess_snn.campaign.configuration.settings import CampaignConfig

MARKER: Final = (
    "<!-- Written by `python -m chess_snn.campaign.configuration.reference`; do not edit below. -->"
)
"""Line of the document behind which everything is replaced."""

_SIGNS: Final = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def settings_reference() -> str:
    """Markdown: a table for each group of settings."""
    defaults = config_values(CampaignConfig())
    parts = []
    for group, owner in get_type_hints(CampaignConfig).items():
        docs, bounds = field_docs(owner), _bounds(owner)
        rows = [
            f"| `{group}.{field.name}` | `{json.dumps(defaults[group][field.name])}` "
            f"| {bounds.get(f'{group}.{field.name}', '')} | {docs[field.name]} |"
            for field in fields(owner)
        ]
        head = f"### `[{group}]`\n\n{inspect.getdoc(owner)}\n"
        parts.append("\n".join([head, "| setting | default | allowed | |", "| - | - | - | - |",
                                *rows]))
    return "\n\n".join(parts) + "\n"


def field_docs(owner: type) -> dict[str, str]:
    """The sentence under each field of a settings class, on one line, by the field's name."""
    body = _class_body(owner)
    return {
        statement.target.id: " ".join(below.value.value.split())
        for statement, below in itertools.pairwise(body)
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def field_bounds(owner: type) -> dict[str, dict[str, float]]:
    """What the class's checks allow: ``{"ge": 0, "le": 1024}`` by the setting's name."""
    return _checked(owner)[0]


def _bounds(owner: type) -> dict[str, str]:
    """The same with choices, for people."""
    ranges, choices = _checked(owner)
    named = _bounds_by_other_settings(owner)
    words = {setting: ", ".join(f"`{choice}`" for choice in choices[setting])
             for setting in choices}
    return words | {
        setting: ", ".join(
            f"{_SIGNS[name]} {named.get((setting, name)) or _number(bound)}"
            for name, bound in bounds.items()
        )
        for setting, bounds in ranges.items()
    }


def _checked(owner: type) -> tuple[dict[str, dict[str, float]], dict[str, Collection[str]]]:
    """The bounds and the choices that the class checks, by the setting's name."""
    ranges: dict[str, dict[str, float]] = {}
    choices: dict[str, Collection[str]] = {}

    def note_range(setting: str, value: float, **bounds: float) -> None:
        del value
        ranges[setting] = bounds

    def note_choice(setting: str, value: str, allowed: Collection[str]) -> None:
        del value
        choices[setting] = allowed

    # Its checks run once on the defaults, with ours in the place of the ones it calls.
    checks = {"check_range": note_range, "check_choice": note_choice}
    with mock.patch.dict(vars(owner)["__post_init__"].__globals__, checks):
        owner()
    return ranges, choices


def _bounds_by_other_settings(owner: type) -> dict[tuple[str, str], str]:
    """Bounds that are settings themselves: ``("training.window_positions", "ge")`` and its name."""
    return {
        (str(node.args[0].value), str(bound.arg)): bound.value.attr
        for statement in _class_body(owner) for node in ast.walk(statement)
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)
        for bound in node.keywords if isinstance(bound.value, ast.Attribute)
    }


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def _class_body(owner: type) -> list[ast.stmt]:
    definition = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    assert isinstance(definition, ast.ClassDef)
    return definition.body


def main(document: Path) -> None:
    """Replace what stands behind the marker in ``document``."""
    text, _, _ = document.read_text(encoding="utf-8").partition(MARKER)
    document.write_text(f"{text}{MARKER}\n\n{settings_reference()}", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
