"""One parser under many inputs: mutate what is valid, try it, and keep what reached a new place.

An input is octets, whatever the parser. It is accepted or refused; refused means an error of ours,
or a verdict that says so. Whatever else is raised is a failure: a crash, a hang, or an input that
was accepted by half, which the target's own assertions tell.

What an input reached is told by the lines on the way to its refusal, or by what the target says of
an accepted one. Inputs that reached something new are mutated further, and are what ``--keep``
writes into the corpus.
"""

import hashlib
import random
import time
import traceback
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from chess_snn.errors import ChessSnnError

CORPUS = Path(__file__).parent / "corpus"
MOST_SEEDS = 2000
"""Inputs that are mutated further, the first seeds among them."""
LONGEST_SEED = 1 << 14
"""Octets; longer inputs are tried, and not mutated further."""


class Verdict(NamedTuple):
    """What became of an input that raised nothing."""

    is_accepted: bool
    shape: Hashable = ()
    """What tells this outcome from others."""


ACCEPTED, REFUSED = Verdict(True), Verdict(False)


@dataclass(frozen=True)
class Target:
    """One parser, and how to come by inputs for it."""

    name: str
    attempt: Callable[[bytes], Verdict]
    """Give the input to the parser; assert that what it accepts is whole."""
    mutate: Callable[[random.Random, bytes, bytes], bytes]
    """An input from a seed, and another seed to take parts from."""
    seeds: Callable[[], Sequence[bytes]] = tuple
    """Inputs beside those in the corpus."""
    weight: int = 10
    """Its share of all inputs, over the sum of all weights."""


@dataclass
class Report:
    """What came of one target."""

    name: str
    accepted: int = 0
    refused: int = 0
    seconds: float = 0.0
    new_places: list[bytes] = field(default_factory=list)
    """Inputs that reached what none before had reached, the seeds left out."""
    places: int = 0

    @property
    def inputs(self) -> int:
        return self.accepted + self.refused


class FoundError(AssertionError):
    """An input that a parser does not stand."""

    def __init__(self, target: str, data: bytes, reason: str) -> None:
        super().__init__(f"{target}: {reason}; the input is {data[:2000]!r}")
        self.target, self.data, self.reason = target, data, reason


def fuzz(
    target: Target, inputs: int, seed: int, on_input: Callable[[bytes], None] = lambda _: None
) -> Report:
    """Try the seeds, and mutations of them up to ``inputs`` in all.

    The same arguments and corpus give the same inputs.

    Args:
        target: what is tried.
        inputs: how many; every seed is tried in any case.
        seed: decides the mutations.
        on_input: called with each input before it is tried.

    Raises:
        FoundError: the first input that the parser does not stand.
    """
    stream, begun = random.Random(f"{seed} {target.name}"), time.monotonic()
    report, reached, pool = Report(target.name), set[Hashable](), list[bytes]()
    for data in seeds_of(target):
        on_input(data)
        reached.add(_try(target, data, report))
        pool.append(data)
    while report.inputs < inputs:
        data = target.mutate(stream, stream.choice(pool), stream.choice(pool))
        on_input(data)
        place = _try(target, data, report)
        if place not in reached:
            reached.add(place)
            report.new_places.append(data)
            if len(pool) < MOST_SEEDS and len(data) <= LONGEST_SEED:
                pool.append(data)
    report.places = len(reached)
    report.seconds = time.monotonic() - begun
    return report


def seeds_of(target: Target) -> Iterator[bytes]:
    """Its own, and those in the corpus; never none."""
    yield from target.seeds()
    for path in sorted((CORPUS / target.name).glob("*")):
        yield path.read_bytes()


def keep(target: Target, data: bytes) -> Path:
    """Put an input into the corpus, under a name that follows from it."""
    path = CORPUS / target.name / hashlib.sha256(data).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _try(target: Target, data: bytes, report: Report) -> Hashable:
    """Count one input; the place it reached."""
    try:
        verdict = target.attempt(data)
    except ChessSnnError as error:
        if "\n" in str(error):
            raise FoundError(target.name, data, "an error of more than a line") from error
        report.refused += 1
        return type(error), _lines_of(error)
    except Exception as error:
        raise FoundError(target.name, data, f"{type(error).__name__}: {error}") from error
    if verdict.is_accepted:
        report.accepted += 1
    else:
        report.refused += 1
    return verdict


def _lines_of(error: BaseException | None) -> Hashable:
    """Where it was raised, by way of which lines; and the same of what it was raised from."""
    lines = []
    while error is not None:
        for frame, number in traceback.walk_tb(error.__traceback__):
            lines.append((frame.f_code.co_qualname, number))
        error = error.__cause__
    return tuple(lines)
