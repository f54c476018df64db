"""Nothing that is read from a campaign, a registry or the network is ever run.

A pickle is a program. So no module of ours can load one, and none stores one.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUNS_WHAT_IT_READS = {
    "pickle", "_pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "joblib",
    "jsonpickle", "pandas.read_pickle", "yaml.load", "torch.jit.load", "torch.package",
    "torch.hub.load", "mlflow.pyfunc.load_model", "mlflow.pytorch.load_model",
    "mlflow.sklearn.load_model", "numcodecs.Pickle", "eval", "exec", "compile", "os.system",
    "os.popen", "runpy",
}
STORES_PICKLES = {"torch.save", "torch.jit.save", "numpy.save", "mlflow.pytorch.save_model"}


def faults(source: str) -> list[str]:
    """Lines of ``source`` that load, store or run what they should not."""
    tree = ast.parse(source)
    names = _imported_names(tree)
    found = [
        name for name in names.values()
        if any(name == bad or name.startswith(f"{bad}.") for bad in RUNS_WHAT_IT_READS)
    ]
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = _full_name(call.func, names)
        keywords = {word.arg: word.value for word in call.keywords}
        if name in RUNS_WHAT_IT_READS | STORES_PICKLES:
            found.append(name)
        if name == "torch.load" and not _is(keywords.get("weights_only"), True):
            found.append("torch.load without weights_only=True")
        if "allow_pickle" in keywords and not _is(keywords["allow_pickle"], False):
            found.append(f"{name} with allow_pickle")
        if "shell" in keywords and not _is(keywords["shell"], False):
            found.append(f"{name} with a shell")
    return found


def _imported_names(tree: ast.AST) -> dict[str, str]:
    """Local names by what they were imported as, from anywhere in the module."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
                names[f"import {alias.name}"] = alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _full_name(node: ast.AST, names: dict[str, str]) -> str:
    """``torch.load`` for ``t.load`` where torch was imported as t; "" where it cannot be told."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        owner = _full_name(node.value, names)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def _is(node: ast.AST | None, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


@pytest.mark.parametrize("folder", ["chess_snn", "flows", "tasks", "benchmarks"])
def test_no_module_loads_or_stores_a_pickle_or_runs_a_text(folder):
    modules = list((ROOT / folder).rglob("*.py"))
    assert len(modules) > 5
    for path in modules:
        assert faults(path.read_text(encoding="utf-8")) == [], path


@pytest.mark.parametrize("source", [
    "from pickle import loads", "import torch as t\nt.load(p, weights_only=False)",
    "from torch import load\nload(p)", "import numpy as np\nnp.load(p, allow_pickle=True)",
    "import mlflow.pyfunc\nmlflow.pyfunc.load_model(u)", "exec(text)",
    "import subprocess\nsubprocess.run(c, shell=True)", "def f():\n    import shelve",
])
def test_the_check_would_notice(source):
    assert faults(source)
