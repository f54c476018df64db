"""Damage to valid inputs, as hypothesis strategies; and what every parser promises of them.

A parser accepts an input as a whole, or refuses it with an error of ours of one line. It does so
within LIMIT_S of processor time.
"""

import functools
import json
import os
import re
import resource
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from chess_snn.errors import ChessSnnError

Damage = Callable[[Sequence[bytes]], st.SearchStrategy[bytes]]
"""Makes a strategy of damaged inputs from valid ones."""

INPUTS = int(os.environ.get("FUZZ_INPUTS", "0"))
"""Inputs to each parser; 0 is a quick run with the same inputs each time."""
QUICK_INPUTS = 60
LIMIT_S = 20
LAST_INPUT = Path(tempfile.gettempdir(), f"chess-snn-fuzz-{os.getuid()}-{os.getpid()}")
"""Holds the input that is tried, in case the process dies of it."""

ODD_BYTES = (
    b"\0", b"\n", b"\r\n", b"\t", b" ", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\x1a", b'"', b"'",
    b"\\", b"{", b"}", b"[", b"]", b"(", b")", b";", b"%", b"$", b"=", b",", b".", b"-", b"0",
    b"9" * 30, b"\xc3\xa9", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\x1b[31m",
)
ODD_VALUES = (
    None, True, False, -1, 0, 1, 255, 256, 65_535, 65_536, 2**31, -(2**31) - 1, 2**53 + 1, 2**63,
    2**64, 10**400, 0.5, -0.0, 1e-320, 1e308, float("nan"), float("inf"), "", "0", "..", "../..",
    "/etc/passwd", "a/../../b", "\0", "\n", "\u2028", "\ud800", "x" * 300, "true", "NaN", "~", "@",
)
_LENGTHS = (0, 0, 1, 1, 1, 2, 4, 16, 64, 1 << 30)
"""How much of an input one change replaces; the last one is all that follows."""


def fuzz(
    valid: Callable[[], Sequence[bytes]], damage: Damage,
    *known: bytes | Callable[[bytes], bytes], share: float = 1.0,
) -> Callable[[Callable[[bytes], None]], Callable[[], None]]:
    """Make a test that gives damaged inputs to one parser.

    Args:
        valid: makes inputs of which at least one is accepted.
        damage: makes the others from them.
        known: inputs that failed once, or how they are made from the first valid one.
        share: of the number of inputs that other parsers get.
    """

    def decorate(check: Callable[[bytes], None]) -> Callable[[], None]:
        def test() -> None:
            inputs = valid()
            # Without a time limit, for this compiles kernels.
            accepted = [data for data in inputs if _accepts(check, data)]
            assert accepted, "all valid inputs are refused"

            @settings(
                max_examples=max(1, round((INPUTS or QUICK_INPUTS) * share)),
                derandomize=not INPUTS, suppress_health_check=list(HealthCheck),
            )
            @given(damage(inputs))
            @functools.wraps(check)
            def attempt(data: bytes) -> None:
                LAST_INPUT.write_bytes(data)
                with _limited_time():
                    _accepts(check, data)

            for failed in known:
                attempt = example(failed(inputs[0]) if callable(failed) else failed)(attempt)
            attempt()
            LAST_INPUT.unlink()

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate


def _accepts(check: Callable[[bytes], None], data: bytes) -> bool:
    try:
        check(data)
    except ChessSnnError as error:
        if "\n" in str(error):
            raise AssertionError("an error of more than one line") from error
        return False
    return True


@contextmanager
def _limited_time() -> Iterator[None]:
    """Raise TimeoutError in a loop of Python; end the process in a loop of compiled code."""

    def end(*_: object) -> None:
        raise TimeoutError(f"over {LIMIT_S} s of processor time")

    limits, before = resource.getrlimit(resource.RLIMIT_CPU), signal.signal(signal.SIGPROF, end)
    used = resource.getrusage(resource.RUSAGE_SELF)
    last_s = int(used.ru_utime + used.ru_stime) + 4 * LIMIT_S
    resource.setrlimit(resource.RLIMIT_CPU, (last_s, limits[1]))
    signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_CPU, limits)


def _change_parts(draw: st.DrawFn, parts: Any, new: st.SearchStrategy[Any]) -> Any:
    """Drop, repeat and exchange up to four runs of ``parts``, a list or a bytearray."""
    for _ in range(draw(st.integers(0, 4))):
        first = draw(st.integers(0, len(parts)))
        last = first + draw(st.sampled_from(_LENGTHS))
        run = parts[first:last]
        parts[first:last] = draw(new | st.sampled_from([run[:0], run[:64] * 2, run[:64] * 50]))
    return parts


def changed_bytes(*known: bytes) -> Damage:
    """Exchange bytes; ``known`` are strings that mean something to the parser."""
    odd = st.sampled_from((*ODD_BYTES, *known)) | st.binary(max_size=4)

    @st.composite
    def changed(draw: st.DrawFn, valid: Sequence[bytes]) -> bytes:
        return bytes(_change_parts(draw, bytearray(draw(st.sampled_from(valid))), odd))

    return changed


def changed_words(*known: bytes) -> Damage:
    """Exchange words, for ``known`` ones and those of other inputs."""

    @st.composite
    def changed(draw: st.DrawFn, valid: Sequence[bytes]) -> bytes:
        words = sorted({word for data in valid for word in data.split()} | {b" ", b"\n", *known})
        parts = re.findall(rb"\s+|\S+", draw(st.sampled_from(valid)))
        new = st.lists(st.sampled_from(words), max_size=2).map(lambda found: [b" ".join(found)])
        return b"".join(_change_parts(draw, parts, new))

    return changed


def changed_json(
    write: Callable[[Any], bytes], read: Callable[[bytes], Any] = json.loads
) -> Damage:
    """Exchange, drop, rename, add and wrap values; ``write`` makes the text of the result."""

    @st.composite
    def changed(draw: st.DrawFn, valid: Sequence[bytes]) -> bytes:
        value = read(draw(st.sampled_from(valid)))
        for _ in range(draw(st.integers(0, 3))):
            change_value(draw, value)
        return write(value)

    return changed


_ODD_VALUES = st.sampled_from(ODD_VALUES) | st.text(max_size=3) | st.recursive(
    st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=2), inner)
)


def change_value(draw: st.DrawFn, value: dict[str, Any]) -> None:
    """Make one change anywhere within ``value``."""
    holders = [holder for holder in _holders(value) if holder]
    if not holders:
        return
    holder = draw(st.sampled_from(holders))
    key = draw(st.sampled_from(list(holder) if isinstance(holder, dict) else range(len(holder))))
    match draw(st.sampled_from(("exchange", "step", "copy", "drop", "add", "wrap", "rename"))):
        case "step" if isinstance(holder[key], int | float):
            holder[key] += draw(st.sampled_from((-1, 1, 1000)))
        case "copy":
            holder[key] = json.loads(json.dumps(draw(st.sampled_from(holders)), default=str))
        case "drop":
            del holder[key]
        case "add" if isinstance(holder, dict):
            holder[draw(st.text(max_size=3) | st.just("/etc/passwd"))] = draw(_ODD_VALUES)
        case "wrap":
            holder[key] = [holder[key]]
        case "rename" if isinstance(holder, dict):
            holder[draw(st.text(max_size=3))] = holder.pop(key)
        case _:
            holder[key] = draw(_ODD_VALUES)


def _holders(value: Any) -> list[Any]:
    """Every object and array within a JSON value, itself included."""
    if not isinstance(value, dict | list):
        return []
    parts = value.values() if isinstance(value, dict) else value
    return [value, *(holder for part in parts for holder in _holders(part))]


def either(*damages: Damage) -> Damage:
    """One of several kinds of damage."""
    return lambda valid: st.one_of([damage(valid) for damage in damages])


@functools.cache
def scratch() -> Path:
    """A folder of this process, in memory where the system has room there."""
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) else None
    _KEPT.append(tempfile.TemporaryDirectory(prefix="chess-snn-fuzz-", dir=where))
    return Path(_KEPT[-1].name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def to_json(value: Any) -> bytes:
    """Write it as our own files have it, but for numbers that JSON does not know."""
    return json.dumps(value, indent=1).encode()


def text_of(data: bytes) -> str:
    """Any bytes as a text, as a file system or a pipe may give it."""
    return data.decode("utf-8", "surrogateescape")
