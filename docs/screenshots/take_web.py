"""Pictures of the page of ``chess-snn web``, taken in a headless Chromium.

    chess-snn web --model campaigns/cpu-001
    python docs/screenshots/take_web.py http://127.0.0.1:8642/

Needs Playwright and a Chromium of the system or of ``playwright install chromium``.
"""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

WIDE = {"width": 1440, "height": 900}
NARROW = {"width": 400, "height": 1450}
SETTLE_MS = 2500
TIMEOUT_MS = 120_000
OPENING = ("e4", "Nf3", "d4")
HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture."""

    name: str
    tab: str = "chess"
    is_dark: bool = False
    size: tuple[tuple[str, int], ...] = tuple(WIDE.items())


SHOTS = (
    Shot("web-chess"),
    Shot("web-chess-dark", is_dark=True),
    Shot("web-2048", "tiles", is_dark=True),
    Shot("web-campaign", "campaign"),
    Shot("web-narrow", size=tuple(NARROW.items())),
    Shot("web-narrow-dark", is_dark=True, size=tuple(NARROW.items())),
)


def play_opening(page: Page, *, points: bool) -> None:
    """Some moves against the shipped network; with ``points`` at its second candidate."""
    page.select_option("#network", "shipped/chess")
    page.select_option("#budget", "800")
    for count, move in enumerate(OPENING, start=1):
        page.fill("#move", move)
        page.press("#move", "Enter")
        while page.locator("#moves li button").count() < 2 * count:
            page.wait_for_timeout(50)
    page.wait_for_timeout(SETTLE_MS)
    if points:
        page.locator("#candidates tr").nth(1).hover()


def play_tiles(page: Page) -> None:
    """Let the network play for a while."""
    page.select_option("#tiles-budget", "16")
    page.click("#tiles-auto")
    page.wait_for_timeout(4 * SETTLE_MS)
    page.click("#tiles-auto")
    page.wait_for_timeout(SETTLE_MS)


def wait_for_report(page: Page) -> None:
    """Until the report of the campaign is drawn."""
    page.frame_locator("#campaign iframe").locator(".chart .curve").first.wait_for()
    page.wait_for_timeout(SETTLE_MS)


def main() -> None:
    """Take all pictures that the server has pages for."""
    address = sys.argv[1]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        for shot in SHOTS:
            page = browser.new_page(
                viewport=dict(shot.size), color_scheme="dark" if shot.is_dark else "light"
            )
            page.set_default_timeout(TIMEOUT_MS)
            page.goto(address)
            page.wait_for_selector("body[data-ready]")
            page.click(f"#tab-{shot.tab}")
            if shot.tab == "chess":
                play_opening(page, points=shot.is_dark)
            elif shot.tab == "tiles":
                play_tiles(page)
            else:
                wait_for_report(page)
            page.screenshot(path=HERE / f"{shot.name}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
