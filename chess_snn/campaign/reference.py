"""The reference of all settings in docs/configuration.md, written from the settings themselves.

A setting's sentence is the docstring under its field; its bounds are those that
``__post_init__`` checks. After a change of settings::

    python -m chess_snn.campaign.reference docs/configuration.md
"""

import ast
import inspect
import itertools
import json
import sys
import textwrap
from dataclasses import fields
from pathlib import Path
from typing import Final, get_type_hints

from chess_snn.campaign.loading import config_values
from chess_snn.campaign.settings import CampaignConfig

MARKER: Final = "<!-- Written by `python -m chess_snn.campaign.reference`; do not edit below. -->"
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


def _bounds(owner: type) -> dict[str, str]:
    """What the class's checks allow, by the setting's name."""
    found = {}
    for node in (n for statement in _class_body(owner) for n in ast.walk(statement)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "check_range":
                found[ast.literal_eval(node.args[0])] = ", ".join(
                    f"{_SIGNS[str(bound.arg)]} {ast.unparse(bound.value).replace('self.', '')}"
                    for bound in node.keywords
                )
            elif node.func.id == "check_choice":
                choices = ast.literal_eval(node.args[2])
                found[ast.literal_eval(node.args[0])] = ", ".join(f"`{c}`" for c in choices)
    return found


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
