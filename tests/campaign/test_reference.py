"""docs/configuration.md says what the settings are, and the settings say it of themselves."""

from pathlib import Path

import pytest
from written_docs import REFERENCE, settings_reference, write_reference

from chess_snn.campaign import CampaignConfig, load_config
from chess_snn.errors import ConfigError
from chess_snn.settings import bounds, choices, description, setting_fields

DOCUMENT = Path(__file__).parents[2] / "docs" / "configuration.md"
GROUPS = {name: group.annotation for name, group in setting_fields(CampaignConfig).items()}


def test_the_document_is_up_to_date():
    _, marker, below = DOCUMENT.read_text(encoding="utf-8").partition(REFERENCE)
    assert marker, f"{DOCUMENT} has lost the line {REFERENCE}"
    assert below.strip() == settings_reference().strip(), "run: python tests/written_docs.py"


@pytest.mark.parametrize("group", GROUPS)
def test_every_setting_has_a_sentence(group):
    docs = map(description, setting_fields(GROUPS[group]).values())
    assert all(len(text.split()) >= 3 and text.endswith(".") for text in docs)


def outside(field):
    """Values that a setting must refuse, by its bounds and choices."""
    sides = {"ge": -1, "gt": 0, "le": 1, "lt": 0}
    values = [bound + sides[side] for side, bound in bounds(field).items()]
    values += ["nan"] if field.annotation is float else []
    return [*values, *(["\"another\""] if choices(field) else [])]


@pytest.mark.parametrize("group", GROUPS)
def test_bounds_are_kept_and_named(group):
    for name, field in setting_fields(GROUPS[group]).items():
        limits = (*bounds(field).values(), *choices(field))
        for value in outside(field) if limits else ():
            with pytest.raises(ConfigError, match=rf"{group}\.{name}") as refused:
                load_config(settings=[f"{group}.{name}={value}"])
            for limit in limits:
                shown = f"{limit:g}" if isinstance(limit, float) else str(limit)
                assert shown in str(refused.value)


def test_the_reference_has_every_setting():
    text = settings_reference()
    for group, owner in GROUPS.items():
        for name in setting_fields(owner):
            assert f"`{group}.{name}`" in text or name.endswith("_last"), f"{group}.{name}"


def test_writing_keeps_what_stands_before_the_marker(tmp_path):
    document = tmp_path / "configuration.md"
    document.write_text(f"# Settings\n\nby hand\n\n{REFERENCE}\nold\n", encoding="utf-8")
    write_reference(document)
    first = document.read_text(encoding="utf-8")
    assert first.startswith("# Settings\n\nby hand\n\n")
    assert first.endswith(settings_reference())
    assert "\nold\n" not in first
    write_reference(document)
    assert document.read_text(encoding="utf-8") == first
