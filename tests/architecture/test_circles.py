"""No module imports itself through others while it is loaded; imports in functions are free."""

import ast
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("benchmarks", "chess_snn", "chess_snn/flows", "chess_snn/tasks")


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def loaded_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when the module is loaded, those within others too."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        only_types = isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test)
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            if part != "body" or not only_types:
                yield from loaded_statements(getattr(statement, part, []))


def names_imported(statement: ast.stmt, package: str) -> list[str]:
    """Dotted names; of a relative import those that it stands for in ``package``."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    if not isinstance(statement, ast.ImportFrom):
        return []
    kept = package.split(".")[: -statement.level + 1 or None] if statement.level else []
    base = ".".join([*kept, *filter(None, [statement.module])])
    return [f"{base}.{alias.name}" for alias in statement.names]


def imports_when_loaded(root: Path) -> dict[str, set[str]]:
    """Modules that each module loads: those that it names, and the packages around them."""
    paths = {
        module_name(path, root): path
        for folder in FOLDERS for path in (root / folder).rglob("*.py")
    }
    graph: dict[str, set[str]] = {}
    for module, path in paths.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        graph[module] = set()
        for statement in loaded_statements(ast.parse(path.read_text()).body):
            for name in names_imported(statement, package):
                found = name if name in paths else name.rpartition(".")[0]
                parts = found.split(".")
                around = {".".join(parts[:end]) for end in range(1, len(parts))}
                graph[module] |= {
                    other for other in around & paths.keys()
                    if not f"{module}.".startswith(f"{other}.")
                } | ({found} & paths.keys())
    return graph


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Names on one circle, the first also last; empty without a circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other():
    graph = imports_when_loaded(ROOT)
    assert len(graph) > 300, "the search for modules found too few"
    assert sum(map(len, graph.values())) > 1500, "the search for imports found too few"
    assert circle(graph) == []


@pytest.mark.parametrize(("first", "second", "is_circle"), [
    ("from benchmarks.b import x", "import benchmarks.a", True),
    ("from benchmarks import b", "from .a import x", True),
    ("try:\n    import benchmarks.b\nexcept ImportError:\n    pass",
     "class A:\n    from benchmarks import a", True),
    ("from benchmarks.b import x", "def f():\n    import benchmarks.a", False),
    ("from benchmarks.b import x", "if TYPE_CHECKING:\n    import benchmarks.a", False),
    ("from benchmarks.b import x", "from benchmarks import c", False),
    ("from benchmarks import x", "", True),
    ("import json.y", "", False),
])
def test_a_circle_is_found(tmp_path, first, second, is_circle):
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    sources = {"__init__": "from benchmarks.a import x", "a": first, "b": second, "c": ""}
    for name, text in sources.items():
        (folder / f"{name}.py").write_text(text)
    assert bool(circle(imports_when_loaded(tmp_path))) is is_circle
