"""The site of ``make docs``: it builds, its links lead somewhere, and it needs no network."""

import subprocess
import sys
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("mkdocs", reason="pip install 'chess-snn[docs]': the site is NOT tested")

ROOT = Path(__file__).parents[1]
LOADING = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("a", "href")}


class Links(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if (tag, name) in LOADING and value:
                self.found.append((tag, value))
            elif name in {"id", "name"} and value:
                self.anchors.add(value)


@pytest.mark.slow
def test_the_site_builds_and_its_links_lead_somewhere(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {
        path: Links(path.read_text()) for path in tmp_path.rglob("*.html")
        if path.name != "404.html"  # a server shows it at any address
    }
    assert len(pages) > 60
    broken = defaultdict(set)
    for path, page in pages.items():
        for tag, link in page.found:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if tag != "a":
                    broken[path.name].add(link)  # it would be loaded from elsewhere
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = pages[target].anchors if target in pages else set()
            if not target.exists() or unquote(parts.fragment) not in {*anchors, ""}:
                broken[path.name].add(link)
    assert not broken
    reference = (tmp_path / "reference" / "chess_snn.search.html").read_text()
    assert 'id="chess_snn.search.SearchResult"' in reference
    assert ":func:" not in reference
