"""Print how large the product is, and fail above its limits: ``make size``.

The limits stand in ``pyproject.toml`` (``[tool.size]``) and only go down: ``--lower`` writes counts
there that are smaller. The targets are those that the project has set itself.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final

import typer

from chess_snn.campaign import CampaignConfig
from chess_snn.cli.main import app

ROOT: Final = Path(__file__).parent.parent
PYPROJECT: Final = ROOT / "pyproject.toml"
PRODUCT: Final = ("chess_snn", "flows", "tasks")

TARGETS: Final = {
    "product lines": 53_000, "product lines of code": 30_000, "product files": 335,
    "test lines": 47_000, "benchmark lines": 3_500, "benchmark files": 28,
    "words of prose": 25_000, "commands": 40, "options": 260, "settings": 112,
}

NO_CODE: Final = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENCODING, tokenize.ENDMARKER,
}


def python_files(*folders: str) -> list[Path]:
    """All modules below the folders."""
    return [path for folder in folders for path in (ROOT / folder).rglob("*.py")]


def num_lines(paths: Iterable[Path]) -> int:
    """Lines of the files together, empty ones too."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def num_code_lines(path: Path) -> int:
    """Lines of a module that hold code other than imports, docstrings and comments."""
    text = path.read_text(encoding="utf-8")
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(text)):
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        is_note = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.stmt) and (is_import or is_note):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def num_words(paths: Iterable[Path]) -> int:
    """Words of prose, without blocks of code."""
    texts = (path.read_text(encoding="utf-8") for path in paths)
    return sum(len(re.sub(r"```.*?```", "", text, flags=re.DOTALL).split()) for text in texts)


def commands(command: Any) -> list[Any]:
    """The commands below ``command`` that do something, or itself."""
    if not hasattr(command, "list_commands"):
        return [command]
    context = typer.Context(command)
    below = [command.get_command(context, name) for name in command.list_commands(context)]
    return [found for child in below for found in commands(child)]


def num_settings(config: Any) -> int:
    """Fields of a settings class that are values, in all its groups."""
    values = (getattr(config, field.name) for field in fields(config))
    return sum(num_settings(value) if is_dataclass(value) else 1 for value in values)


def counts() -> dict[str, int]:
    """Every row of the table."""
    product, benchmarks = python_files(*PRODUCT), python_files("benchmarks")
    actions = commands(typer.main.get_group(app))
    options = [
        parameter for action in actions for parameter in action.params
        if parameter.param_type_name == "option" and parameter.name != "help"
    ]
    return {
        "product lines": num_lines(product),
        "product lines of code": sum(map(num_code_lines, product)),
        "product files": len(product),
        "test lines": num_lines(python_files("tests")),
        "benchmark lines": num_lines(benchmarks),
        "benchmark files": len(benchmarks),
        "words of prose": num_words([
            *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"),
            *(ROOT / "docs" / "experiments").glob("*.md"),
        ]),
        "commands": len(actions),
        "options": len(options),
        "settings": num_settings(CampaignConfig()),
    }


def lower(limits: dict[str, int], found: dict[str, int]) -> None:
    """Write counts below their limits to ``pyproject.toml`` as the new limits."""
    text = PYPROJECT.read_text(encoding="utf-8")
    for name, limit in limits.items():
        if found[name] < limit:
            text = text.replace(f'"{name}" = {limit}\n', f'"{name}" = {found[name]}\n')
    PYPROJECT.write_text(text, encoding="utf-8")


def main() -> None:
    """Print the table; exit with 1 if a count is above its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lower", action="store_true", help="make smaller counts the limits")
    limits = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["tool"]["size"]
    found = counts()
    if parser.parse_args().lower:
        lower(limits, found)
    print(f"{'':24}{'now':>8}{'limit':>8}{'target':>8}")
    for name, count in found.items():
        mark = "  above its limit" if count > limits[name] else ""
        print(f"{name:24}{count:8,}{limits[name]:8,}{TARGETS[name]:8,}{mark}")
    if any(count > limits[name] for name, count in found.items()):
        sys.exit("The product has grown: remove what the new code replaces. Limits only go down.")


if __name__ == "__main__":
    main()
