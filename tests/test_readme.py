"""Every command of README.md and docs/playing.md runs, and prints what the page shows.

The campaign that they name is a stand-in of a few games. Their figures differ, so what is
compared is the shape of the output: each line that a page shows must have its words, in their
order, on some line that the command prints.
"""

import re
import shlex
import sys
from pathlib import Path

import pytest
from small_campaigns import play_campaign

from chess_snn.cli import main

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = (README, ROOT / "docs" / "playing.md")

NOT_RUN = {
    "make": "sets up an environment and runs for minutes; continuous integration runs it",
    "source": "belongs to the shell",
    "export": "belongs to the shell",
    "prefect": "needs a server that stays: tests/orchestration/test_deployment.py",
    "chess-snn up": "starts servers: tests/orchestration/test_up_and_down.py",
    "chess-snn down": "ends them: tests/orchestration/test_up_and_down.py",
    "chess-snn ui": "serves pages until Ctrl-C: tests/orchestration",
    "chess-snn web": "serves a page until Ctrl-C: tests/web",
    "pip": "installs an extra: tests/web/test_web_command.py shows where it is missing",
    "chess-snn campaign start": "runs for minutes: tests/orchestration/test_campaign_flow.py",
    "chess-snn campaign resume": "loads Prefect and MLflow: tests/orchestration",
    "chess-snn play": "waits for moves: tests/cli/test_play_command.py",
    "chess-snn uci": "waits for commands: tests/uci",
}
"""Commands that take over a minute or wait for somebody, and what runs them instead."""

QUICKER = {"--games": "10", "--simulations": "4"}
"""Values that replace those of a page, so that a command takes seconds."""

SHOWN = re.compile(r"```(console|text)\n(.*?)```", re.DOTALL)
WORD = re.compile(r"[A-Za-z]{3,}")


def shown_commands() -> list[tuple[str, list[str]]]:
    """(command, lines that the page shows below it), in order; a repeated command once."""
    found: list[tuple[str, list[str]]] = []
    for kind, body in SHOWN.findall("".join(page.read_text() for page in PAGES)):
        for line in body.splitlines() if kind == "console" else ():
            if line.startswith("$ "):
                found.append((line[2:].partition("  #")[0].strip(), []))
            elif line.strip():
                found[-1][1].append(line)
    return [entry for number, entry in enumerate(found) if entry not in found[:number]]


def reason_not_run(command: str) -> str | None:
    names = [name for name in NOT_RUN if f"{command} ".startswith(f"{name} ")]
    return NOT_RUN[max(names, key=len)] if names else None


SHOWN_COMMANDS = shown_commands()
RUN = [(command, lines) for command, lines in SHOWN_COMMANDS if reason_not_run(command) is None]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder that holds the campaign of the pages; commands are run there in their order."""
    root = tmp_path_factory.mktemp("clone")
    play_campaign(
        root / "campaigns" / "smoke-001", "campaign.iterations=4", "net.activation=ilif"
    )
    return root


def run_here(command: str, root: Path, monkeypatch, capfd) -> tuple[int, str]:
    """Exit code and everything printed, of a command line run in ``root`` by this process."""
    words = shlex.split(command, comments=True)
    assert words[0] == "chess-snn", f"neither run nor in NOT_RUN: {command}"
    if "smoke-001" in command:
        for number, word in enumerate(words[:-1]):
            words[number + 1] = QUICKER.get(word, words[number + 1])
    if "smoke-001" in command and words[1] in {"match", "models"}:
        words += ["--games", "4"]
    if words[1] == "rate":
        words += ["--simulations", "0"]
    words = [word.replace(":64", ":4") for word in words]
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(root)
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capfd.readouterr()
    return ended.value.code or 0, printed.out + printed.err


@pytest.mark.parametrize(("command", "lines"), RUN, ids=[command for command, _ in RUN])
def test_commands_run_and_print_what_the_page_shows(command, lines, clone, monkeypatch, capfd):
    code, printed = run_here(command, clone, monkeypatch, capfd)
    assert code == 0, printed
    said = [WORD.findall(line) for line in printed.splitlines()]
    for line in lines:
        wanted = WORD.findall(line)
        assert any(_contains_in_order(words, wanted) for words in said), (
            f"the page shows {line!r}, and {command!r} printed:\n{printed}"
        )


def _contains_in_order(words: list[str], wanted: list[str]) -> bool:
    remaining = iter(words)
    return all(word in remaining for word in wanted)


def test_the_campaign_tables_of_the_readme_are_those_of_status(clone, monkeypatch, capfd):
    """``make campaign`` ends with the tables that ``campaign status`` prints."""
    table = SHOWN.search(README.read_text(), README.read_text().index("```text\ncampaign "))
    assert table is not None
    code, printed = run_here(
        "chess-snn campaign status campaigns/smoke-001", clone, monkeypatch, capfd
    )
    headings = [line for line in table[2].splitlines() if not any(map(str.isdigit, line))]
    assert code == 0
    assert len(headings) >= 3
    printed_words = [WORD.findall(line) for line in printed.splitlines()]
    for heading in headings:
        wanted = WORD.findall(heading)
        assert any(_contains_in_order(words, wanted) for words in printed_words), heading


def test_python_examples_of_the_library_run(clone, monkeypatch, capsys):
    """Examples with MLflow need a registered model, so they are not run."""
    page = ROOT / "docs" / "models.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    library = [block for block in blocks if "import chess_snn" in block]
    monkeypatch.chdir(clone)
    for block in library:
        exec(compile(block, str(page), "exec"), {})
    printed = capsys.readouterr().out
    prints = re.findall(r"^print\(.+$", "\n".join(library), re.MULTILINE)
    assert any("  # " in statement for statement in prints)
    for line, statement in zip(printed.splitlines(), prints, strict=True):
        _, is_shown, wanted = statement.partition("  # ")
        # A move, then win, draw and loss.
        if is_shown:
            assert re.sub(r"[\d.\s]+", "0", line[4:]) == re.sub(r"[\d.\s]+", "0", wanted[4:])
