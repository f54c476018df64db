"""Small damages that keep most of what they are given, so that parsers are met deep inside."""

import copy
import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

Mutator = Callable[[random.Random, bytes, bytes], bytes]

ODD_NUMBERS = (
    -1, 0, 1, 2, 7, 255, 256, 65_535, 65_536, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63,
    2**64, 10**19, 10**400, 0.5, -0.0, 1e-320, 1e308,
)
ODD_TEXTS = (
    "", " ", "0", "-", "..", "../..", "/etc/passwd", "a/../../b", "\0", "\n", "\u2028", "\ud800",
    "é", "x" * 300, "true", "None", "NaN", "%s", "{}", "'", '"', "\\", "~", "@", "gen-000001",
)
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, [], {}, [[]], [{}], {"": None}, *ODD_NUMBERS, *ODD_TEXTS,
)
NOT_JSON = (b"NaN", b"Infinity", b"-Infinity", b"1e999", b"1" * 5000, b"[" * 3000, b'"\\ud800"')
ODD_OCTETS = (
    b"\0", b"\n", b"\r\n", b"\t", b" ", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\x1a", b'"', b"'",
    b"\\", b"{", b"}", b"[", b"]", b"(", b")", b";", b"%", b"$", b"=", b",", b".", b"-", b"0",
    b"9" * 30, b"\xc3\xa9", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\x1b[31m",
)

_WORDS = re.compile(rb"\s+|[^\s]+")


def one_of(*choices: tuple[int, Mutator]) -> Mutator:
    """One of several, by weight."""
    weights = [weight for weight, _ in choices]

    def mutate(stream: random.Random, data: bytes, other: bytes) -> bytes:
        _, chosen = stream.choices(choices, weights)[0]
        return chosen(stream, data, other)

    return mutate


def octets(dictionary: Sequence[bytes] = ()) -> Mutator:
    """A few octets flipped, dropped, repeated, spliced, or set to something odd."""
    known = (*ODD_OCTETS, *dictionary)

    def mutate(stream: random.Random, data: bytes, other: bytes) -> bytes:
        for _ in range(stream.choice((1, 1, 1, 2, 3, 6))):
            data = _damage(stream, data, other, known)
        return data

    return mutate


def words(dictionary: Sequence[bytes]) -> Mutator:
    """Words dropped, doubled, exchanged, taken from a dictionary or from another seed."""

    def mutate(stream: random.Random, data: bytes, other: bytes) -> bytes:
        parts = _WORDS.findall(data) or [b""]
        for _ in range(stream.choice((1, 1, 1, 2, 3))):
            at = stream.randrange(len(parts))
            kind = stream.randrange(6)
            if kind == 0 and len(parts) > 1:
                del parts[at]
            elif kind == 1:
                parts[at:at] = [parts[at], b" "]
            elif kind == 2:
                to = stream.randrange(len(parts))
                parts[at], parts[to] = parts[to], parts[at]
            elif kind == 3:
                parts[at] = stream.choice(_WORDS.findall(other) or [b""])
            elif kind == 4:
                parts[at] = _damage(stream, parts[at], b"", ODD_OCTETS)
            else:
                parts[at] = stream.choice(dictionary)
        return b"".join(parts)

    return mutate


def json_values(finish: Callable[[Any], bytes] | None = None) -> Mutator:
    """Values, keys and items of a JSON text exchanged, dropped, moved and made odd.

    ``finish`` makes the text of the changed value, to set right what must fit the rest.
    """

    def mutate(stream: random.Random, data: bytes, other: bytes) -> bytes:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return _damage(stream, data, other, ODD_OCTETS)
        for _ in range(stream.choice((1, 1, 1, 2, 4))):
            value = change_value(stream, value)
        text = (finish or to_json)(value)
        if stream.random() < 0.05:
            numbers = list(re.finditer(rb"(?<=[ \[:])-?\d+(\.\d+)?", text))
            if numbers:
                chosen = stream.choice(numbers)
                text = text[: chosen.start()] + stream.choice(NOT_JSON) + text[chosen.end() :]
        return text

    return mutate


def to_json(value: Any) -> bytes:
    """As our own files have it, but for numbers that JSON does not know."""
    return json.dumps(value, indent=1).encode()


def change_value(stream: random.Random, value: Any) -> Any:
    """``value`` with one change somewhere in it."""
    holders = [holder for holder in _holders(value) if len(holder)]
    if not holders:
        return _odd_value(stream)
    holder = stream.choice(holders)
    is_object = isinstance(holder, dict)
    key = stream.choice(list(holder) if is_object else range(len(holder)))
    kind = stream.randrange(8)
    if kind == 0:
        del holder[key]
    elif kind == 1 and is_object:
        holder[stream.choice(ODD_TEXTS)] = holder.pop(key)
    elif kind == 1:
        holder.insert(key, copy.deepcopy(holder[key]))
    elif kind == 2 and is_object:
        holder[stream.choice(("more", *ODD_TEXTS))] = _odd_value(stream)
    elif kind == 3:
        holder[key] = copy.deepcopy(_any_part(stream, value))
    elif kind == 4 and isinstance(holder[key], int | float):
        holder[key] = holder[key] + stream.choice((-1, 1, 1000))
    elif kind == 5 and isinstance(holder[key], str):
        text = holder[key]
        at = stream.randrange(len(text) + 1)
        holder[key] = text[:at] + stream.choice(ODD_TEXTS) + text[at + stream.randrange(2) :]
    elif kind == 6:
        holder[key] = [holder[key]]
    else:
        holder[key] = _odd_value(stream)
    return value


def _odd_value(stream: random.Random) -> Any:
    """A value of its own: it may be changed next, and no value may end up within itself."""
    return copy.deepcopy(stream.choice(ODD_VALUES))


def _holders(value: Any) -> list[Any]:
    found = []
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict | list):
            found.append(part)
            left.extend(part.values() if isinstance(part, dict) else part)
    return found


def _any_part(stream: random.Random, value: Any) -> Any:
    holder = stream.choice(_holders(value))
    parts = list(holder.values()) if isinstance(holder, dict) else holder
    return stream.choice(parts) if parts else holder


def _damage(
    stream: random.Random, data: bytes, other: bytes, dictionary: Sequence[bytes]
) -> bytes:
    first = stream.randrange(len(data) + 1)
    last = min(len(data), first + stream.choice((1, 1, 2, 4, 16, 64)))
    cut, start = data[first:last], stream.randrange(len(other) + 1)
    changed: tuple[Callable[[], bytes], ...] = (
        lambda: bytes([cut[0] ^ 1 << stream.randrange(8)]) + cut[1:] if cut else b"",
        lambda: b"",
        lambda: cut * stream.choice((2, 3, 50)),
        lambda: stream.choice(dictionary),
        lambda: cut + stream.choice(dictionary),
        lambda: other[start : start + stream.choice((8, 64, 512))],
    )
    if stream.randrange(len(changed) + 1) == len(changed):
        return data[:first]
    return data[:first] + stream.choice(changed)() + data[last:]
