"""Imports go one way, and the library can be used without what orchestrates it."""

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import chess_snn

REPOSITORY = Path(__file__).parents[2]

ABOVE = {"chess_snn.cli"}
"""The command line may load flows; everything else is the library."""

LIBRARY = sorted(
    module.name for module in pkgutil.walk_packages(chess_snn.__path__, "chess_snn.")
    if not any(module.name == name or module.name.startswith(f"{name}.") for name in ABOVE)
)
COMMAND_LINE = sorted(
    module.name for module in pkgutil.walk_packages(chess_snn.__path__, "chess_snn.")
    if module.name.startswith("chess_snn.cli.")
)
"""Its commands are loaded one by one, when they are run; here are all of them."""

PACKAGES = sorted(
    module.name for module in pkgutil.walk_packages(chess_snn.__path__, "chess_snn.")
    if module.ispkg
)

IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
foreign = {"prefect", "dask", "distributed", "mlflow", "flows", "tasks"}
print(sorted({name.partition(".")[0] for name in sys.modules} & foreign))
"""


IMPORT_ALL_AND_LIST_COMPILED = """
import importlib, sys
from numba.core.registry import CPUDispatcher
modules = [importlib.import_module(name) for name in sys.argv[1:]]
kernels = {
    f"{module.__name__}.{name}": value for module in modules
    for name, value in vars(module).items() if isinstance(value, CPUDispatcher)
}
assert len(kernels) > 50, "the search for kernels found too few"
print(sorted(name for name, value in kernels.items() if value.signatures))
"""


def output_of(program: str, *modules: str) -> str:
    command = [sys.executable, "-c", program, *modules]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def imported_foreigners(*modules: str) -> str:
    return output_of(IMPORT_ALL, *modules)


def test_the_layers_hold():
    pytest.importorskip("importlinter")
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


def test_the_library_loads_neither_prefect_nor_dask_nor_mlflow():
    assert len(LIBRARY) > 50, "the search for modules found too few"
    assert imported_foreigners(*LIBRARY) == "[]"


def test_no_kernel_is_compiled_by_an_import():
    assert output_of(IMPORT_ALL_AND_LIST_COMPILED, *LIBRARY) == "[]"


def test_nor_does_the_command_line_before_a_campaign_runs():
    assert len(COMMAND_LINE) > 20, "the search for modules found too few"
    assert imported_foreigners(*COMMAND_LINE) == "[]"


def test_the_check_would_notice():
    pytest.importorskip("prefect")
    assert "'prefect'" in imported_foreigners("prefect")


@pytest.mark.parametrize("package", ["chess_snn", *PACKAGES])
def test_the_public_names_of_a_package_exist(package):
    module = importlib.import_module(package)
    names = getattr(module, "__all__", [])
    assert len(set(names)) == len(names)
    for name in names:
        assert hasattr(module, name), f"{package}.{name}"
