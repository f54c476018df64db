"""The library can be used without what orchestrates it. `make check` holds imports to one way."""

import importlib
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import chess_snn
from chess_snn.errors import ChessSnnError

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(chess_snn.__path__, "chess_snn.")
    if module.name != "chess_snn.cli"
    and not module.name.startswith(("chess_snn.flows", "chess_snn.tasks"))
)
COMMAND_LINE = [name for name in MODULES if name.startswith("chess_snn.cli.")]
"""Its commands are loaded one by one, when they are run; here are all of them."""
LIBRARY = [name for name in MODULES if name not in COMMAND_LINE]
PACKAGES = sorted(
    module.name for module in pkgutil.walk_packages(chess_snn.__path__, "chess_snn.")
    if module.ispkg
)

IMPORT_ALL = """
import importlib, json, sys
library, command_line = map(json.loads, sys.argv[1:])
foreign = {"prefect", "dask", "distributed", "mlflow", "chess_snn.flows", "chess_snn.tasks"}
slow = {"torch", "numba", "zarr", "pandas"}
loaded = lambda among=foreign: sorted(among & set(sys.modules))
for name in library:
    if not (name.startswith(("chess_snn.nets.", "chess_snn.training."))
            or name.endswith(("training_program", "kernel_files", "doctor.checks"))):
        importlib.import_module(name)
without_torch = loaded(slow)
modules = [importlib.import_module(name) for name in library]
import torch
from chess_snn.jit import LazyKernel
from chess_snn.training.trainer import _AdamW
kernels = {
    f"{module.__name__}.{name}": value for module in modules
    for name, value in vars(module).items() if isinstance(value, LazyKernel)
}
optimizer = _AdamW([torch.ones(1, requires_grad=True)])
optimizer.step()
optimizer.load_state_dict(optimizer.state_dict())
optimizer.zero_grad()
seen = {
    "slow": without_torch + loaded({"torch._dynamo"}), "library": loaded(), "kernels": len(kernels),
    "compiled": sorted(name for name, value in kernels.items() if value._made),
}
for name in command_line:
    importlib.import_module(name)
print(json.dumps(seen | {"command_line": loaded()}))
"""


def test_imports_load_no_orchestration_and_compile_nothing():
    """Nor does the command line before a campaign; an optimizer loads no compiler of torch's."""
    assert len(LIBRARY) > 50, "the search for modules found too few"
    assert len(COMMAND_LINE) > 20, "the search for modules found too few"
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, json.dumps(LIBRARY), json.dumps(COMMAND_LINE)],
        capture_output=True, text=True, check=True,
    )
    seen = json.loads(done.stdout)
    assert seen.pop("kernels") > 50, "the search for kernels found too few"
    assert seen == {"slow": [], "library": [], "compiled": [], "command_line": []}


def test_each_module_has_one_name():
    """By the other name, that of its folder, a checkout would load it a second time."""
    assert {f"chess_snn.{name}" for name in ("flows", "tasks")} <= set(PACKAGES)
    folder = re.compile(r"\b(from|import) +(flows|tasks)\b|[\"'](flows|tasks)\.[a-z]")
    for top in ("chess_snn", "flows", "tasks", "benchmarks", "tests", "docs"):
        for path in (ROOT / top).rglob("*.py"):
            assert not folder.search(path.read_text()), path


@pytest.mark.parametrize("package", ["chess_snn", *PACKAGES])
def test_the_public_names_of_a_package_exist(package):
    module = importlib.import_module(package)
    names = getattr(module, "__all__", [])
    assert len(set(names)) == len(names)
    for name in names:
        assert hasattr(module, name), f"{package}.{name}"


# Programs tell errors apart by their codes, so each kind has its own, and none changes.


CODES = {
    "campaign", "campaign.locked", "campaign.removed", "closed", "cluster", "config", "corrupt",
    "corrupt.folder", "corrupt.lost", "corrupt.version", "device-trial", "engine", "engine.failed",
    "extra", "failed", "illegal-move", "memory", "position", "protocol", "rating", "scheduler.lost",
    "server.gone", "server.in-use", "server.start", "services", "tracking",
    "training.diverged", "training.rank-lost", "usage", "workers.lost",
}


def kinds_of(base: type[ChessSnnError]) -> list[type[ChessSnnError]]:
    return [base, *(kind for child in base.__subclasses__() for kind in kinds_of(child))]


def test_every_kind_of_error_has_a_code_of_its_own():
    for module in pkgutil.walk_packages(chess_snn.__path__, "chess_snn."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    codes = [kind.code for kind in kinds_of(ChessSnnError)]
    assert sorted(codes) == sorted(CODES)


def test_the_command_line_prints_the_code():
    command = [sys.executable, "-m", "chess_snn", "campaign", "start", "--set", "training.x=1"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.endswith("[config]\n")
