"""Write the parts of the documentation that follow from the code.

    python tests/written_docs.py

The reference of all settings ends docs/configuration.md; the table of all stored artifacts stands
between two markers in docs/reliability.md.
"""

import inspect
import json
import re
from pathlib import Path

from chess_snn.campaign.artifacts import table
from chess_snn.campaign.configuration.loading import config_values
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.settings import bounds_text, choices, description, setting_fields

DOCS = Path(__file__).parents[1] / "docs"
REFERENCE = "<!-- Written by `python tests/written_docs.py`; do not edit below. -->"
"""Line of docs/configuration.md behind which everything is replaced."""
TABLE = "<!-- Written by `python tests/written_docs.py`; do not edit this table. -->"
TABLE_END = "<!-- End of the table. -->"


def settings_reference() -> str:
    """Markdown: a table for each group of settings."""
    defaults = config_values(CampaignConfig())
    parts = []
    for group, field in setting_fields(CampaignConfig).items():
        rows = []
        for name, setting in setting_fields(field.annotation).items():
            allowed = (
                ", ".join(f"`{choice}`" for choice in choices(setting))
                or bounds_text(setting, ", ").replace(">=", "≥").replace("<=", "≤")
            )
            rows.append(
                f"| `{group}.{name}` | `{json.dumps(defaults[group][name])}` | {allowed} "
                f"| {description(setting)} |"
            )
        head = f"### `[{group}]`\n\n{inspect.getdoc(field.annotation)}\n"
        parts.append("\n".join([head, "| setting | default | allowed | |", "| - | - | - | - |",
                                *rows]))
    return "\n\n".join(parts) + "\n"


def write_reference(document: Path) -> None:
    """Replace the text behind the marker in ``document``."""
    text, _, _ = document.read_text(encoding="utf-8").partition(REFERENCE)
    document.write_text(f"{text}{REFERENCE}\n\n{settings_reference()}", encoding="utf-8")


def artifact_table() -> str:
    """Markdown: what a campaign stores, what happens to a corrupt one, and what gc keeps."""
    rows = [
        f"| {artifact.name} | `{re.sub(':0[0-9]+d', '', artifact.pattern)}` "
        f"| {artifact.after_repair or 'restore it from a backup'} | {artifact.kept} |"
        for artifact in table.ARTIFACTS if artifact.check is not None
    ]
    head = ["| artifact | path | if it is corrupt | `gc` keeps |", "| - | - | - | - |"]
    return "\n".join([*head, *rows]) + "\n"


def write_table(document: Path) -> None:
    """Replace the table in ``document``, between the two markers."""
    before, _, rest = document.read_text(encoding="utf-8").partition(TABLE)
    _, _, after = rest.partition(TABLE_END)
    document.write_text(
        f"{before}{TABLE}\n\n{artifact_table()}\n{TABLE_END}{after}", encoding="utf-8"
    )


if __name__ == "__main__":
    write_reference(DOCS / "configuration.md")
    write_table(DOCS / "reliability.md")
