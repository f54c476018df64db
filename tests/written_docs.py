"""Write the parts of the documentation that follow from the code.

    python tests/written_docs.py

The reference of all settings ends docs/configuration.md; the table of all stored artifacts stands
between two markers in docs/reliability.md.
"""

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic.fields import FieldInfo

from chess_snn.campaign.artifacts import table
from chess_snn.campaign.configuration.loading import config_values
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.settings import description, setting_fields
from chess_snn.types import Json

DOCS = Path(__file__).parents[1] / "docs"
REFERENCE = "<!-- Written by `python tests/written_docs.py`; do not edit below. -->"
"""Line of docs/configuration.md behind which everything is replaced."""
OFTEN_CHANGED = {
    "campaign.hours", "campaign.iterations", "net.size", "net.activation",
    "self_play.games_per_iteration", "search.simulations_first", "training.batch_size",
    "training.learning_rate", "evaluation.opponents", "execution.workers",
}
"""Settings that presets and guides change first; the reference shows them in bold."""
WISHES = {
    "Learn another game, or longer": ["campaign.*"],
    "Use another network": [
        "net.size", "net.growth", "net.activation", "net.precision", "net.rule_planes",
        "net.target_readout", "net.readout_gain",
    ],
    "Change the spikes": ["net.*", "training.spike_rate_weight"],
    "Play more games": ["self_play.*games*", "search.simulations*"],
    "Begin and end games otherwise": [
        "self_play.*share*", "self_play.*plies_*", "self_play.random*", "self_play.truncated*",
    ],
    "Choose moves otherwise": ["search.kind", "search.below_root", "self_play.*", "search.*"],
    "Learn faster": [
        "training.learning_rate", "training.*rate", "training.warmup_steps", "training.*batch*",
        "training.presentations", "training.weight_decay", "training.average_decay",
        "training.precision", "training.skip_limit",
    ],
    "Keep other positions": ["training.window*", "training.surprise*"],
    "Learn another target": ["training.*"],
    "Begin with games that exist": ["supervised.*"],
    "Measure strength": ["evaluation.*"],
    "Choose the champion otherwise": ["promotion.*"],
    "Use this machine otherwise": ["execution.*"],
    "Use other machines": ["cluster.*"],
}
"""Aims of users, and patterns of the settings for them; the first that fits has a setting."""
SAME_AT_THE_END = "The same at its end"
"""Begins the notes of settings that are the value of another one at the campaign's end."""
TABLE = "<!-- Written by `python tests/written_docs.py`; do not edit this table. -->"
TABLE_END = "<!-- End of the table. -->"


def settings_reference() -> str:
    """Markdown: a list for each wish of a user, with the first sentence of each note."""
    defaults = config_values(CampaignConfig())
    fields = {
        f"{group}.{name}": setting for group, field in setting_fields(CampaignConfig).items()
        for name, setting in setting_fields(field.annotation).items()
    }
    parts, left = [], list(fields)
    for wish, patterns in WISHES.items():
        names = list(dict.fromkeys(
            name for pattern in patterns for name in left if fnmatchcase(name, pattern)
        ))
        left = [name for name in left if name not in names]
        lines = [
            setting_line(name, fields, defaults) for name in names
            if not fields[name].description.startswith(SAME_AT_THE_END)
        ]
        parts.append("\n".join([f"### {wish}\n", *lines]))
    assert not left, f"no wish of WISHES has {left}"
    return "\n\n".join(parts) + "\n"


def setting_line(name: str, fields: dict[str, FieldInfo], defaults: Json) -> str:
    """``- `net.size` (`"tiny"`): What it does.``, with its value at the campaign's end if any."""
    sentence = re.split(r"(?<=\.) (?=[A-Z`])", description(fields[name]))[0]
    names, values = name, value_of(name, defaults)
    last = name.replace("_first", "_last")
    if last != name and fields[last].description.startswith(SAME_AT_THE_END):
        names, values = f"{name}`, `_last", f"{values}, {value_of(last, defaults)}"
        sentence = re.sub(r"[,;]? at the start of the campaign", "", sentence)
    names = f"`{names}`" if name not in OFTEN_CHANGED else f"**`{names}`**"
    return f"- {names} ({values}): {sentence}"


def value_of(name: str, defaults: Json) -> str:
    """The default of a setting as code."""
    group, _, setting = name.partition(".")
    return f"`{json.dumps(defaults[group][setting])}`"


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
