"""The wheel: what it puts into an environment, and that this works there, far from a clone.

Environments with one extra each have the packages that it asks for, and theirs, and no others.
They are links to those of the environment of the tests, so no test needs an index of packages.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from setuptools.config.pyprojecttoml import apply_configuration
from setuptools.dist import Distribution
from small_campaigns import SMALL

from chess_snn.ports import free_port

ROOT = Path(__file__).parents[1]
SOURCES = ("chess_snn", "flows", "tasks")
MOST_BYTES = 20_000_000
TIMEOUT_S = 1200


def files_of_the_wheel() -> set[str]:
    """Files that setuptools takes into it, as they are named in the wheel."""
    distribution = apply_configuration(Distribution({"script_name": ""}), ROOT / "pyproject.toml")
    distribution.include_package_data = False  # it would write into the checkout
    build = distribution.get_command_obj("build_py")
    build.ensure_finalized()
    modules = {Path(path) for _, _, path in build.find_all_modules()}
    return {
        path.as_posix() for path in modules | {
            Path(folder, name) for _, folder, _, names in build.data_files for name in names
        }
    }


def files_of_the_package() -> set[str]:
    links = (ROOT / "chess_snn", ROOT / "chess_snn" / "flows", ROOT / "chess_snn" / "tasks")
    return {
        path.relative_to(ROOT).as_posix() for folder in links for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_has_all_files_of_one_package(monkeypatch):
    monkeypatch.chdir(ROOT)
    found, kept = files_of_the_wheel(), files_of_the_package()
    assert found == kept
    assert "chess_snn/flows/prefect.yaml" in found
    assert sum((ROOT / name).stat().st_size for name in kept) < MOST_BYTES


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """The wheel that is built from the source distribution, which lacks the rest of a clone."""
    clone, built = tmp_path_factory.mktemp("clone"), tmp_path_factory.mktemp("built")
    for name in SOURCES:
        shutil.copytree(ROOT / name, clone / name, symlinks=True,
                        ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "prefect.yaml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, clone)

    def build(kind: str, source: Path) -> Path:
        code = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(built)!r}))"
        return built / run(sys.executable, "-c", code, cwd=source).stdout.split()[-1]

    shutil.unpack_archive(build("sdist", clone), built)
    (unpacked,) = (path for path in built.iterdir() if path.is_dir())
    return build("wheel", unpacked)


@pytest.fixture
def installed(wheel, tmp_path):
    """Install the wheel with an extra; returns the folder of the environment's commands."""
    def install(extra: str) -> Path:
        folder = tmp_path / "environment"
        run(sys.executable, "-m", "venv", "--without-pip", folder)
        (packages,) = folder.glob("lib/python*/site-packages")
        link_packages(required_by(f"chess-snn[{extra}]"), packages)
        pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python")
        run(*pip, "install", "--no-deps", "--no-index", wheel)
        run(*pip, "check")
        return folder / "bin"

    return install


def required_by(requirement: str) -> set[str]:
    """Names of all packages that it asks for."""
    seen: set[tuple[str, str]] = set()
    todo = [Requirement(requirement)]
    while todo:
        wanted = todo.pop()
        name = canonicalize_name(wanted.name)
        for extra in {"", *wanted.extras} - {extra for found, extra in seen if found == name}:
            seen.add((name, extra))
            needed = map(Requirement, metadata.requires(name) or ())
            todo += [
                one for one in needed
                if one.marker is None or one.marker.evaluate({"extra": extra})
            ]
    return {name for name, _ in seen} - {"chess-snn"}


def link_packages(names: set[str], folder: Path) -> None:
    """Link the modules of installed packages, some of which two packages have."""
    for file in {file for name in names for file in metadata.files(name) or ()}:
        if file.parts[0] != ".." and "__pycache__" not in file.parts:
            link = folder / file
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(Path(file.locate()).absolute())


def run(
    *command: str | Path, code: int = 0, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command, which must end with ``code``, without variables that lead to the clone."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, env=clean_environment(),
        check=False, **options,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def clean_environment() -> dict[str, str]:
    ours = ("PYTHON", "PREFECT", "MLFLOW")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


@pytest.mark.slow
@pytest.mark.timeout(2 * TIMEOUT_S)
def test_without_extras_it_plays_evaluates_and_speaks_uci(wheel, installed, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == files_of_the_package()
    assert wheel.stat().st_size < MOST_BYTES
    commands = installed("")
    for name in ("flows", "tasks", "benchmarks", "tests", "prefect", "starlette"):
        failed = run(commands / "python", "-c", f"import {name}", code=1, cwd=tmp_path)
        assert "ModuleNotFoundError" in failed.stderr
    program = commands / "chess-snn"
    moves = run(program, "play", "--ascii", "--simulations", "8", input="e4\nquit\n", cwd=tmp_path)
    assert " plays " in moves.stdout
    found = run(program, "analyse", "startpos", "--simulations", "8", cwd=tmp_path)
    assert re.search(r"\b[a-h]2[a-h][34]\b", found.stdout), found.stdout
    asked = "uci\nisready\nposition startpos moves e2e4\ngo nodes 8\n"
    spoken = run(program, "uci", input=asked, cwd=tmp_path).stdout
    assert "\nuciok\n" in spoken
    assert "\nbestmove " in spoken
    for extra, arguments in {
        "web": "web", "orchestration": "campaign start", "worker": "cluster certs here",
        "export": "models export shipped/chess --out x --format nir",
    }.items():
        error = run(program, *arguments.split(), code=2, cwd=tmp_path).stderr
        assert error.count("\n") == 1, error
        assert f"pip install 'chess-snn[{extra}]'" in error


@pytest.mark.slow
@pytest.mark.timeout(2 * TIMEOUT_S)
def test_with_web_it_serves_the_page(installed, tmp_path):
    command = [installed("web") / "chess-snn", "web", "--port", str(free_port())]
    with subprocess.Popen(
        command, env=clean_environment(), cwd=tmp_path, stdout=subprocess.PIPE, text=True,
    ) as server:
        try:
            address = server.stdout.readline().split()[-1]
            assert b"<html" in fetched(address)
            assert b"import" in fetched(f"{address}app.js")
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0


def fetched(address: str) -> bytes:
    """The answer of the server, which names its address before it listens."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while True:
        try:
            with urllib.request.urlopen(address) as answer:
                return answer.read()
        except urllib.error.HTTPError:
            raise
        except urllib.error.URLError:
            assert time.monotonic() < deadline_s, "the server did not start"
            time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.orchestration
@pytest.mark.timeout(2 * TIMEOUT_S)
def test_with_orchestration_it_runs_a_campaign(installed, tmp_path):
    program = installed("orchestration") / "chess-snn"
    settings = [f"--set={setting}" for setting in (*SMALL, "campaign.iterations=1")]
    run(program, "campaign", "start", "--dir", "campaign", *settings, cwd=tmp_path)
    run(program, "verify", "campaign", cwd=tmp_path)
    assert (tmp_path / "campaign" / "report.html").is_file()
