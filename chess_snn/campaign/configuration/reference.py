"""The reference of all settings in docs/configuration.md, written from the settings themselves.

After a change of settings::

    python -m chess_snn.campaign.configuration.reference docs/configuration.md
"""

import inspect
import json
import sys
from pathlib import Path
from typing import Final

from chess_snn.campaign.configuration.loading import config_values
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.settings import bounds_text, choices, description, setting_fields

MARKER: Final = (
    "<!-- Written by `python -m chess_snn.campaign.configuration.reference`; do not edit below. -->"
)
"""Line of the document behind which everything is replaced."""


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


def main(document: Path) -> None:
    """Replace the text after the marker in ``document``."""
    text, _, _ = document.read_text(encoding="utf-8").partition(MARKER)
    document.write_text(f"{text}{MARKER}\n\n{settings_reference()}", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
