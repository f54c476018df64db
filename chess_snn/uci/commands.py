"""What a line from the GUI says. Nothing here knows an engine, and no line is an exception.

The protocol is that of Huber & Meyer-Kahlen, *Description of the universal chess interface*, 2006.
Words before a known command are skipped, as it asks.
"""

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from chess_snn.uci.limits import Limits


@dataclass(frozen=True, slots=True)
class Word:
    """A command without arguments: ``uci``, ``isready``, ``stop`` and the like."""

    name: str


@dataclass(frozen=True, slots=True)
class SetOption:
    """``setoption name … [value …]``."""

    name: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class SetPosition:
    """``position startpos|fen … [moves …]``."""

    fen: str | None
    """None: the initial position."""
    moves: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Go:
    """``go …``."""

    limits: Limits
    faults: tuple[str, ...] = ()
    """What was not understood and left out."""


@dataclass(frozen=True, slots=True)
class Nonsense:
    """An unknown line; with an empty ``fault`` it gets no answer."""

    fault: str


Command: TypeAlias = Word | SetOption | SetPosition | Go | Nonsense

_WORDS: Final = ("uci", "isready", "ucinewgame", "stop", "ponderhit", "quit")
_WITHOUT_EFFECT: Final = ("debug", "register")
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,15}")
_ANY_WORD: Final = re.compile(r"\S+")
_VALUE: Final = re.compile(r"(?:(?<=\s)|^)value(?=\s|$)")


def parse(line: str) -> Command:
    """The command on ``line``."""
    for word in _ANY_WORD.finditer(line):
        name = word[0]
        if name in _WORDS:
            return Word(name)
        if name in _WITHOUT_EFFECT:
            return Nonsense("")
        if parser := _PARSERS.get(name):
            return parser(line[word.end() :].strip())
    return Nonsense(f"unknown command: {line.strip()}" if line.strip() else "")


def _parse_option(rest: str) -> Command:
    first, _, body = rest.partition(" ")
    value = _VALUE.search(body)
    name = (body if value is None else body[: value.start()]).strip()
    if first != "name" or not name:
        return Nonsense("setoption needs a name: setoption name NAME value VALUE")
    return SetOption(name, "" if value is None else body[value.end() :].strip())


def _parse_position(rest: str) -> Command:
    words = rest.split()
    if "moves" in words:
        cut = words.index("moves")
        words, moves = words[:cut], words[cut + 1 :]
    else:
        moves = []
    if words == ["startpos"]:
        return SetPosition(None, tuple(moves))
    if len(words) > 1 and words[0] == "fen":
        return SetPosition(" ".join(words[1:]), tuple(moves))
    return Nonsense("position needs startpos or fen FEN; the position stays as it was")


def _parse_go(rest: str) -> Command:
    words, faults = deque(rest.split()), []
    given: dict[str, Any] = {}
    while words:
        word = words.popleft()
        if word in ("infinite", "ponder"):
            given[word] = True
        elif word == "searchmoves":
            moves = []
            while words and not _is_go_word(words[0]):
                moves.append(words.popleft())
            given[word] = tuple(moves)
        elif word not in _GO_NUMBERS:
            faults.append(f"go: unknown word {word}")
        elif not words or _is_go_word(words[0]):
            faults.append(f"go: {word} needs a number")
        elif _WHOLE.fullmatch(text := words.popleft()):
            given[_GO_NUMBERS[word]] = max(0, int(text))
        else:
            faults.append(f"go: {word} needs a whole number, got {text}")
    return Go(Limits(**given), tuple(faults))


_GO_NUMBERS: Final = {
    "nodes": "nodes", "depth": "depth", "mate": "mate", "movetime": "movetime_ms",
    "wtime": "wtime_ms", "btime": "btime_ms", "winc": "winc_ms", "binc": "binc_ms",
    "movestogo": "movestogo",
}
"""Field of :class:`Limits` for each word of ``go`` that a number follows."""


def _is_go_word(word: str) -> bool:
    return word in _GO_NUMBERS or word in ("infinite", "ponder", "searchmoves")


_PARSERS: Final[dict[str, Callable[[str], Command]]] = {
    "setoption": _parse_option, "position": _parse_position, "go": _parse_go,
}
