"""Words of messages: counts of things, and names that were almost right."""

import difflib
import re
from collections.abc import Collection
from typing import Final

_HISSING: Final = re.compile(r"(s|x|z|ch|sh)$")
_IN_Y: Final = re.compile(r"(?<=[^aeiou])y$")


def plural(noun: str) -> str:
    """``games``, ``matches``, ``plies``."""
    if _HISSING.search(noun):
        return f"{noun}es"
    return f"{_IN_Y.sub('ie', noun)}s"


def counted(number: int, noun: str) -> str:
    """``1 game``, ``1,000 games``, ``0 matches``."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def nearest(text: str, names: Collection[str]) -> str | None:
    """The one of ``names`` that ``text`` was probably meant to be, if any."""
    return next(iter(difflib.get_close_matches(text, names, n=1)), None)


def names_hint(text: str, names: Collection[str]) -> str:
    """The end of a message about an unknown ``text``: the nearest of ``names``, or all of them."""
    near = nearest(text, names)
    return f"known: {', '.join(names)}" if near is None else f"did you mean {near}?"
