"""Reads a page of HTML back, and refuses one that is not well formed."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "input", "br", "link", "img"}


@dataclass
class Element:
    name: str
    attributes: dict[str, str | None]
    children: list["Element | str"] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(
            child if isinstance(child, str) else child.text for child in self.children
        )

    def all(self, name: str) -> list["Element"]:
        """Elements of this name in it, in the order of the text; "*" is any."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                found += [child] if name in ("*", child.name) else []
                found += child.all(name)
        return found

    def named(self, key: str) -> "Element":
        (found,) = [each for each in self.all("*") if each.attributes.get("id") == key]
        return found


class Reader(HTMLParser):
    """Every element ends, in order; no name of an attribute or an element occurs twice."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("root", {})
        self.open = [self.root]
        self.ids: set[str] = set()

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), (tag, attrs)
        element = Element(tag, dict(attrs))
        if (key := element.attributes.get("id")) is not None:
            assert key not in self.ids
            self.ids.add(key)
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.open[-1].children.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop().name == tag, f"</{tag}> ends another element"

    def handle_data(self, data):
        self.open[-1].children.append(data)


def read_page(page: Path | str) -> Element:
    reader = Reader()
    reader.feed(page.read_text() if isinstance(page, Path) else page)
    reader.close()
    assert reader.open == [reader.root], f"{reader.open[-1].name} does not end"
    return reader.root


def rows_of(page: Element, caption: str) -> list[list[str]]:
    """The cells of the table whose caption begins so, its head first."""
    (table,) = [
        table for table in page.all("table") if table.all("caption")[0].text.startswith(caption)
    ]
    return [
        [cell.text for cell in row.all("*") if cell.name in ("th", "td")]
        for row in table.all("tr")
    ]
