"""HTML from text: everything that comes from outside is escaped here."""

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from chess_snn.campaign.viewing.columns import Columns

_UNBROKEN: Final = re.compile(r"\S+ to \S+|at least \S+|\S+-\S+|\d+ %|\d+\. \S+")
"""Intervals, results, shares and moves, which a narrow column keeps together."""
_UNBROKEN_CELL: Final = re.compile(rf"\([^()]*\)|{_UNBROKEN.pattern}")


def element(name: str, text: str, **attributes: str) -> str:
    """An element with ``text`` in it, which is escaped; ``class_`` is the attribute ``class``."""
    return tag(name, escape(text), **attributes)


def tag(name: str, inner: str, **attributes: str) -> str:
    """An element with ``inner``, HTML, in it."""
    named = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
    )
    return f"<{name}{named}>{inner}</{name}>"


def section(key: str, title: str, inner: str) -> str:
    """A section of the page with its heading; ``key`` names it in links, ``inner`` is HTML."""
    heading = element("h2", title, id=f"{key}-heading")
    return tag("section", f"{heading}\n{inner}", id=key, aria_labelledby=f"{key}-heading")


def table(
    caption: str, rows: Sequence[Any], columns: Columns, left: Sequence[str] = ()
) -> str:
    """A table of ``rows`` whose first column names them; columns in ``left`` hold words."""
    names = list(columns)
    head = "".join(
        tag("th", _together(name.replace("\n", " "), _UNBROKEN), scope="col",
            **_side(name, names, left))
        for name in names
    )
    body = "\n".join(
        tag("tr", "".join(
            tag("td" if index else "th", _together(cell(row), _UNBROKEN_CELL),
                **_side(name, names, left), **({} if index else {"scope": "row"}))
            for index, (name, cell) in enumerate(columns.items())
        ))
        for row in rows
    )
    return scrolling(caption, tag(
        "table",
        f"{tag('caption', element('span', caption))}\n<thead>{tag('tr', head)}</thead>\n"
        f"<tbody>\n{body}\n</tbody>",
    ))


def _together(text: str, unbroken: re.Pattern[str]) -> str:
    """``text`` as HTML; a narrow column breaks it before what is ``unbroken``, and not within."""
    return unbroken.sub(lambda found: tag("span", found[0], class_="together"), escape(text))


def _side(name: str, names: Sequence[str], left: Sequence[str]) -> dict[str, str]:
    return {"class_": "words"} if name in left or name == names[0] else {}


def scrolling(label: str, inner: str, class_: str = "wide") -> str:
    """A region that scrolls by itself, by keyboard too, where it is larger than its place."""
    return tag("div", inner, class_=class_, tabindex="0", role="region", aria_label=label)


def terms(pairs: Mapping[str, str], class_: str) -> str:
    """A list of terms and what each is; the latter is HTML."""
    rows = "\n".join(
        tag("div", element("dt", term) + tag("dd", inner)) for term, inner in pairs.items()
    )
    return tag("dl", rows, class_=class_)


def paragraph(text: str, class_: str = "") -> str:
    """``text``, escaped, as a paragraph."""
    return element("p", text, **({"class_": class_} if class_ else {}))


def data(body: object, class_: str) -> str:
    """JSON for the page's script; nothing in it can end the element."""
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" class="{class_}">{text}</script>'
