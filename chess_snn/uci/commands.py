"""Reading of a line from the GUI. Nothing here knows an engine.

The protocol is that of Huber & Meyer-Kahlen, *Description of the universal chess interface*, 2006.
Words before a known command are skipped, as it asks.
"""

import re
from collections import deque
from collections.abc import Container
from typing import Any, Final

from chess_snn.errors import UsageError
from chess_snn.uci.limits import Limits

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,15}")
_ANY_WORD: Final = re.compile(r"\S+")
_VALUE: Final = re.compile(r"(?:(?<=\s)|^)value(?=\s|$)")
_GO_NUMBERS: Final = {
    "nodes": "nodes", "depth": "depth", "mate": "mate", "movetime": "movetime_ms",
    "wtime": "wtime_ms", "btime": "btime_ms", "winc": "winc_ms", "binc": "binc_ms",
    "movestogo": "movestogo", "perft": "perft",
}
"""Field of :class:`Limits` for each word of ``go`` that a number follows."""
_MOST_FAULTS: Final = 3
"""Limit of what is reported of one ``go``."""
_GO_FLAGS: Final = ("infinite", "ponder")
_GO_WORDS: Final = (*_GO_NUMBERS, *_GO_FLAGS, "searchmoves")


def split_line(line: str, commands: Container[str]) -> tuple[str, str]:
    """The first of ``commands`` on ``line`` and its arguments; both are empty for a blank line.

    Raises:
        UsageError: no word of ``line`` is a command.
    """
    for word in _ANY_WORD.finditer(line):
        if word[0] in commands:
            return word[0], line[word.end() :].strip()
    if line.strip():
        raise UsageError(f"unknown command: {line.strip()}")
    return "", ""


def parse_option(arguments: str) -> tuple[str, str]:
    """Name and value in ``name … [value …]``; without a value it is empty.

    Raises:
        UsageError: there is no name.
    """
    first, _, body = arguments.partition(" ")
    value = _VALUE.search(body)
    name = (body if value is None else body[: value.start()]).strip()
    if first != "name" or not name:
        raise UsageError("setoption needs a name: setoption name NAME value VALUE")
    return name, "" if value is None else body[value.end() :].strip()


def parse_position(arguments: str) -> tuple[str | None, tuple[str, ...]]:
    """FEN (None: the initial position) and moves in ``startpos|fen … [moves …]``.

    Raises:
        UsageError: neither ``startpos`` nor a FEN is there.
    """
    words = arguments.split()
    if "moves" in words:
        cut = words.index("moves")
        words, moves = words[:cut], words[cut + 1 :]
    else:
        moves = []
    if words == ["startpos"]:
        return None, tuple(moves)
    if len(words) > 1 and words[0] == "fen":
        return " ".join(words[1:]), tuple(moves)
    raise UsageError("position needs startpos or fen FEN; the position stays as it was")


def parse_go(arguments: str) -> tuple[Limits, list[str]]:
    """The limits of ``go …``, and what was not understood and left out.

    Where that leaves no limit, one node is: a word that the engine does not know must not begin a
    long search.
    """
    words, faults = deque(arguments.split()), []
    given: dict[str, Any] = {}
    while words:
        word = words.popleft()
        if word in _GO_FLAGS:
            given[word] = True
        elif word == "searchmoves":
            moves = []
            while words and words[0] not in _GO_WORDS:
                moves.append(words.popleft())
            given[word] = tuple(moves)
        elif word not in _GO_NUMBERS:
            faults.append(f"go: unknown word {word}")
        elif not words or words[0] in _GO_WORDS:
            faults.append(f"go: {word} needs a number")
        elif _WHOLE.fullmatch(text := words.popleft()):
            given[_GO_NUMBERS[word]] = max(0, int(text))
        else:
            faults.append(f"go: {word} needs a whole number, got {text}")
    if faults and given.keys() <= {"searchmoves"}:
        given["nodes"] = 1
        faults = [*faults[:_MOST_FAULTS], "go: no limit is left, so one node is searched"]
    return Limits(**given), faults[: _MOST_FAULTS + 1]
