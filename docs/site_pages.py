"""Pages of the site from elsewhere in the repository, and the reference: a hook of mkdocs.yml."""

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbconvert import MarkdownExporter

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/chess-snn/chess-snn/blob/main/"
PAGES = {
    "README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md",
    "deployments/README.md": "deployments.md",
} | {
    path.relative_to(ROOT).as_posix(): f"networks/{path.parent.name}.md"
    for path in (ROOT / "chess_snn" / "networks").glob("*/README.md")
}
"""Places in the site of files outside of docs/."""


class Sources(griffe.Extension):
    """Names that the reference takes from sources in another way than Griffe does."""

    def on_module(self, *, mod: griffe.Module, **_: Any) -> None:
        """Count as public the names that a package loads when they are asked for."""
        if "exports" in mod.members:
            mod.exports = [
                name for name, member in mod.members.items()
                if isinstance(member, griffe.Alias) and name != "exports"
                and member.target_path.startswith("chess_snn.")
            ]

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Write Markdown's code in place of roles and blocks of reStructuredText."""
        if obj.docstring:
            text = re.sub(r":(?:mod|func|class|meth|attr|data|exc):`~?([^`]*)`", r"`\1`",
                          obj.docstring.value)
            obj.docstring.value = re.sub(r"::\n\n(?= )", ":\n\n", text)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the reference to the navigation."""
    reference = [{name: _reference_page(name)} for name in public_packages()]
    config.nav = [*(config.nav or ()), {"Reference": reference}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from elsewhere, one of each public package and one of each notebook."""
    texts = {place: (ROOT / source).read_text() for source, place in PAGES.items()}
    texts |= {_reference_page(name): f"::: {name}\n" for name in public_packages()}
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        place = f"notebooks/{notebook.stem}.md"
        named = {"unique_key": notebook.stem, "output_files_dir": "."}
        texts[place], found = MarkdownExporter().from_filename(str(notebook), named)
        files.remove(files.src_uris[f"notebooks/{notebook.name}"])
        for picture, content in found["outputs"].items():
            files.append(File.generated(config, f"notebooks/{picture}", content=content))
    for place, text in texts.items():
        files.append(File.generated(config, place, content=text))
    return files


def public_packages() -> list[str]:
    """Packages that offer names of their modules."""
    return sorted(
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / "chess_snn").rglob("__init__.py")
        if re.search(r"^(__all__| *__getattr__) = ", path.read_text(), re.MULTILINE)
    )


def _reference_page(package: str) -> str:
    return f"reference/{package}.md"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at pages of the site, or else at files of the repository."""
    place = page.file.src_uri
    source = {value: key for key, value in PAGES.items()}.get(place, f"docs/{place}")

    def moved(found: re.Match[str]) -> str:
        link, _, anchor = found[1].partition("#")
        if not link or ":" in link:
            return found[0]
        named = PurePosixPath(os.path.normpath(PurePosixPath(source).parent / link)).as_posix()
        target = PAGES.get(named, named.removeprefix("docs/") if named.startswith("docs/") else "")
        if target and files.get_file_from_path(target):
            link = os.path.relpath(target, PurePosixPath(place).parent)
        elif (ROOT / named).exists():
            link = REPOSITORY + named
        return f"]({link}{'#' if anchor else ''}{anchor})"

    return re.sub(r"\]\(([^)\s]+)\)", moved, markdown)
