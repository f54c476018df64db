"""Every Triton kernel as machine code of three generations of GPUs, compiled without a GPU.

The table of what is compiled is ``kernel_variants.VARIANTS``.
"""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from kernel_variants import ARCHITECTURES, VARIANTS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OTHER_VERSIONS = {"3.6.0": "3.7.1", "3.7.1": "3.6.0"}
"""Both are in use: torch 2.11 brings 3.6.0, and torch 2.13 brings 3.7.1."""

pytestmark = [
    pytest.mark.compiles_kernels,
    pytest.mark.skipif(
        find_spec("triton") is None, reason="triton is not installed: its kernels are not compiled"
    ),
]


def compile_kernels(cache: Path, *arguments: str, packages: tuple[str, ...] = ()) -> dict:
    environment = {
        name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"
    }
    environment["PYTHONPATH"] = os.pathsep.join((*packages, str(ROOT), str(HERE)))
    # A kernel in a cache would not be compiled.
    environment["TRITON_CACHE_DIR"] = str(cache)
    run = subprocess.run(
        [sys.executable, HERE / "compile_kernels.py", *arguments],
        env=environment, capture_output=True, text=True, check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def faults(report: dict) -> dict:
    return {
        f"sm_{found['architecture']} {found['label']}": found["faults"]
        for found in report["found"] if found["faults"]
    }


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return compile_kernels(tmp_path_factory.mktemp("triton"), "kernel_variants")


def test_every_variant_compiles_within_its_limits(report):
    assert report["found"]
    assert faults(report) == {}


def test_every_kernel_of_the_package_is_in_the_table_for_every_architecture(report):
    for architecture in ARCHITECTURES:
        assert set(report["kernels"]) == {
            variant.kernel for variant in VARIANTS
            if architecture in variant.architectures and (architecture != 90 or not variant.is_slow)
        }


@pytest.mark.slow
def test_bad_kernels_are_found(tmp_path):
    report = compile_kernels(tmp_path, "bad_kernels")
    kinds = [[fault.partition(":")[0] for fault in each["faults"]] for each in report["found"]]
    assert kinds == [["spills"], ["narrow"], ["registers"], ["does not compile"], []]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_more_variants_compile_within_their_limits(tmp_path):
    report = compile_kernels(tmp_path, "kernel_variants", "--slow")
    assert report["found"]
    assert faults(report) == {}


@pytest.mark.slow
def test_the_other_version_of_triton_compiles_them_too(tmp_path):
    other = OTHER_VERSIONS[version("triton")]
    packages = tmp_path / "packages"
    install = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", packages,
         f"triton=={other}"],
        capture_output=True, text=True, check=False,
    )
    if install.returncode:
        pytest.skip(f"triton {other} could not be installed: {install.stderr[-200:]}")
    report = compile_kernels(tmp_path / "cache", "kernel_variants", packages=(str(packages),))
    assert report["triton"] == other
    assert faults(report) == {}
