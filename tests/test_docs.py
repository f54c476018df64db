"""Links, files and commands that the documentation names exist."""

import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from chess_snn.campaign import load_config
from chess_snn.cli.main import app

ROOT = Path(__file__).parent.parent
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    ROOT / "deployments" / "README.md", *sorted((ROOT / "docs").rglob("*.md")),
)
CODE = re.compile(r"```.*?```", re.DOTALL)
COMMAND = re.compile(r"(?:^[\w-]*\$ (?:[A-Z_]+=\S+ )*|`)chess-snn ([a-z][^`\n#&]*)", re.MULTILINE)
"""Commands in a console, perhaps with variables before it, or in inline code."""
SOURCES = [str(path) for top in ("chess_snn", "flows", "tasks", "tests", "benchmarks", "docs")
           for path in (ROOT / top).rglob("*.py")]
page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


@page
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", page.read_text())):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert link.startswith("http") or target.exists(), link
        assert not anchor or link.startswith("http") or anchor in anchors(target), link


def test_source_files_exist():
    for page in PAGES:
        if page.parent.name != "decisions":  # a record names the files of its time
            for name in re.findall(r"`([a-z_0-9/]+\.py)\b", page.read_text()):
                assert any(source.endswith(f"/{name}") for source in SOURCES), (page, name)


@page
def test_commands_and_their_options_exist(page):
    for shown in COMMAND.findall(re.sub(r"\\\n\s*", " ", page.read_text())):
        command = typer.main.get_command(app)
        words = [word for word in shlex.split(shown) if "|" not in word]
        for word in words:
            if not isinstance(command, TyperGroup):
                break
            found = command.get_command(typer.Context(command), word)
            assert found is not None, shown
            command = found
        known = {option for one in command.params for option in one.opts} | {"--help"}
        asked = {word.partition("=")[0] for word in words if word.startswith("--")}
        passed_on = command.context_settings.get("ignore_unknown_options", False)
        assert passed_on or asked <= known, shown


def test_the_file_of_settings_is_read(tmp_path):
    file = tmp_path / "my.toml"
    page = (ROOT / "docs" / "configuration.md").read_text()
    [text] = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    file.write_text(text)
    assert load_config(file=file).net.network().blocks == 8
