"""Wrong commands are one line on standard error, exit code 2, and change nothing on the disk.

messages.golden holds the commands, each with its line: the only place where tests fix wording. A
new case is a line ``$ ARGUMENTS`` in that file. To write its answers again, and read the difference
before they are committed::

    PYTHONPATH=. python tests/test_messages.py
"""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
import small_campaigns as made
from made_imports import make_import
from safetensors.torch import load_file, save_file

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.stages import prepare_first_generation
from chess_snn.cli import main
from chess_snn.data import write_shard
from chess_snn.pgn.reading import read_games

GOLDEN = Path(__file__).with_name("messages.golden")
TYPERS_REASON = re.compile(r"(?<=^Error: )(Invalid value for '[^']+').*")
GAMES = """[Event "mate"]\n[Result "0-1"]\n\n1. f3 e5 2. g4 Qh4# 0-1

[Event "agreed"]\n[Result "1/2-1/2"]\n\n1. d4 d5 1/2-1/2

"""
VARIANTS = "[variants.a]\n[variants.b]\ntraining.batch_size = 64\n"
EXPERIMENTS = {
    "only": "budget = {games = 320}\n[variants.a]\n",
    "alike": "start = {preset = 'smoke'}\nbudget = {games = 320}\n[variants.a]\n[variants.b]\n",
    "misspelt": "budgt = {games = 320}\n" + VARIANTS,
    "odd": "budget = {games = 400}\n[variants.a]\n[variants.b]\nnet.tick = 2",
    "short": "start = {preset = 'smoke'}\nbudget = {games = 100}\n" + VARIANTS,
    "two": "budget = {games = 320, minutes = 2}\n" + VARIANTS,
    "forked": "start = {fork = 'a', at = 9}\nbudget = {games = 400}\n" + VARIANTS,
    "far": "start = {fork = 'nowhere', at = 1}\nbudget = {games = 320}\n" + VARIANTS,
    "dataset": "start = {dataset = 'tiles', preset = 'smoke'}\nbudget = {epochs = 1}\n" + VARIANTS,
    "many": "start = {preset = 'smoke'}\nbudget = {games = 320, cores = 999}\n" + VARIANTS,
}
"""Files of experiments, each with one fault."""
ILLEGAL = '[Event "bad"]\n[Result "1-0"]\n\n1. e4 e5 2. Ke3 1-0\n\n'


def make_places(root: Path) -> None:
    """Write what the commands name: see the comments of messages.golden."""
    (root / "thesis").mkdir()
    (root / "thesis" / "main.tex").write_text("mine")
    (root / "no.toml").write_text("batch_size = = 3")
    (root / "binary.toml").write_bytes(b"\xff\xfe\x00")
    (root / "unknown.toml").write_text("[training]\nbatch_sise = 3\n")
    for name, text in EXPERIMENTS.items():
        (root / f"{name}.toml").write_text(f'name = "e"\n{text}')
    (root / "some.pgn").write_text(GAMES + ILLEGAL)
    (root / "bad.pgn").write_text(ILLEGAL)
    weights = made.make_weights(root / "net.safetensors")
    made.make_weights(root / "tiles.safetensors", game="2048")
    (root / "cut.safetensors").write_bytes(weights.read_bytes()[:100])
    save_file(load_file(weights), root / "go.safetensors", metadata={
        "format": "chess-snn network", "version": "2", "game": "go", "config": "{}",
    })
    make_import(root / "import")
    made.make_networks(root / "fresh", generations=())
    networks = made.make_networks(root / "a", generations=range(4))
    for iteration in range(2):
        made.write_receipt(networks, made.receipt_of(networks, iteration))
    played = CampaignFolder.create(root / "played", load_config("smoke"))
    records, _ = read_games(GAMES.encode())
    tiles = CampaignFolder.create(root / "tiles", load_config(settings=made.MICRO_2048))
    prepare_first_generation(tiles)
    made.begin(tiles, 0)
    made.play_shard(tiles.path, 0, 0)
    write_shard(played.shard(0, 0), records, {
        "game": "chess", "iteration": 0, "shard": 0, "generation": 0,
    })


def answer(root: Path, arguments: list[str]) -> tuple[int, str]:
    """The exit code of the command in ``root``, and the last line of its standard error."""
    errors = io.StringIO()
    environment = {
        name: text for name, text in os.environ.items()
        if name not in ("MLFLOW_TRACKING_URI", "PREFECT_API_URL")
    } | {"CHESS_SNN_HOME": str(root / "home")}
    with (
        patch.object(sys, "argv", ["chess-snn", *arguments]), contextlib.chdir(root),
        patch.dict(os.environ, environment, clear=True), contextlib.redirect_stderr(errors),
        contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as ended,
    ):
        main()
    lines = errors.getvalue().replace(str(root), "PLACE").splitlines()
    return int(ended.value.code or 0), TYPERS_REASON.sub(r"\1", lines[-1]) if lines else ""


def fingerprint(root: Path) -> dict[Path, int]:
    """All paths but locks, with the times at which files were written."""
    return {
        path: 0 if path.is_dir() else path.lstat().st_mtime_ns
        for path in root.rglob("*") if path.name != "campaign.lock"
    }


def golden_cases() -> Iterator[tuple[str, str]]:
    """Each command line with the line that it is answered with."""
    lines = [line for line in GOLDEN.read_text(encoding="utf-8").splitlines() if line]
    for command, line in zip(lines, [*lines[1:], ""], strict=True):
        if command.startswith("$ "):
            yield command[2:], line


CASES = dict(golden_cases())


def written_again(root: Path) -> Iterator[str]:
    """The lines of messages.golden with the answers of today."""
    for line in GOLDEN.read_text(encoding="utf-8").splitlines():
        if not line.lower().startswith("error: "):
            yield line
        if line.startswith("$ "):
            yield answer(root, shlex.split(line[2:]))[1]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("places")
    make_places(root)
    return root


@pytest.mark.parametrize("command", CASES)
def test_a_wrong_command_is_answered_by_its_line(places: Path, command: str) -> None:
    if "cluster" in command:
        pytest.importorskip("prefect")
    before = fingerprint(places)
    code, found = answer(places, shlex.split(command))
    assert found == CASES[command], "to accept it, see the head of this file"
    assert found.lower().startswith("error: ")
    assert code == 2
    assert fingerprint(places) == before


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        make_places(Path(scratch))
        text = "".join(f"{line}\n" for line in written_again(Path(scratch)))
    GOLDEN.write_text(text, encoding="utf-8")
