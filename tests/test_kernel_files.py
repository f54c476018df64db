"""Damaged files of compiled kernels are never run: they are removed, and compiled again."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from chess_snn.jit import kernel_folder
from chess_snn.kernel_files import damaged_files

KERNELS = """
import numpy as np
from chess_snn.jit import kernel

@kernel
def sum_of(numbers):
    total = 0.0
    for number in numbers:
        total += number
    return total

@kernel
def mean_of(numbers):
    return sum_of(numbers) / numbers.size
"""
MAIN = """
numbers = np.arange(5.0)
assert (mean_of(numbers), sum_of(numbers)) == (2.0, 10.0)
print(sum(sum(kernel.stats.cache_hits.values()) for kernel in (mean_of, sum_of)))
"""

DAMAGES = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "flipped": lambda content: flipped(content, len(content) // 2),
}


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 16]) + content[place + 1:]


def run_kernels(folder: Path) -> subprocess.CompletedProcess[str]:
    """A process that calls the kernels and prints how many it did not compile."""
    script = folder / "kernels.py"
    script.write_text(KERNELS + MAIN)
    return subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")},
    )


def load_kernels(folder: Path):
    """The kernels, read from the cache as by a new process."""
    script = folder / "kernels.py"
    script.write_text(KERNELS)
    spec = importlib.util.spec_from_file_location("kernels", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of both kernels."""
    folder = tmp_path / "cache"
    kernel_folder()  # sets numba's before it is changed
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))
    assert kernel_folder() == folder
    kernels = load_kernels(tmp_path)
    kernels.mean_of(kernels.np.arange(5.0))
    return folder


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_damaged_file_is_compiled_again(tmp_path, cache, damage, ending):
    files = sorted(cache.glob(f"*/*.{ending}"))
    assert len(files) == 2
    assert damaged_files(cache) == []
    for file in files:
        file.write_bytes(damage(file.read_bytes()))
    assert damaged_files(cache) == files

    kernels = load_kernels(tmp_path)
    assert kernels.mean_of(kernels.np.arange(5.0)) == 2.0
    assert not kernels.mean_of.stats.cache_hits
    assert damaged_files(cache) == []
    again = load_kernels(tmp_path)
    again.mean_of(again.np.arange(5.0))
    assert again.mean_of.stats.cache_hits, "kept again"


@pytest.mark.slow
def test_whole_files_are_not_compiled_again_and_many_damaged_ones_are_one_line(tmp_path):
    first, second = run_kernels(tmp_path), run_kernels(tmp_path)
    assert (first.stdout, first.stderr) == ("0\n", "")
    assert (second.stdout, second.stderr) == ("2\n", "")
    files = sorted((tmp_path / "cache").glob("*/*"))
    assert len(files) == 4
    for file in files:
        file.write_bytes(flipped(file.read_bytes(), file.stat().st_size // 2))
    third = run_kernels(tmp_path)
    assert third.stdout == "0\n"
    assert third.stderr.count("\n") == 1
